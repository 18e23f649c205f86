"""Text and tokens side by side, for tokenizers of every manner: what is told together belongs together."""

from __future__ import annotations

import pytest

from saccade.decode.stream import Stream
from saccade.field.text.text import Text
from saccade.serve.transcript import News, Transcript, as_number
from saccade.task.answer import Ask

SAID = "it's the eye, well: 3.5 times (as café 中文 says) it jumps."


def told(kind: str, said: str, stop: tuple[str, ...] = ()):
    """A transcript that was given a text token by token, and its pieces: text and the tokens told with it."""
    field = Text.train([SAID * 3], kind, vocab=290)
    stream, transcript = Stream(field, stop), Transcript(field, Ask([], None, 99), {})
    (tokens,) = field.encode([said])
    pieces = []
    for number, token in enumerate(tokens):
        piece = stream.push(token)
        last = number + 1 == len(tokens)
        piece += stream.finish() if last else ""
        reason = "stop" if stream.stopped else "length" if last else None
        pieces.append((piece, transcript.add(News(0, piece, (token,), (-float(number),), reason=reason))))
        if reason:
            break
    return field, tokens, transcript, pieces


@pytest.mark.parametrize("kind", ["characters", "words", "split", "bpe"])
def test_every_token_is_told_once_with_the_text_that_it_begins(kind):
    field, tokens, transcript, pieces = told(kind, SAID)
    assert transcript.text == "".join(piece for piece, _ in pieces) == field.decode(tokens)
    assert transcript.ids == [token.id for token in transcript.told] == tokens
    assert [token.logprob for token in transcript.told] == [-float(number) for number in range(len(tokens))]
    length = 0
    for piece, certain in pieces[:-1]:
        length += len(piece)
        assert all(token.place < length for token in certain)
    places = [token.place for token in transcript.told]
    assert places == sorted(places)
    for token in transcript.told:
        own = field.decode([token.id])
        if "\ufffd" not in own:
            assert transcript.text[token.place :].lstrip().startswith(own.lstrip()), (token, own)


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_the_tokens_of_a_stop_string_are_not_told(kind):
    field, _, transcript, _ = told(kind, SAID, (" times",))
    assert transcript.reason == "stop"
    assert not transcript.ended
    assert transcript.text == SAID[: SAID.index(" times")]
    assert field.decode([token.id for token in transcript.told]) == transcript.text
    assert len(transcript.ids) > len(transcript.told)


def test_what_json_cannot_tell_is_told_as_the_least():
    assert as_number(-1.5) == -1.5
    assert as_number(float("-inf")) == as_number(float("nan")) == -9999.0
