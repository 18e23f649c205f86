"""`/v1/chat/completions`: chats in OpenAI's shapes, for runs that brought a chat template."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saccade.serve.client import attended
from saccade.serve.completion import sampling, usage
from saccade.serve.message import ChatBody
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.served import Served
from saccade.serve.transcript import History, News, Token, Transcript, as_number, bound_logprobs, new_id


class Chat:
    """One request: a chat that goes on in n ways."""

    def __init__(self, served: Served, body: ChatBody, history: History) -> None:
        if not served.continues:
            raise Refusal(
                409, f"{served.name} does not go on with texts, so it cannot chat: use {served.route}", "model"
            )
        if served.template is None:
            why = served.template_problem or f"{served.name} has no chat template"
            raise Refusal(409, f"{why}: use /v1/completions", "model")
        if any(each.pictures for each in body.messages):
            raise Refusal(400, f"{served.name} reads texts: leave the pictures out", "messages")
        if body.max_tokens is not None and body.max_completion_tokens not in (None, body.max_tokens):
            raise Refusal(400, "max_tokens and max_completion_tokens mean the same: give one", "max_tokens")
        if body.top_logprobs and not body.logprobs:
            raise Refusal(400, "top_logprobs needs logprobs = true", "top_logprobs")
        self.served, self.body, self.history, self.template = served, body, history, served.template
        self.id, self.created, self.n = new_id("chatcmpl"), int(time.time()), body.n or 1
        self.top = body.top_logprobs or 0
        self.prompt: list[int] = []
        self.transcripts: list[Transcript] = []

    async def respond(self, request: Request) -> Response:
        """The answer, in pieces where the request asks for a stream."""
        self.prompt = await attended(request, self.served.reading.work(self._tokens))
        self.transcripts = self._transcripts()
        most = sum(each.options["max_tokens"] for each in self.transcripts)
        bound_logprobs(self.served.limits, most, self.top if self.body.logprobs else None)
        if self.body.stream:
            return await self.served.engine.stream(request, self.transcripts, self._pieces)
        await self.served.engine.write(request, self.transcripts)
        self._keep()
        return as_json(self._answer())

    def _tokens(self) -> list[int]:
        return self.served.inputs.tokens(self.template.render([each.plain() for each in self.body.messages]))

    def _transcripts(self) -> list[Transcript]:
        most = self.body.max_completion_tokens if self.body.max_tokens is None else self.body.max_tokens
        served, decode = self.served, sampling(self.served, self.body, most)
        ask = served.inputs.continuation(self.prompt, decode, cut=most is None)
        return [
            served.transcript(ask, decode, top=self.top, number=number, end=served.turn_ends)
            for number in range(self.n)
        ]

    async def _pieces(self, news: AsyncIterator[News]) -> AsyncIterator[dict[str, Any]]:
        for number in range(self.n):
            yield self._chunk([self._delta(number, {"role": "assistant", "content": ""}, [], None)])
        async for each in news:
            transcript = self.transcripts[each.number]
            tokens = transcript.add(each)
            if transcript.reason and all(one.reason for one in self.transcripts):
                self._keep()
            if each.piece or tokens:
                yield self._chunk([self._delta(each.number, {"content": each.piece}, tokens, None)])
            if transcript.reason:
                yield self._chunk([self._delta(each.number, {}, [], transcript.reason)])
        if self.body.usage:
            yield self._chunk([]) | {"usage": usage(len(self.prompt), self.transcripts)}

    def _keep(self) -> None:
        self.history.keep(self.id, self.served.name, [self.served.example(each) for each in self.transcripts])

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head("chat.completion.chunk") | {"choices": choices}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.served.name}

    def _delta(self, number: int, delta: dict[str, str], tokens: list[Token], reason: str | None) -> dict[str, Any]:
        return {"index": number, "delta": delta, "logprobs": self._logprobs(tokens), "finish_reason": reason}

    def _logprobs(self, tokens: list[Token]) -> dict[str, Any] | None:
        return chat_logprobs(self.served, tokens, self.top) if self.body.logprobs else None

    def _answer(self) -> dict[str, Any]:
        choices = [
            {
                "index": number,
                "message": {"role": "assistant", "content": each.text, "refusal": None},
                "logprobs": self._logprobs(each.told),
                "finish_reason": each.reason,
            }
            for number, each in enumerate(self.transcripts)
        ]
        return self._head("chat.completion") | {
            "choices": choices,
            "usage": usage(len(self.prompt), self.transcripts),
        }


def chat_logprobs(served: Served, tokens: list[Token], top: int) -> dict[str, Any]:
    """As `logprobs` of OpenAI's chat completions."""

    def described(token: int, logprob: float) -> dict[str, Any]:
        name, written = served.spell(token)
        return {"token": name, "logprob": as_number(logprob), "bytes": list(written)}

    content = [
        described(each.id, each.logprob or 0.0) | {"top_logprobs": [described(*one) for one in each.top[:top]]}
        for each in tokens
    ]
    return {"content": content, "refusal": None}
