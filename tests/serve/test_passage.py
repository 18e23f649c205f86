"""Text and tokens side by side, for tokenizers of every manner: what is told together belongs together."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from saccade.decode.stream import Stream
from saccade.field.text.text import Text
from saccade.serve.order import News
from saccade.serve.passage import Passage, finite

SAID = "it's the eye, well: 3.5 times (as café 中文 says) it jumps."


def told(kind: str, said: str, stop: tuple[str, ...] = ()):
    """A passage that was given a text token by token, and its pieces."""
    field = Text.train([SAID * 3], kind, vocab=290)
    stream, passage = Stream(field, stop), Passage(SimpleNamespace(text=field))
    (tokens,) = field.encode([said])
    pieces = []
    for number, token in enumerate(tokens):
        piece = stream.push(token)
        last = number + 1 == len(tokens)
        piece += stream.finish() if last else ""
        reason = "stop" if stream.stopped else "length" if last else None
        pieces.append(passage.add(News(0, piece, (token,), (-float(number),), reason=reason)))
        if reason:
            break
    return field, tokens, passage, pieces


@pytest.mark.parametrize("kind", ["characters", "words", "split", "bpe"])
def test_every_token_is_told_once_with_the_text_that_it_begins(kind):
    field, tokens, passage, pieces = told(kind, SAID)
    assert passage.text == "".join(piece.text for piece in pieces) == field.decode(tokens)
    assert passage.ids == [token.id for token in passage.told] == tokens
    assert [token.logprob for token in passage.told] == [-float(number) for number in range(len(tokens))]
    length = 0
    for piece in pieces:
        length += len(piece.text)
        assert piece.reason or all(token.place < length for token in piece.tokens)
    places = [token.place for token in passage.told]
    assert places == sorted(places)
    for token in passage.told:
        own = field.decode([token.id])
        if "\ufffd" not in own:
            assert passage.text[token.place :].lstrip().startswith(own.lstrip()), (token, own)


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_the_tokens_of_a_stop_string_are_not_told(kind):
    field, _, passage, _ = told(kind, SAID, (" times",))
    assert passage.reason == "stop"
    assert not passage.ended
    assert passage.text == SAID[: SAID.index(" times")]
    assert field.decode([token.id for token in passage.told]) == passage.text
    assert len(passage.ids) > len(passage.told)


def test_what_json_cannot_tell_is_told_as_the_least():
    assert finite(-1.5) == -1.5
    assert finite(float("-inf")) == finite(float("nan")) == -9999.0
