"""`/v1/predict`: what any run says to inputs, as `Run.predict` does."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, cast

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from saccade.field.result import Result
from saccade.number import finite
from saccade.recipe import DecodeConfig
from saccade.serve.body import LIMITS, Name, Streaming
from saccade.serve.client import attended
from saccade.serve.completion import completion_logprobs, usage
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.served import Served
from saccade.serve.transcript import History, News, Token, Transcript, as_number, bound_logprobs, new_id
from saccade.task.answer import refusal
from saccade.task.answers.one_pass import OnePass
from saccade.task.answers.written import with_source_words
from saccade.task.decode_options import without_beam
from saccade.task.example import Example

REFUSED = ("matching", "draft")  # of [decode]: a stranger could ask for very slow work
PLAIN = (str, bool, int, float, type(None))  # JSON's own values
Pieces = Callable[[AsyncIterator[News]], AsyncIterator[dict[str, Any]]]  # news as the events of a stream
Answered = tuple[list[Result], list[Example | str]]  # the results, and what can be looked into or why it cannot


class PredictBody(Streaming):
    """What any run says to inputs: each as JSON can tell it, by name where a run reads several things at once. A run
    that writes may stream what it writes of one input.
    """

    input: Any = Field(description="an input, or a list of inputs; of a run with several X, objects of these by name")
    options: dict[Name, Any] | None = Field(None, description="those of [decode]")
    logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs, description="of a stream: likeliest tokens told")


class Prediction:
    """One request to `/v1/predict`, or to another route that answers with its results. field: what a refusal calls
    the input; named: how its id begins.
    """

    def __init__(
        self, served: Served, body: PredictBody, history: History, field: str = "input", named: str = "pred"
    ) -> None:
        self.served, self.body, self.history, self.field = served, body, history, field
        self.id, self.created = new_id(named), int(time.time())
        self.inputs = body.input if isinstance(body.input, list) else [body.input]
        self.transcripts: list[Transcript] = []  # of what is written
        if not 1 <= len(self.inputs) <= served.limits.prompts:
            raise Refusal(400, f"give 1 to {served.limits.prompts} inputs at a time; got {len(self.inputs)}", "input")

    async def respond(self, request: Request) -> Response:
        """A result for each input; one that is empty or over-long gets a note instead. Or what is written of the one
        input, piece by piece.
        """
        if self.body.stream:
            return await self.stream(request, self._decode(), self._pieces)
        if self.body.logprobs is not None:
            raise Refusal(400, "logprobs are told of a stream: give stream = true, or leave them out", "logprobs")
        results = await self.results(request)
        return as_json(self.head("prediction") | {"results": [described(each) for each in results]})

    def head(self, kind: str) -> dict[str, Any]:
        """What every answer begins with."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.served.name}

    async def results(self, request: Request, decode: DecodeConfig | None = None) -> list[Result]:
        """A result for each input; what was answered can be looked into by the id. decode: if not what the body asks
        for.
        """
        served = self.served
        raws = await served.reading.work(lambda: [served.inputs.received(each, self.field) for each in self.inputs])
        if served.task.y is None:
            raise Refusal(409, f"{served.name} has no output to predict: use /v1/inspect to look inside", "model")
        decode = self._decode() if decode is None else decode
        answer = self._write if served.writes else self._say
        results, choices = await answer(request, raws, decode)
        if len(results) == 1 and results[0].value is None and results[0].note is not None:
            raise Refusal(400, str(refusal(served.task, results[0].note)), self.field)
        self.history.keep(self.id, served.name, choices)
        return results

    async def _write(self, request: Request, raws: list[Any], decode: DecodeConfig) -> Answered:
        """The engine writes the results, in one batch with those of other requests."""
        served = self.served
        asks = await served.reading.work(partial(served.inputs.asks, raws, decode))
        transcripts = {n: served.transcript(ask, decode) for n, ask in enumerate(asks) if ask.note is None}
        self.transcripts = list(transcripts.values())
        await served.engine.write(request, self.transcripts)
        results = [Result(None, "", 0.0, ask.note) for ask in asks]
        choices: list[Example | str] = [ask.note or "" for ask in asks]

        async def settle() -> None:
            for number, each in transcripts.items():
                results[number] = await result_of(served, raws[number], each, decode)
                choices[number] = served.example(each)

        await attended(request, settle())
        return results, choices

    async def _say(self, request: Request, raws: list[Any], decode: DecodeConfig) -> Answered:
        """The model gives the results of all inputs in one call."""
        served, answer = self.served, cast(OnePass, self.served.task.answer)
        read = await served.reading.work(lambda: served.inputs.encoded(raws))
        results = await attended(request, served.engine.call(lambda: answer.results(served.model, read, decode)))

        def examples() -> list[Example | str]:
            return [note or Example(read.collated([n]), [], [], False) for n, note in enumerate(read.notes)]

        return results, await served.reading.work(examples)

    async def stream(self, request: Request, decode: DecodeConfig, pieces: Pieces) -> Response:
        """What the run writes of the one input, each token the likeliest or drawn, as `pieces` puts it."""
        if not self.served.writes:
            raise Refusal(400, f"{self.served.name} says all at once: leave out stream", "stream")
        if len(self.inputs) > 1:
            raise Refusal(400, "one input is streamed at a time: give one, or leave stream out", self.field)
        self.transcripts = [await self.served.reading.work(partial(self._transcript, without_beam(decode)))]
        return await self.served.engine.stream(request, self.transcripts, pieces)

    def add(self, news: News) -> list[Token]:
        """The tokens to give out now; once all is written, it can be looked into."""
        (transcript,) = self.transcripts
        tokens = transcript.add(news)
        if transcript.reason:
            self.history.keep(self.id, self.served.name, [self.served.example(transcript)])
        return tokens

    def _transcript(self, decode: DecodeConfig) -> Transcript:
        served, top = self.served, self.body.logprobs
        (ask,) = served.inputs.answerable([served.inputs.received(self.inputs[0], self.field)], decode)
        found = served.transcript(ask, decode, top=top)
        bound_logprobs(served.limits, found.options["max_tokens"], top)
        return found

    async def _pieces(self, news: AsyncIterator[News]) -> AsyncIterator[dict[str, Any]]:
        head, top = self.head("prediction.chunk"), self.body.logprobs
        async for each in news:
            tokens = self.add(each)
            reason = self.transcripts[0].reason
            if each.piece or tokens or reason:
                logprobs = {} if top is None else {"logprobs": completion_logprobs(self.served, tokens, top)}
                yield head | {"choices": [{"index": 0, "text": each.piece, **logprobs, "finish_reason": reason}]}
        if self.body.usage:
            yield head | {"choices": [], "usage": usage(0, self.transcripts)}

    def _decode(self) -> DecodeConfig:
        given, limits = self.body.options or {}, self.served.limits
        options = {name: value for name, value in given.items() if value is not None}
        for name in REFUSED:
            if name in options:
                raise Refusal(400, f"{name} is not offered here: leave it out", "options")
        decode = self.served.run.decode(**options)  # refuses options without an effect
        for name, most in (("max_tokens", limits.max_tokens), ("beam", limits.beam)):
            if getattr(decode, name) > most and name in options:
                raise Refusal(400, f"{name} = {getattr(decode, name)} is too many: {most} at most", "options")
        if len(decode.stop) > limits.stop or any(len(each) > limits.stop_length for each in decode.stop):
            raise Refusal(400, f"stop takes {limits.stop} strings of {limits.stop_length} characters", "options")
        return decode


async def result_of(served: Served, raw: Any, transcript: Transcript, decode: DecodeConfig) -> Result:
    """What was written for an input; with replace_unknown, words of the source stand in place of unknown ones."""
    ask, ids, text = transcript.ask, transcript.ids, transcript.text
    if decode.replace_unknown and served.text.unknown in ids:
        replace = partial(with_source_words, served.text, served.model, raw, ask.source, ask.prompt, ids)
        text = await served.engine.call(replace)
    return Result(text, text, transcript.score)


def described(result: Result) -> dict[str, Any]:
    """A result in JSON's values."""
    score = {"score": as_number(result.score), "note": result.note}
    chances = {} if result.probabilities is None else {"probabilities": as_plain(result.probabilities)}
    return {"text": result.text, **score, "value": as_plain(result.value), **chances}


def as_plain(value: Any) -> Any:
    """A value in JSON's own values: an array as its numbers, null for what JSON cannot express."""
    if isinstance(value, PLAIN):
        return finite(value)
    if isinstance(value, Mapping):
        return {str(name): as_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(each) for each in value]
    return as_plain(value.tolist()) if hasattr(value, "tolist") else None
