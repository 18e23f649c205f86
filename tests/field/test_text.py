"""Texts to tokens and back."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
from tokenizers import pre_tokenizers as cuts

from saccade.error import SaccadeError
from saccade.field.text.text import KINDS, Text

TEXTS = [
    "The eye doesn't rest: it jumps, and jumps again (about three times a second).",
    "Das Auge ruht nicht; es springt.",
    "L'œil saute d'un point à l'autre, bien-aimé <end>!",
    "naïve 3.5 % 𝄞 \r\n\t tab\u2028 line",
]
LETTERS = sorted(set("".join(TEXTS)))
FIELDS = {kind: Text.train(TEXTS, kind, vocab=400) for kind in KINDS}

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=61) | st.lists(
    st.sampled_from(["<pad>", "<end>", " ", "\n", "\r", "é", "the", "\u2028", "\x00", "<|endoftext|>"])
).map("".join)


@given(anything)
@examples(300)
def test_bpe_gives_every_text_back(text):
    (ids,) = FIELDS["bpe"].encode([text])
    assert FIELDS["bpe"].decode(ids) == text
    assert not set(ids) & {0, 1, 2, 3}


@given(st.text(LETTERS, max_size=61))
@examples(200)
def test_characters_give_seen_texts_back(text):
    (ids,) = FIELDS["characters"].encode([text])
    assert FIELDS["characters"].decode(ids) == text
    assert len(ids) == len(text)


@given(st.text(max_size=23))
@examples(200)
def test_unknown_characters_are_counted(text):
    field = FIELDS["characters"]
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return
    (ids,) = field.encode([text])
    assert ids.count(field.unknown) == sum(letter not in LETTERS for letter in text)
    assert field.decode(ids) == "".join(letter for letter in text if letter in LETTERS)


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_have_their_places(kind):
    field = FIELDS[kind]
    assert (field.pad, field.begin, field.end, field.unknown) == (0, 1, 2, 3)
    assert field.vocab == len(field.tokenizer.get_vocab())
    (ids,) = field.encode(["the eye"])
    assert field.decode([1, *ids, 2, 0, 0]) == field.decode(ids)
    assert not set(field.encode(["<pad> <begin> <end>"])[0]) & {0, 1, 2}


@pytest.mark.parametrize(
    "text",
    [
        "The eye doesn't rest: it jumps, and jumps again (about three times a second).",
        "Das Auge ruht nicht; es springt.",
        "L'œil saute d'un point à l'autre, bien-aimé",
        "naïve 3.5%",
    ],
)
def test_words_come_back_with_their_punctuation(text):
    (ids,) = FIELDS["words"].encode([text])
    assert FIELDS["words"].decode(ids) == text


def test_split_cuts_at_spaces_alone():
    field = Text.train(["the <unk> 's @-@ eye <pad>", "the <unk> ,"], "split")
    (ids,) = field.encode(["the <unk> 's @-@ eye ,"])
    assert len(ids) == 6
    assert field.unknown not in ids
    assert field.decode(ids) == "the <unk> 's @-@ eye ,"
    lower = Text.train(["A <PAD> b c"], "split", lower=True)
    assert lower.pad == 0
    assert 0 not in lower.encode(["A <PAD> b"])[0]


def test_the_limit_keeps_the_commonest_words():
    field = Text.train(["a a a b b c"], "words", vocab=6)
    assert field.vocab == 6
    assert field.encode(["a b c", "c"]) == [[4, 5, 3], [3]]
    assert field.unknown == 3


def test_lower():
    for kind in KINDS:
        field = Text.train(["The EYE ÉÉ"], kind, vocab=300, lower=True)
        assert field.decode(field.encode(["THE eye É"])[0]) in ("the eye é", "the eye")
        assert field.encode(["THE"]) == field.encode(["the"])
        assert field.lower
        assert not Text.train(["The EYE ÉÉ"], kind, vocab=300).lower


def test_broken_bytes_become_the_replacement_character():
    field = FIELDS["bpe"]
    ids = [each for letter in "𝄞" for each in field.encode([letter])[0]]
    assert field.decode(ids[:-1] + field.encode(["x"])[0]).endswith("\ufffdx")


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_texts_give_the_same_bytes(kind):
    code = (
        "import sys, hashlib; from saccade.field.text.text import Text\n"
        f"texts = [f'word{{n % 89}} eye{{n % 7}} jumps {{n}}' for n in range(997)]\n"
        f"sys.stdout.write(hashlib.sha256(Text.train(texts, {kind!r}, vocab=500).to_bytes()).hexdigest())"
    )
    seen = set()
    for threads, salt in [("1", "1"), ("2", "7")]:
        environment = {"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": salt, "OMP_NUM_THREADS": "1", "PATH": ""}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_round_trip(kind):
    field = FIELDS[kind]
    again = Text.from_bytes(field.to_bytes())
    assert again.to_bytes() == field.to_bytes()
    assert again.encode(TEXTS) == field.encode(TEXTS)
    assert (again.pad, again.begin, again.end, again.unknown, again.vocab) == (0, 1, 2, 3, field.vocab)
    assert "<end>" in again.decode(again.encode([TEXTS[2]])[0]).replace(" ", "")


@pytest.mark.parametrize("kind", KINDS)
def test_one_symbol_is_nothing_to_learn(kind):
    with pytest.raises(SaccadeError, match="nothing to learn"):
        Text.train(["aaaa", "a"] if kind in ("characters", "bpe") else ["aaaa aaaa", "aaaa"], kind)
    for texts in ([], ["", ""]):
        with pytest.raises(SaccadeError, match="no text"):
            Text.train(texts, kind)


def test_what_is_wrong_is_told():
    with pytest.raises(SaccadeError, match="did you mean 'words'"):
        Text.train(TEXTS, "word")
    with pytest.raises(SaccadeError, match="too small for bpe: 260"):
        Text.train(TEXTS, "bpe", vocab=259)
    with pytest.raises(SaccadeError, match="has no room"):
        Text.train(TEXTS, "words", vocab=5)
    with pytest.raises(SaccadeError, match=r"no tokenizer\.json"):
        Text.from_bytes(b"{}")
    with pytest.raises(SaccadeError, match="no token 9973"):
        FIELDS["bpe"].decode([9973])
    with pytest.raises(SaccadeError, match="half a character"):
        FIELDS["bpe"].encode(["fine", "\ud800"])
    for wrong in (3, None, ["the", "eye"], b"eye"):
        with pytest.raises(SaccadeError, match=f"a text was expected, not {re.escape(repr(wrong))}"):
            FIELDS["bpe"].encode(["the", wrong])


def test_texts_are_read_as_a_stream():
    field = Text.train((f"word{number % 31} eye" for number in range(2003)), "words")
    assert field.vocab == 4 + 31 + 1


def merged(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """A word of plain letters by the paper's rule: again and again the pair that was learned first is joined."""
    parts = list(word.replace(" ", "Ġ"))
    while pairs := [pair for pair in itertools.pairwise(parts) if pair in ranks]:
        best, out = min(pairs, key=ranks.__getitem__), []
        while parts:
            step = 2 if tuple(parts[:2]) == best else 1
            out.append("".join(parts[:step]))
            parts = parts[step:]
        parts = out
    return parts


