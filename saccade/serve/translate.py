"""`/v1/translate`: what a run writes of texts, such as a translation, whole or streamed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saccade.recipe import DecodeConfig
from saccade.serve.answer import attended, streamed, whole
from saccade.serve.completion import new_id
from saccade.serve.intake import length
from saccade.serve.kept import Answers
from saccade.serve.opened import Opened
from saccade.serve.order import Order
from saccade.serve.passage import Token, completion_logprobs, finite
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.searches import Searches, searches_of
from saccade.serve.wire import TranslateBody
from saccade.task.search import piecewise


class Translation:
    """One request to `/v1/translate`."""

    def __init__(self, opened: Opened, body: TranslateBody, answers: Answers) -> None:
        if not opened.translates:
            raise Refusal(409, f"{opened.name} does not translate: use {opened.route}", "model")
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
        made = await self.opened.clerk.work(partial(self._searches, decode))
        await whole(request, self.opened.engine, made.jobs, made.add)
        results = await attended(request, made.results())
        self.answers.keep(self.id, [made.kept(number) for number in range(len(self.texts))])
        choices = [
            self._choice(number, each.text, passage.told, passage.reason) | {"score": finite(each.score)}
            for number, (each, passage) in enumerate(zip(results, made.passages, strict=True))
        ]
        return as_json(self._head("translation", choices) | {"usage": self._usage(made)})

    async def _streamed(self, request: Request) -> Response:
        if len(self.texts) > 1:
            raise Refusal(400, "one text is streamed at a time: give one, or leave stream out", "text")
        if (self.body.beam or 1) > 1:
            raise Refusal(400, "a beam's best is known at the end: leave out beam, or stream", "beam")
        decode = piecewise(self.opened.decoding({"max_tokens": self.body.max_tokens}))
        made = await self.opened.clerk.work(partial(self._searches, decode))
        return await streamed(request, self.opened.engine, made.jobs, partial(self._pieces, made))

    def _searches(self, decode: DecodeConfig) -> Searches:
        raws = [self.opened.intake.received(each, "text") for each in self.texts]
        return searches_of(self.opened, raws, decode, self.body.logprobs)

    async def _pieces(self, made: Searches, order: Order) -> AsyncIterator[dict[str, Any]]:
        (passage,) = made.passages
        async for news in order.each():
            piece = passage.add(news)
            if passage.reason:
                self.answers.keep(self.id, [made.kept(0)])
            if piece.text or piece.tokens or piece.reason:
                yield self._head("translation.chunk", [self._choice(0, piece.text, piece.tokens, piece.reason)])
        if self.body.usage:
            yield self._head("translation.chunk", []) | {"usage": self._usage(made)}

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.opened.name, "choices": choices}

    def _choice(self, number: int, text: str, tokens: list[Token], reason: str | None) -> dict[str, Any]:
        top = self.body.logprobs
        told = {} if top is None else {"logprobs": completion_logprobs(self.opened, tokens, top)}
        return {"index": number, "text": text, **told, "finish_reason": reason}

    def _usage(self, made: Searches) -> dict[str, int]:
        read = sum(length(each.source) for each in made.asks)
        written = sum(len(each.ids) for each in made.passages)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
