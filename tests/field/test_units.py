"""Sides: tokens as people read them, and the words they make up."""

from __future__ import annotations

import re

import pytest
import tasks
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade.field.text.text import Text
from saccade.field.text.units import token_side, token_text
from saccade.look.look import look_at

CORPUS = ["the eye jumps, and rests.", "das Auge springt; 3.5 Grad (schnell)", "日本語 тест l'œil"]
TEXTS = {kind: Text.train(CORPUS, kind, vocab=290) for kind in ("bpe", "characters", "words", "split")}


@pytest.mark.parametrize(
    ("kind", "written", "words"),
    [
        ("characters", "the eye, jumps", ["the", "eye", ",", "jumps"]),
        ("bpe", "the eye, jumps", ["the", "eye", ",", "jumps"]),
        ("words", "the eye, jumps", ["the", "eye", ",", "jumps"]),
        ("split", "the eye jumps,", ["the", "eye", "jumps,"]),
        ("bpe", "1979-05-03", ["1979", "-", "05", "-", "03"]),
        ("bpe", "l'œil (and)", ["l'œil", "(", "and", ")"]),
        ("bpe", "a  b\n\nc", ["a", "b", "c"]),
        ("characters", "e   y", ["e", "y"]),
        ("bpe", " ", [" "]),
    ],
)
def test_words(kind, written, words):
    text = TEXTS[kind]
    assert token_side(text, text.encode([written])[0]).words == words


def test_letters_that_are_written_without_spaces_stand_alone():
    text = TEXTS["characters"]
    assert token_side(text, text.encode(["日本語 the"])[0]).words == ["日", "本", "語", "the"]


def test_special_tokens_stand_alone_under_their_names():
    text = TEXTS["bpe"]
    side = token_side(text, [text.begin, *text.encode(["the eye"])[0], text.end, text.end])
    assert side.words == ["<begin>", "the", "eye", "<end>", "<end>"]
    assert [token.special for token in side.tokens] == [token.text in ("<begin>", "<end>") for token in side.tokens]


def test_half_a_character_is_shown_as_its_bytes():
    text = TEXTS["bpe"]
    side = token_side(text, text.encode(["é"])[0])
    assert "".join(token.text for token in side.tokens) in ("é", "\\xc3\\xa9")


@given(st.text(), st.sampled_from(["bpe", "characters"]))
def test_every_token_has_one_word_and_nothing_is_lost(written, kind):
    text = TEXTS[kind]
    ids = text.encode([written])[0]
    side = token_side(text, ids)
    assert [token.id for token in side.tokens] == ids
    numbers = [token.word for token in side.tokens]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(len(side.words)))
    for number, word in enumerate(side.words):
        spelt = b"".join(_bytes(text, token) for token in side.tokens if token.word == number)
        assert word in (spelt.decode(), spelt.decode().strip())


def _bytes(text, token):
    return text.spell(token.id, first=True) or token.text.encode()  # what is unknown writes its name


@pytest.mark.parametrize("written", ["Hi 😀 שלום", "中文, тест!", "é"])
def test_characters_of_several_tokens_are_whole_in_words_and_texts(written):
    text = TEXTS["bpe"]
    ids = text.encode([written])[0]
    side = token_side(text, ids)
    assert len(ids) > len(written), "every character would be a token"
    assert side.text == written
    spaced = re.sub(r"([中文,!])", r" \1 ", written)
    assert side.words == spaced.split()


def test_half_a_character_is_no_part_of_the_next_word():
    text = TEXTS["bpe"]
    cut = text.encode(["中"])[0][:1]
    assert token_side(text, [*cut, *text.encode([" the eye"])[0]]).words == ["\\xe4", "the", "eye"]


def test_a_text_goes_on_with_another_token_unless_it_would_end_in_half_a_character():
    text = TEXTS["bpe"]
    config = saccade.ModelConfig(vocab=text.vocab, width=12, heads=3, decoder=1, head="vocabulary")
    (ids,), (half, *_), (other,) = text.encode(["\u4e2d the eye"]), text.encode(["\u4e2d"])[0], text.encode(["s"])
    task = tasks.write(text)
    seen = look_at(task, saccade.build(config), tasks.example(task, ids[:-1], ids[-1:]))
    assert seen.instead(len(ids) - 1, *other) == text.decode([*ids[:-1], *other])
    for place, token, why in (
        (3, half, "part of a character"),
        (3, text.end, "special"),
        (len(ids), 7, "does not exist"),
        (True, 7, "does not exist"),
        (0, text.vocab, "there is no token"),
    ):
        with pytest.raises(saccade.SaccadeError, match=why):
            seen.instead(place, token)


def test_what_the_vocabulary_lacks_is_part_of_its_word():
    text = TEXTS["characters"]
    side = token_side(text, text.encode(["the e☃e"])[0])
    assert side.words == ["the", "e<unknown>e"]
    assert not any(token.special for token in side.tokens)


def test_a_token_that_the_tokenizer_lacks_has_a_number():
    """The table of a model is often longer than its tokenizer."""
    text = Text.train(["the eye jumps"], "characters", vocab=60)
    assert token_text(text, text.vocab + 3) == f"<{text.vocab + 3}>"
