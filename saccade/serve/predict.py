"""`/v1/predict`: what any run says to inputs, as `Run.predict` does."""

from __future__ import annotations

import time
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from saccade.recipe import DecodeConfig
from saccade.serve.answer import attended, whole
from saccade.serve.completion import new_id
from saccade.serve.inputs import Found, Inputs
from saccade.serve.kept import Answers
from saccade.serve.opened import Opened
from saccade.serve.passage import finite
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.wire import PredictBody

REFUSED = ("matching", "draft")  # of [decode]: slow work that a stranger could ask for


class Prediction:
    """One request to `/v1/predict`."""

    def __init__(self, opened: Opened, body: PredictBody, answers: Answers) -> None:
        self.opened, self.body, self.answers = opened, body, answers
        self.id, self.created = new_id("pred"), int(time.time())
        self.texts = [body.input] if isinstance(body.input, str) else body.input

    async def respond(self, request: Request) -> Response:
        """A result for each input; one that is empty or over-long gets a note instead."""
        if self.opened.kind == "read":
            raise Refusal(409, f"{self.opened.name} says nothing: it can be looked into alone", "model")
        decode = self._decode()
        if self.opened.kind == "classify":
            found = await attended(request, self.opened.engine.call(partial(self._label, decode)))
        else:
            found = await self._write(request, decode)
        results = [{"text": each.text, "score": finite(each.score), "note": each.note} for each in found]
        head = {"id": self.id, "object": "prediction", "created": self.created, "model": self.opened.name}
        return as_json(head | {"results": results})

    async def _write(self, request: Request, decode: DecodeConfig) -> list[Found]:
        notes = await self.opened.clerk.work(lambda: [self.opened.unfit(each) for each in self.texts])
        fit = [text for text, note in zip(self.texts, notes, strict=True) if note is None]
        inputs = await self.opened.clerk.work(partial(Inputs, self.opened, fit, decode))
        await whole(request, self.opened.engine, inputs.asks, inputs.add)
        found = iter(await attended(request, inputs.found()))
        self.answers.keep(self.id, [inputs.kept(number) for number in range(len(fit))])
        return [next(found) if note is None else Found("", 0.0, note=note) for note in notes]

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

    def _label(self, decode: DecodeConfig) -> list[Found]:
        assert self.opened.task is not None
        results = self.opened.task.predict(self.opened.model, self.texts, decode, self.opened.run.limit)
        return [Found(each.text, each.score, note=each.note) for each in results]
