"""`/v1/predict`: what any run says to inputs, as `Run.predict` does."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saccade.error import SaccadeError
from saccade.field.result import Result
from saccade.recipe import DecodeConfig
from saccade.serve.answer import attended, whole
from saccade.serve.completion import new_id
from saccade.serve.kept import Answers, Kept
from saccade.serve.opened import Opened
from saccade.serve.passage import finite
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.searches import Searches
from saccade.serve.value import told
from saccade.serve.wire import PredictBody
from saccade.task.answer import Ask

REFUSED = ("matching", "draft")  # of [decode]: slow work that a stranger could ask for


class Prediction:
    """One request to `/v1/predict`."""

    def __init__(self, opened: Opened, body: PredictBody, answers: Answers) -> None:
        self.opened, self.body, self.answers = opened, body, answers
        self.id, self.created = new_id("pred"), int(time.time())
        self.inputs = body.input if isinstance(body.input, list) else [body.input]
        if not 1 <= len(self.inputs) <= opened.limits.prompts:
            raise Refusal(400, f"give 1 to {opened.limits.prompts} inputs at a time; got {len(self.inputs)}", "input")

    async def respond(self, request: Request) -> Response:
        """A result for each input; one that is empty or over-long gets a note instead."""
        raws = await self.opened.clerk.work(lambda: [self.opened.intake.received(each) for each in self.inputs])
        if self.opened.task.y is None:
            raise Refusal(409, f"{self.opened.name} says nothing: it can be looked into alone", "model")
        decode = self._decode()
        answer = self._write if self.opened.writes else self._say
        results, kept = await answer(request, raws, decode)
        self.answers.keep(self.id, kept)
        head = {"id": self.id, "object": "prediction", "created": self.created, "model": self.opened.name}
        return as_json(head | {"results": [_described(each) for each in results]})

    async def _write(self, request: Request, raws: list[Any], decode: DecodeConfig) -> tuple[list[Result], list[Kept]]:
        """Written by the engine, which many share."""
        asks, notes = await self.opened.clerk.work(partial(self._asks, raws, decode))
        fit = [raw for raw, note in zip(raws, notes, strict=True) if note is None]
        searches = Searches(self.opened, fit, asks, decode)
        await whole(request, self.opened.engine, searches.jobs, searches.add)
        found = iter(await attended(request, searches.results()))
        kept = iter([searches.kept(number) for number in range(len(fit))])
        results = [next(found) if note is None else Result(None, "", 0.0, note) for note in notes]
        return results, [next(kept) if note is None else Kept(self.opened.name, None, note) for note in notes]

    async def _say(self, request: Request, raws: list[Any], decode: DecodeConfig) -> tuple[list[Result], list[Kept]]:
        """Said at once, by the model itself."""
        opened = self.opened
        say = partial(opened.task.predict, opened.model, raws, decode)
        results = await attended(request, opened.engine.call(say))

        def kept(raw: Any, note: str | None) -> Kept:
            example = None if note else opened.intake.shown(raw, decode, None)
            return Kept(opened.name, example, note)

        pairs = [(raw, each.note) for raw, each in zip(raws, results, strict=True)]
        return results, await opened.clerk.work(lambda: [kept(*each) for each in pairs])

    def _asks(self, raws: list[Any], decode: DecodeConfig) -> tuple[list[Ask], list[str | None]]:
        """What a search is asked for the inputs that can be answered, and for each of all why it cannot, or None."""
        asks: list[Ask] = []
        notes: list[str | None] = []
        for raw in raws:
            try:
                asks.append(self.opened.intake.asked(raw, decode))
                notes.append(None)
            except SaccadeError:
                notes.append(self.opened.intake.unfit(raw))
                if notes[-1] is None:
                    raise
        return asks, notes

    def _decode(self) -> DecodeConfig:
        given, limits = self.body.options or {}, self.opened.limits
        options = {name: value for name, value in given.items() if value is not None}
        for name in REFUSED:
            if name in options:
                raise Refusal(400, f"{name} is not offered here: leave it out", "options")
        decode = self.opened.run.decode(**options)  # what would do nothing is refused
        for name, most in (("max_tokens", limits.max_tokens), ("beam", limits.beam)):
            if getattr(decode, name) > most and name in options:
                raise Refusal(400, f"{name} = {getattr(decode, name)} is too many: {most} at most", "options")
        if len(decode.stop) > limits.stop or any(len(each) > limits.stop_length for each in decode.stop):
            raise Refusal(400, f"stop takes {limits.stop} strings of {limits.stop_length} characters", "options")
        return decode


def _described(result: Result) -> dict[str, Any]:
    """A result as JSON tells it."""
    score = {"score": finite(result.score), "note": result.note}
    return {"text": result.text, **score, "value": told(result.value)}
