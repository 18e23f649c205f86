"""`Stream`: the pieces are the text, whatever the tokenizer, and nothing that was given is taken back."""

from __future__ import annotations

import itertools

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, trainers
from tokenizers import pre_tokenizers as cuts

from saccade.decode.stream import Stream
from saccade.error import SaccadeError
from saccade.field.text.text import KINDS, Text

TEXTS = [
    "The eye doesn't rest: it jumps, well-known (3.5 times), it 's.",
    "L'œil d'un bien-aimé « saute » — 🙂👩‍👩‍👧 漢字 e\u0301 n\u0303.",
    "日本語 𝄞 don \u2019 t l \u2019 eau a - b ' s ' t [x] 3 . 5",
]
HALVES = [f"<0x{code:02X}>" for code in range(256)]


def special(tokenizer: Tokenizer) -> Text:
    tokenizer.add_special_tokens([AddedToken("</s>"), AddedToken("<s>")])
    tokenizer.add_tokens([AddedToken("added é")])
    return Text(tokenizer)


def gpt2() -> Text:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = cuts.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = sorted(cuts.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return special(tokenizer)


def pieces() -> list[tuple[str, float]]:
    words = sorted({word for text in TEXTS for word in text.replace(" ", " ▁").split()} | {"▁", "▁▁", "a▁b"})
    letters = sorted({letter for text in TEXTS for letter in text} - {" "})
    return [(each, -1.0) for each in [*words, *(each for each in letters if each not in words)]]


def metaspace(scheme: str = "always") -> Text:
    tokenizer = Tokenizer(models.Unigram([("<unk>", -9.0), *pieces()], 0, False))
    tokenizer.pre_tokenizer = cuts.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return special(tokenizer)


def llama() -> Text:
    vocab = {each: number for number, each in enumerate(["<unk>", *HALVES, *(each for each, _ in pieces())])}
    tokenizer = Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    return special(tokenizer)


def words(decoder: object) -> Text:
    tokens = ["the", "eye", "##s", "##", "'s", ".", "n't", "do", "é", "🙂", "jump</w>", "ed</w>"]
    tokenizer = Tokenizer(models.WordLevel({each: number for number, each in enumerate(tokens)}, unk_token="the"))
    if decoder is not None:
        tokenizer.decoder = decoder
    return special(tokenizer)


FIELDS = {kind: Text.train(TEXTS, kind, vocab=400) for kind in KINDS} | {
    "gpt2": gpt2(),
    "metaspace": metaspace(),
    "metaspace, no prefix": metaspace("never"),
    "llama": llama(),
    "wordpiece": words(decoders.WordPiece()),
    "no decoder": words(None),
    "a way of its own": words(decoders.BPEDecoder()),
}


def cut(text: str, stop: list[str]) -> str:
    """By the definition: before the stop string that is complete first, the longest of those that end together."""
    ends = itertools.product(range(len(text) + 1), sorted(stop, key=len, reverse=True))
    return next((text[: end - len(each)] for end, each in ends if text[:end].endswith(each)), text)


def run(field: Text, tokens: list[int], stop: list[str] | tuple[str, ...] = ()) -> tuple[Stream, list[str]]:
    stream = Stream(field, stop)
    found = [*map(stream.push, tokens), stream.finish()]
    assert stream.text == "".join(found)
    return stream, found


def written(name: str) -> st.SearchStrategy[list[int]]:
    """Sequences that a model may write: texts, bytes that follow no rule, special tokens, anything."""
    field = FIELDS[name]
    texts = [*TEXTS, "🙂", "é", "漢", "e\u0301", "\ufffd", " ", "it's", "l'eau", "3.5"]
    letters = [
        each for each in range(field.vocab) if len(field.tokenizer.id_to_token(each)) == 1 or field.is_byte(each)
    ]
    one = st.integers(0, field.vocab - 1) | st.sampled_from(letters)
    parts = one.map(lambda token: [token]) | st.sampled_from(field.encode(texts))
    return st.lists(parts, max_size=17).map(lambda parts: [token for part in parts for token in part])


WRITTEN = {name: written(name) for name in FIELDS}


@pytest.mark.parametrize("name", FIELDS)
@examples(70)
@given(st.data())
def test_the_pieces_are_the_text(name, data):
    tokens = data.draw(WRITTEN[name])
    stream, _ = run(FIELDS[name], tokens)
    assert stream.text == FIELDS[name].decode(tokens)
    assert not stream.stopped


@pytest.mark.parametrize("name", FIELDS)
@examples(70)
@given(st.data())
def test_a_stop_string_cuts_the_text(name, data):
    tokens = data.draw(WRITTEN[name])
    text = FIELDS[name].decode(tokens)
    places = st.tuples(st.integers(0, max(0, len(text) - 1)), st.integers(1, 5))
    inside = places.map(lambda place: text[place[0] : sum(place)] or "x")
    stop = data.draw(
        st.lists(inside | inside.map(lambda each: each + "z") | st.text(min_size=1, max_size=2), max_size=3)
    )
    stream, _ = run(FIELDS[name], tokens, stop)
    assert stream.text == cut(text, stop)
    assert stream.stopped == any(each in text for each in stop)


@examples(200)
@given(st.text("ab", max_size=23), st.lists(st.text("ab", min_size=1, max_size=5), max_size=3))
def test_what_may_become_a_stop_string_is_held_and_no_more(text, stop):
    field = Text.train(["ab"], "characters")
    stream = Stream(field, stop)
    for length, token in enumerate(field.encode([text])[0], 1):
        stream.push(token)
        if stream.stopped:
            break
        held = [n for n in range(length + 1) if any(each.startswith(text[length - n : length]) for each in stop)]
        assert len(stream.text) == length - max(held, default=0)


def test_text_comes_as_soon_as_it_is_certain():
    stream = Stream(FIELDS["gpt2"])
    codes = {FIELDS["gpt2"].spell(each): each for each in range(256)}
    assert [stream.push(codes[bytes([code])]) for code in "aé🙂".encode()] == ["a", "", "é", "", "", "", "🙂"]
    assert stream.push(codes[b"\xf0"]) == ""
    assert stream.push(codes[b"a"]) == "\ufffda", "half a character that something else follows is broken"
    assert stream.push(codes[b"\xe6"]) == ""
    assert stream.finish() == "\ufffd"
    stream = Stream(FIELDS["words"])
    found = [stream.push(token) for token in FIELDS["words"].encode(["it's The eye, jumps"])[0]]
    assert [*found, stream.finish()] == ["", "it", "'", "s", " The", " eye", ",", " jumps"]


def test_a_run_of_bytes_waits_until_it_is_over():
    field = FIELDS["llama"]
    a, *codes = [field.tokenizer.token_to_id(each) for each in ["a", "<0xC3>", "<0xA9>", "<0xFF>"]]
    for tokens, pieces in {
        (a, *codes[:2], a): ["a", "", "", "éa", ""],
        (a, *codes[:2]): ["a", "", "", "é"],
        (a, *codes, a): ["a", "", "", "", "\ufffd\ufffd\ufffda", ""],
    }.items():
        assert run(field, list(tokens))[1] == pieces


def test_tokens_after_the_stop_are_ignored():
    field = FIELDS["bpe"]
    (tokens,) = field.encode(["The eye. STOP jumps STOP"])
    stream, found = run(field, tokens, ["STOP"])
    assert stream.text == "The eye. "
    assert stream.stopped
    assert found[-1] == ""


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "a way of its own"])
def test_the_cost_of_a_token_does_not_grow(name, monkeypatch):
    field, seen = FIELDS[name], []
    decode = Text.decode
    monkeypatch.setattr(Text, "decode", lambda self, ids: seen.append(len(ids)) or decode(self, ids))
    run(field, field.encode([" ".join(TEXTS)])[0] * 11, ["STOP", "it"[::-1]])
    assert max(seen, default=0) <= 23


def test_what_is_wrong_is_told():
    with pytest.raises(SaccadeError, match="a list of strings"):
        Stream(FIELDS["bpe"], "STOP")
    with pytest.raises(SaccadeError, match="none of them empty"):
        Stream(FIELDS["bpe"], [""])
    for name in ("bpe", "characters", "words", "llama"):
        with pytest.raises(SaccadeError, match="no token 9973"):
            Stream(FIELDS[name]).push(9973)
    stream = Stream(FIELDS["bpe"])
    stream.finish()
    assert stream.finish() == ""
    with pytest.raises(SaccadeError, match="finished"):
        stream.push(5)
