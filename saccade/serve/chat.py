"""`/v1/chat/completions`: chats in OpenAI's shapes, for runs that brought a chat template."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from saccade.serve.answer import attended, streamed, whole
from saccade.serve.completion import drawing, new_id
from saccade.serve.job import Job
from saccade.serve.kept import Answers, Kept
from saccade.serve.opened import Opened
from saccade.serve.order import News, Order
from saccade.serve.passage import Passage, Piece, Token, bounded, chat_logprobs
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.wire import ChatBody
from saccade.task.example import Example


class Chat:
    """One request: a chat that goes on in n ways."""

    def __init__(self, opened: Opened, body: ChatBody, answers: Answers) -> None:
        if not opened.continues:
            raise Refusal(
                409, f"{opened.name} does not go on with texts, so it cannot chat: use {opened.route}", "model"
            )
        if opened.template is None:
            raise Refusal(
                409, f"{opened.unreadable or f'{opened.name} has no chat template'}: use /v1/completions", "model"
            )
        if body.max_tokens is not None and body.max_completion_tokens not in (None, body.max_tokens):
            raise Refusal(400, "max_tokens and max_completion_tokens mean the same: give one", "max_tokens")
        if body.top_logprobs and not body.logprobs:
            raise Refusal(400, "top_logprobs are told with logprobs = true", "top_logprobs")
        self.opened, self.body, self.answers = opened, body, answers
        self.id, self.created, self.n = new_id("chatcmpl"), int(time.time()), body.n or 1
        self.prompt: list[int] = []
        self.passages = [Passage(opened) for _ in range(self.n)]

    async def respond(self, request: Request) -> Response:
        """The answer, in pieces where the request asks for a stream."""
        self.prompt = await attended(request, self.opened.clerk.work(self._prompt))
        engine, jobs = self.opened.engine, self._jobs()
        top = self.body.top_logprobs or 0
        bounded(self.opened, sum(each.options["max_tokens"] for each in jobs), top if self.body.logprobs else None)
        if self.body.stream:
            return await streamed(request, engine, jobs, self._pieces)
        await whole(request, engine, jobs, self._add)
        return as_json(self._answer())

    def _prompt(self) -> list[int]:
        template = self.opened.template
        assert template is not None
        return self.opened.intake.encode(template.render([each.plain() for each in self.body.messages]))

    def _jobs(self) -> list[Job]:
        most = self.body.max_completion_tokens if self.body.max_tokens is None else self.body.max_tokens
        opened, decode = self.opened, drawing(self.opened, self.body, most)
        ask, top = opened.intake.onward(self.prompt, decode, cut=most is None), self.body.top_logprobs or 0
        return [opened.jobs.make(ask, decode, top=top, number=number, end=opened.turn) for number in range(self.n)]

    async def _pieces(self, order: Order) -> AsyncIterator[dict[str, Any]]:
        for number in range(self.n):
            yield self._chunk([self._delta(number, {"role": "assistant", "content": ""}, [], None)])
        async for news in order.each():
            piece = self._add(news)
            if piece.text or piece.tokens:
                yield self._chunk([self._delta(news.number, {"content": piece.text}, piece.tokens, None)])
            if piece.reason:
                yield self._chunk([self._delta(news.number, {}, [], piece.reason)])
        if self.body.usage:
            yield self._chunk([]) | {"usage": self._usage()}

    def _add(self, news: News) -> Piece:
        piece = self.passages[news.number].add(news)
        if piece.reason and all(each.reason for each in self.passages):
            examples = [Example({}, self.prompt, each.ids, each.ended) for each in self.passages]
            self.answers.keep(self.id, [Kept(self.opened.name, each) for each in examples])
        return piece

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._head("chat.completion.chunk") | {"choices": choices}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.opened.name}

    def _delta(self, number: int, delta: dict[str, str], tokens: list[Token], reason: str | None) -> dict[str, Any]:
        return {"index": number, "delta": delta, "logprobs": self._logprobs(tokens), "finish_reason": reason}

    def _logprobs(self, tokens: list[Token]) -> dict[str, Any] | None:
        if not self.body.logprobs:
            return None
        return chat_logprobs(self.opened, tokens, self.body.top_logprobs or 0)

    def _answer(self) -> dict[str, Any]:
        choices = [
            {
                "index": number,
                "message": {"role": "assistant", "content": each.text, "refusal": None},
                "logprobs": self._logprobs(each.told),
                "finish_reason": each.reason,
            }
            for number, each in enumerate(self.passages)
        ]
        return self._head("chat.completion") | {"choices": choices, "usage": self._usage()}

    def _usage(self) -> dict[str, int]:
        read, written = len(self.prompt), sum(len(each.ids) for each in self.passages)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