def test_bpe_follows_the_paper():
    field = FIELDS["bpe"]
    model = json.loads(field.to_bytes())["model"]
    ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
    assert len(ranks) > 20
    for text in ["the eye jumps again and again", "three jumping points", "das auge springt nicht", "restless seconds"]:
        parts = [part for word in re.findall(r" ?[a-z]+", text) for part in merged(word, ranks)]
        assert field.encode([text])[0] == [model["vocab"][part] for part in parts]


def test_a_tokenizer_of_hugging_face():
    words = {"the": 0, "eye": 1, "[UNK]": 2}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = cuts.Whitespace()
    tokenizer.add_special_tokens([AddedToken("</s>"), AddedToken("<pad>")])
    tokenizer.enable_padding(pad_id=4, pad_token="<pad>", length=11)
    tokenizer.enable_truncation(2)
    field = Text(tokenizer)
    assert (field.pad, field.begin, field.end, field.unknown, field.vocab) == (4, None, 3, 2, 5)
    assert field.encode(["the eye jumps the", "eye</s>"]) == [[0, 1, 2, 0], [1, 3]]
    assert tokenizer.padding is not None, "the caller's tokenizer stays as it was"


def spelled(decoder: object, names: list[str]) -> tuple[Text, list[tuple[bytes, bytes]]]:
    """A field with these tokens, and what each writes first and later."""
    tokenizer = Tokenizer(models.WordLevel({name: n for n, name in enumerate(names)}, unk_token=names[0]))
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.add_special_tokens(["</s>"])
    field = Text(tokenizer)
    assert field.spell(len(names)) == field.spell(len(names), first=True) == b""
    return field, [(field.spell(n, first=True), field.spell(n)) for n in range(len(names))]


def test_what_a_token_writes():
    llama = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    for decoder, manner, expected in [
        (None, "pieces", {"a": (b"a", b" a")}),
        (decoders.Fuse(), "pieces", {"a": (b"a", b"a"), "<0xC3>": (b"<0xC3>", b"<0xC3>")}),
        (decoders.ByteLevel(), "bytes", {"Ġa": (b" a", b" a"), "Ã": (b"\xc3", b"\xc3"), "漢": ("漢".encode(),) * 2}),
        (decoders.Metaspace(), "pieces", {"▁a": (b"a", b" a"), "▁": (b"", b" "), "é": (b"\xc3\xa9",) * 2}),
        (decoders.WordPiece(), "pieces", {"##s": (b"##s", b"s"), "eye": (b"eye", b" eye"), ".": (b".", b".")}),
        (decoders.Sequence(llama), "pieces", {"▁a": (b"a", b" a"), "<0x0A>": (b"\n", b"\n"), "<0xC3>": (b"\xc3",) * 2}),
    ]:
        field, found = spelled(decoder, list(expected))
        assert field.manner == manner
        assert found == list(expected.values()), manner


def test_the_letters_of_bytes_are_those_of_the_library():
    field = FIELDS["bpe"]
    found = {field.spell(field.tokenizer.token_to_id(letter)) for letter in cuts.ByteLevel.alphabet()}
    assert found == {bytes([code]) for code in range(256)}
    for code in range(128):
        (ids,) = field.encode([chr(code)])
        assert b"".join(map(field.spell, ids)) == bytes([code])


def test_words_are_written_with_the_space_before_them():
    field = FIELDS["words"]
    assert (field.manner, FIELDS["split"].manner) == ("words", "pieces")
    (ids,) = field.encode(["eye, jumps"])
    assert [field.spell(each, first=n == 0) for n, each in enumerate(ids)] == [b"eye", b" ,", b" jumps"]


def test_what_cannot_be_known_is_told():
    regex = decoders.Replace(Regex("a b"), "c")
    for decoder in (
        decoders.BPEDecoder(),
        decoders.Sequence([decoders.Fuse(), regex]),
        regex,
        decoders.Strip(" ", 2, 0),
    ):
        tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
        tokenizer.decoder = decoder
        field = Text(tokenizer)
        assert field.manner is None
        with pytest.raises(SaccadeError, match="a way of its own"):
            field.spell(1)
