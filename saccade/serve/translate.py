"""`/v1/translate`: what texts become in a run's other language, whole or streamed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saccade.serve.answer import attended, streamed, whole
from saccade.serve.completion import new_id
from saccade.serve.inputs import Inputs
from saccade.serve.kept import Answers
from saccade.serve.opened import Opened
from saccade.serve.order import Order
from saccade.serve.passage import Token, completion_logprobs, finite
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.wire import TranslateBody
from saccade.task.search import piecewise


class Translation:
    """One request to `/v1/translate`."""

    def __init__(self, opened: Opened, body: TranslateBody, answers: Answers) -> None:
        if opened.kind != "translate":
            raise Refusal(409, f"{opened.name} does not translate: it is no encoder-decoder", "model")
        self.opened, self.body, self.answers = opened, body, answers
        self.id, self.created = new_id("trsl"), int(time.time())
        self.texts = [body.text] if isinstance(body.text, str) else body.text

    async def respond(self, request: Request) -> Response:
        """The translations, by the run's beam; streamed, each word is the likeliest."""
        if self.body.stream:
            return await self._streamed(request)
        decode = self.opened.decoding({"beam": self.body.beam, "max_tokens": self.body.max_tokens})
        if self.body.logprobs is not None and decode.beam > 1:
            raise Refusal(400, "a beam search has no logprobs: leave them out, or give beam = 1", "logprobs")
        inputs = await self.opened.clerk.work(partial(Inputs, self.opened, self.texts, decode, self.body.logprobs))
        await whole(request, self.opened.engine, inputs.asks, inputs.add)
        found = await attended(request, inputs.found())
        self.answers.keep(self.id, [inputs.kept(number) for number in range(len(self.texts))])
        choices = [
            self._choice(number, each.text, inputs.passages[number].told, each.reason)
            for number, each in enumerate(found)
        ]
        for choice, each in zip(choices, found, strict=True):
            choice["score"] = finite(each.score)
        return as_json(self._head("translation", choices) | {"usage": self._usage(inputs)})

    async def _streamed(self, request: Request) -> Response:
        if len(self.texts) > 1:
            raise Refusal(400, "one text is streamed at a time: give one, or leave stream out", "text")
        if (self.body.beam or 1) > 1:
            raise Refusal(400, "a beam's best is known at the end: leave out beam, or stream", "beam")
        decode = piecewise(self.opened.decoding({"max_tokens": self.body.max_tokens}))
        inputs = await self.opened.clerk.work(partial(Inputs, self.opened, self.texts, decode, self.body.logprobs))
        return await streamed(request, self.opened.engine, inputs.asks, partial(self._pieces, inputs))

    async def _pieces(self, inputs: Inputs, order: Order) -> AsyncIterator[dict[str, Any]]:
        (passage,) = inputs.passages
        async for news in order.each():
            piece = passage.add(news)
            if passage.reason:
                self.answers.keep(self.id, [inputs.kept(0)])
            if piece.text or piece.tokens or piece.reason:
                yield self._head("translation.chunk", [self._choice(0, piece.text, piece.tokens, piece.reason)])
        if self.body.usage:
            yield self._head("translation.chunk", []) | {"usage": self._usage(inputs)}

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.opened.name, "choices": choices}

    def _choice(self, number: int, text: str, tokens: list[Token], reason: str | None) -> dict[str, Any]:
        top = self.body.logprobs
        told = {} if top is None else {"logprobs": completion_logprobs(self.opened, tokens, top)}
        return {"index": number, "text": text, **told, "finish_reason": reason}

    def _usage(self, inputs: Inputs) -> dict[str, int]:
        read = sum(len(each.source or []) for each in inputs.asks)
        written = sum(len(each.ids) for each in inputs.passages)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
