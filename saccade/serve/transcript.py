"""`Transcript`: one choice of an answer: what a search is asked to write, and what it has written so far. `History`:
what was read and written for the last answers, so that they can be looked into by their ids.

A token is given out as soon as text from it on is, so that a piece of text comes with its tokens. The text of a stop
string is never given out, and neither are its tokens.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from saccade.decode.request import BeamRequest, Request
from saccade.decode.scheduler import Scheduler
from saccade.decode.sequence import Sequence as Found
from saccade.decode.stream import READERS, Words
from saccade.field.text.text import Text
from saccade.recipe import DecodeConfig
from saccade.serve.limit import Limits
from saccade.serve.refusal import Refusal
from saccade.task.answer import Ask
from saccade.task.decode_options import BEAM
from saccade.task.example import Example

CHOICE = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
FINISHED = {"end": "stop", "stop": "stop", "length": "length", "stuck": "stop"}  # in OpenAI's words
LEAST = -9999.0  # stands for minus infinity, which JSON cannot express


class News(NamedTuple):
    """What was written of a sequence since the last news: a copy, made by the engine's thread for the event loop.

    reason: why it ended; found: what a beam search found.
    """

    number: int = 0
    piece: str = ""
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    top: tuple[list[tuple[int, float]], ...] = ()
    reason: str | None = None
    score: float = 0.0  # the sum of all its log-probabilities, once it has ended
    problem: Exception | None = None
    found: tuple[Found, ...] = ()


class Token(NamedTuple):
    """A written token, where its text begins, and the likeliest in its place."""

    id: int
    place: int
    logprob: float | None
    top: list[tuple[int, float]]


class Transcript:
    """ask, options: what a scheduler is asked to write; start: where its text begins, in characters.

    The engine's thread reads only these two. All else belongs to the event loop: ids, every token that was written;
    told, those that were given out with their text; text; score; reason, why it ended, in OpenAI's words.
    """

    def __init__(self, text: Text, ask: Ask, options: Mapping[str, Any], start: int = 0) -> None:
        self.ask, self.options = ask, options
        self.ids: list[int] = []
        self.told: list[Token] = []
        self.text, self.score = "", 0.0
        self.reason: str | None = None
        self.ended = False  # the model wrote the end itself
        self._vocabulary, self._places, self._start = text, Places(text, start), start
        self._held: list[Token] = []

    def submit(self, scheduler: Scheduler) -> Request | BeamRequest:
        """Hands the ask to a scheduler, which may refuse it."""
        submit = scheduler.submit_beam if "beam" in self.options else scheduler.submit
        return submit(self.ask.prompt, source=self.ask.source, **self.options)

    def add(self, news: News) -> list[Token]:
        """Adds what was written; returns the tokens to give out now, beside the text `news.piece`."""
        if news.found:
            return self._replace(news.found[0])
        self.text += news.piece
        self.ids += news.tokens
        tops = news.top or ([],) * len(news.tokens)
        for token, logprob, top in zip(news.tokens, news.logprobs, tops, strict=True):
            self._held.append(Token(token, self._places.push(token), logprob, top))
        self.reason = news.reason if news.reason is None else FINISHED.get(news.reason, news.reason)
        self.ended, self.score = news.reason == "end", news.score
        tokens = self._release(all_of_them=news.reason not in (None, "stop"))
        self.told += tokens
        return tokens

    def _replace(self, best: Found) -> list[Token]:
        """Takes over the best of a beam, which is known only at the end and has no log-probabilities of its tokens."""
        self.ids, self.text, self.score = best.tokens, self._vocabulary.decode(best.tokens), best.logprob
        self.ended, self.reason = best.finished, FINISHED["end" if best.finished else "length"]
        return []

    def _release(self, all_of_them: bool) -> list[Token]:
        """The held tokens that begin within the text so far, or all of them."""
        end = self._start + len(self.text)
        certain = [all_of_them or each.place < end for each in self._held]
        count = certain.index(False) if False in certain else len(certain)
        tokens, self._held = self._held[:count], self._held[count:]
        return tokens


class Places:
    """Where the text of each token begins, in characters."""

    def __init__(self, text: Text, start: int = 0) -> None:
        self._reader = READERS[text.manner](text)
        self._known = start

    def push(self, token: int) -> int:
        """The place of the next token."""
        before = self._known
        self._known += len(self._reader.push(token))
        # The reader of words is one token late: what it has just given out is the word before this token.
        return self._known if isinstance(self._reader, Words) else before


class History:
    """The last `most` answers by their ids, with so many bytes in all at most; the oldest are forgotten first.

    A choice of an answer is what a run read and wrote; of an input that has no answer, the note that says why.
    """

    def __init__(self, most: int, nbytes: int) -> None:
        self.most, self.nbytes = most, nbytes
        self._held = 0
        self._answers: OrderedDict[str, tuple[str, Sequence[Example | str]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def keep(self, id: str, model: str, choices: Sequence[Example | str]) -> None:
        """Keeps an answer as the newest; model: the run that gave it."""
        self._answers[id] = model, choices
        self._held += _nbytes(choices)
        while self._answers and (len(self._answers) > self.most or self._held > self.nbytes):
            _, (_, forgotten) = self._answers.popitem(last=False)
            self._held -= _nbytes(forgotten)

    def find(self, id: str, number: int = 0) -> tuple[str, Example]:
        """The run that gave a choice of an answer, and what it read and wrote."""
        if id not in self._answers:
            raise Refusal(404, f"no answer is called {id!r:.80}: the last {self.most} are kept", "completion")
        model, choices = self._answers[id]
        if number >= len(choices):
            raise Refusal(404, f"this answer has {len(choices)} choices: there is no choice {number}", "choice")
        choice = choices[number]
        if isinstance(choice, str):
            raise Refusal(400, f"there is nothing to look into: this input is {choice}", "completion")
        return model, choice


def new_id(kind: str) -> str:
    """An id that cannot be guessed: whoever knows it may look into the answer."""
    return f"{kind}-{secrets.token_hex(16)}"


def drawn_options(decode: DecodeConfig, number: int) -> dict[str, Any]:
    """The options of `Scheduler.submit`; sample number i draws with seed + i."""
    seed = None if decode.seed is None else decode.seed + number
    return {**{name: getattr(decode, name) for name in CHOICE}, "seed": seed, "stop": decode.stop}


def beam_options(decode: DecodeConfig, limits: Limits) -> dict[str, Any]:
    """The options of `Scheduler.submit_beam`; refuses those that it does not have."""
    if decode.beam > limits.beam:
        raise Refusal(400, f"beam = {decode.beam} is more than the {limits.beam} offered here", "beam")
    usual = DecodeConfig()  # type: ignore[call-arg]
    wrong = [name for name in (*CHOICE, "stop", "matching") if getattr(decode, name) != getattr(usual, name)]
    if wrong:
        raise Refusal(400, f"a beam search does not know {wrong[0]}: leave it out, or give beam = 1", wrong[0])
    return {name: getattr(decode, name) for name in BEAM}


def bound_logprobs(limits: Limits, tokens: int, top: int | None) -> None:
    """Refuses answers with far more log-probabilities than anybody reads."""
    if top is not None and tokens * (top + 1) > limits.told:
        raise Refusal(
            400,
            f"{tokens} tokens with {top} logprobs beside each are too many for one answer: {limits.told} at most",
            "logprobs",
        )


def as_number(logprob: float) -> float:
    """A log-probability that JSON can express; `LEAST` for minus infinity, and for NaN of broken weights."""
    return logprob if logprob > LEAST else LEAST  # not `max`, which would let NaN through


def _nbytes(choices: Sequence[Example | str]) -> int:
    return sum(each.nbytes for each in choices if not isinstance(each, str))
