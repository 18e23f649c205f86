"""`Passage`: what one choice of an answer has become so far, text and tokens side by side, as OpenAI tells them.

A token is told as soon as the text that it begins is; so a piece of text comes with its tokens, and those of a stop
string, whose text is never told, are not told either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from saccade.decode.stream import READERS, Words
from saccade.serve.opened import Opened
from saccade.serve.order import News
from saccade.serve.refusal import Refusal

FINISHED = {"end": "stop", "stop": "stop", "length": "length", "stuck": "stop"}
LEAST = -9999.0  # stands for minus infinity, which JSON cannot tell


class Token(NamedTuple):
    """A written token, where its text begins, and the likeliest in its place."""

    id: int
    place: int
    logprob: float | None
    top: list[tuple[int, float]]


class Piece(NamedTuple):
    """What is new: text, and the tokens that begin in it."""

    text: str
    tokens: list[Token]
    reason: str | None


class Places:
    """Where the text of each token begins, in characters."""

    def __init__(self, opened: Opened, start: int = 0) -> None:
        self._reader = READERS[opened.text.manner](opened.text)
        self._known = start

    def push(self, token: int) -> int:
        """The place of the next token."""
        before = self._known
        self._known += len(self._reader.push(token))
        # Words are certain one token late: what became certain now is the word before.
        return self._known if isinstance(self._reader, Words) else before


class Passage:
    """`add` news, and be given what can be told. ids: all tokens that were written, whether told or not."""

    def __init__(self, opened: Opened, start: int = 0) -> None:
        self.opened, self.text = opened, ""
        self.ids: list[int] = []
        self.told: list[Token] = []
        self._places, self._start = Places(opened, start), start
        self._held: list[Token] = []
        self.reason: str | None = None  # in OpenAI's words
        self.ended = False  # the model wrote the end itself

    def add(self, news: News) -> Piece:
        """What these news make certain."""
        self.text += news.piece
        self.ids += news.tokens
        tops = news.top or ([],) * len(news.tokens)
        for token, logprob, top in zip(news.tokens, news.logprobs, tops, strict=True):
            self._held.append(Token(token, self._places.push(token), logprob, top))
        self.reason = news.reason if news.reason is None else FINISHED.get(news.reason, news.reason)
        self.ended = news.reason == "end"
        tokens = self._certain(all_of_them=news.reason not in (None, "stop"))
        self.told += tokens
        return Piece(news.piece, tokens, self.reason)

    def _certain(self, all_of_them: bool) -> list[Token]:
        end = self._start + len(self.text)
        count = next((n for n, each in enumerate(self._held) if each.place >= end), len(self._held))
        count = len(self._held) if all_of_them else count
        tokens, self._held = self._held[:count], self._held[count:]
        return tokens


def bounded(opened: Opened, tokens: int, top: int | None) -> None:
    """Refuses answers that would tell far more numbers than anybody reads."""
    most = opened.limits.told
    if top is not None and tokens * (top + 1) > most:
        raise Refusal(
            400,
            f"{tokens} tokens with {top} logprobs beside each are too much for one answer: {most} numbers are told",
            "logprobs",
        )


def completion_logprobs(opened: Opened, tokens: list[Token], top: int) -> dict[str, Any]:
    """As `logprobs` of OpenAI's completions."""
    best = [None if each.logprob is None else _named(opened, each, top) for each in tokens]
    return {
        "tokens": [opened.spell(each.id)[0] for each in tokens],
        "token_logprobs": [None if each.logprob is None else finite(each.logprob) for each in tokens],
        "top_logprobs": best if top else None,
        "text_offset": [each.place for each in tokens],
        "token_ids": [each.id for each in tokens],
    }


def chat_logprobs(opened: Opened, tokens: list[Token], top: int) -> dict[str, Any]:
    """As `logprobs` of OpenAI's chat completions."""

    def told(token: int, logprob: float) -> dict[str, Any]:
        name, written = opened.spell(token)
        return {"token": name, "logprob": finite(logprob), "bytes": list(written)}

    content = [
        told(each.id, each.logprob or 0.0) | {"top_logprobs": [told(*one) for one in each.top[:top]]} for each in tokens
    ]
    return {"content": content, "refusal": None}


def finite(logprob: float) -> float:
    """A log-probability that JSON can tell; broken weights give none."""
    return logprob if logprob > LEAST else LEAST  # not `max`, which would let through what is no number


def _named(opened: Opened, token: Token, top: int) -> dict[str, float]:
    """The likeliest tokens by their texts; the one that was written is among them, as OpenAI's is."""
    found = {opened.spell(each)[0]: finite(logprob) for each, logprob in reversed(token.top[:top])}
    best = dict(reversed(list(found.items())))
    return best if token.logprob is None else best | {opened.spell(token.id)[0]: finite(token.logprob)}
