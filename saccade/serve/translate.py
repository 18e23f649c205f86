"""`/v1/translate`: what a run writes of texts, such as a translation, whole or streamed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from saccade.recipe import DecodeConfig
from saccade.serve.body import LIMITS, Several, Streaming, Written
from saccade.serve.client import attended
from saccade.serve.completion import completion_logprobs, usage
from saccade.serve.predict import result_of
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.served import Served, length
from saccade.serve.transcript import History, News, Token, Transcript, as_number, bound_logprobs, new_id
from saccade.task.decode_options import without_beam


class TranslateBody(Streaming):
    """What a run writes of a text."""

    text: Written | Several
    beam: int | None = Field(None, ge=1, le=LIMITS.beam)
    max_tokens: int | None = Field(None, ge=1, le=LIMITS.max_tokens)
    logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs)


class Translation:
    """One request to `/v1/translate`."""

    def __init__(self, served: Served, body: TranslateBody, history: History) -> None:
        if not served.translates:
            raise Refusal(409, f"{served.name} does not translate: use {served.route}", "model")
        self.served, self.body, self.history = served, body, history
        self.id, self.created = new_id("trsl"), int(time.time())
        self.texts = [body.text] if isinstance(body.text, str) else body.text
        self.transcripts: list[Transcript] = []

    async def respond(self, request: Request) -> Response:
        """The translations, by the run's beam; streamed, each word is the likeliest."""
        decode = self._stream_options() if self.body.stream else self._search_options()
        self.transcripts = await self.served.reading.work(partial(self._transcripts, decode))
        if self.body.stream:
            return await self.served.engine.stream(request, self.transcripts, self._pieces)
        await self.served.engine.write(request, self.transcripts)
        choices = await attended(request, self._choices(decode))
        self._keep()
        return as_json(self._head("translation", choices) | {"usage": self._usage()})

    def _search_options(self) -> DecodeConfig:
        decode = self.served.decoding({"beam": self.body.beam, "max_tokens": self.body.max_tokens})
        if self.body.logprobs is not None and decode.beam > 1:
            raise Refusal(400, "a beam search has no logprobs: leave them out, or give beam = 1", "logprobs")
        return decode

    def _stream_options(self) -> DecodeConfig:
        if len(self.texts) > 1:
            raise Refusal(400, "one text is streamed at a time: give one, or leave stream out", "text")
        if (self.body.beam or 1) > 1:
            raise Refusal(400, "the best of a beam is known only at the end: leave out beam, or stream", "beam")
        return without_beam(self.served.decoding({"max_tokens": self.body.max_tokens}))

    def _transcripts(self, decode: DecodeConfig) -> list[Transcript]:
        """One for each text."""
        served, top = self.served, self.body.logprobs
        raws = [served.inputs.received(each, "text") for each in self.texts]
        found = [served.transcript(ask, decode, top=top) for ask in served.inputs.answerable(raws, decode)]
        bound_logprobs(served.limits, sum(each.options["max_tokens"] for each in found), top)
        return found

    async def _pieces(self, news: AsyncIterator[News]) -> AsyncIterator[dict[str, Any]]:
        (transcript,) = self.transcripts
        async for each in news:
            tokens = transcript.add(each)
            if transcript.reason:
                self._keep()
            if each.piece or tokens or transcript.reason:
                choice = self._choice(0, each.piece, tokens, transcript.reason)
                yield self._head("translation.chunk", [choice])
        if self.body.usage:
            yield self._head("translation.chunk", []) | {"usage": self._usage()}

    async def _choices(self, decode: DecodeConfig) -> list[dict[str, Any]]:
        choices = []
        for number, (raw, each) in enumerate(zip(self.texts, self.transcripts, strict=True)):
            result = await result_of(self.served, raw, each, decode)
            choice = self._choice(number, result.text, each.told, each.reason)
            choices.append(choice | {"score": as_number(result.score)})
        return choices

    def _keep(self) -> None:
        self.history.keep(self.id, self.served.name, [self.served.example(each) for each in self.transcripts])

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.served.name, "choices": choices}

    def _choice(self, number: int, text: str, tokens: list[Token], reason: str | None) -> dict[str, Any]:
        top = self.body.logprobs
        logprobs = {} if top is None else {"logprobs": completion_logprobs(self.served, tokens, top)}
        return {"index": number, "text": text, **logprobs, "finish_reason": reason}

    def _usage(self) -> dict[str, int]:
        return usage(sum(length(each.ask.source) for each in self.transcripts), self.transcripts)
