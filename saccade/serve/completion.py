"""`/v1/completions`: how texts go on, whole or streamed, in OpenAI's shapes."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from typing import Any

import torch
from starlette.requests import Request
from starlette.responses import Response

from saccade.model.dropout import at_rest
from saccade.recipe import DecodeConfig
from saccade.serve.answer import Events, attended, streamed, whole
from saccade.serve.job import CHOICE, Job
from saccade.serve.kept import Answers, Kept
from saccade.serve.opened import Opened
from saccade.serve.order import News, Order
from saccade.serve.passage import Passage, Piece, Places, Token, bounded, completion_logprobs
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.wire import CompletionBody, Drawn
from saccade.task.example import Example
from saccade.task.search import piecewise

SLICE = 1 << 24  # scores that are made at a time where a prompt is judged


def new_id(kind: str) -> str:
    """A name that cannot be guessed."""
    return f"{kind}-{secrets.token_hex(16)}"


def drawing(opened: Opened, body: Drawn, max_tokens: int | None) -> DecodeConfig:
    """How a request's tokens are chosen: the run's own way with the request's changes."""
    given = {name: getattr(body, name) for name in (*CHOICE, "seed", "min_tokens")}
    stop = [body.stop] if isinstance(body.stop, str) else body.stop
    return piecewise(opened.decoding({**given, "stop": stop, "max_tokens": max_tokens or None}))


class Completion:
    """One request: prompts, each with n choices, that an engine writes."""

    def __init__(self, opened: Opened, body: CompletionBody, answers: Answers) -> None:
        if not opened.continues:
            raise Refusal(409, f"{opened.name} does not go on with texts: use {opened.route}", "model")
        self.opened, self.body, self.answers = opened, body, answers
        self.id, self.created, self.n = new_id("cmpl"), int(time.time()), body.n or 1
        self.prompts = [opened.intake.checked(each) for each in self._prompts()]
        if len(self.prompts) * self.n > opened.limits.sequences:
            raise Refusal(
                400, f"{len(self.prompts)} prompts x n = {self.n} are too many: {opened.limits.sequences}", "n"
            )
        self._written = self._jobs() if body.max_tokens != 0 else []
        echoed = self.n * sum(map(len, self.prompts)) if body.echo else 0
        bounded(opened, echoed + sum(each.options["max_tokens"] for each in self._written), body.logprobs)
        self.passages = [Passage(opened, len(self._echo(number))) for number in range(len(self.prompts) * self.n)]
        self.judged: list[list[Token]] = []

    async def respond(self, request: Request) -> Response:
        """The answer, in pieces where the request asks for a stream."""
        if self.body.echo and self.body.logprobs is not None:
            self.judged = [await attended(request, self._judge(each)) for each in self.prompts]
        if self.body.max_tokens == 0:
            return self._echoed()
        engine, jobs = self.opened.engine, self._written
        if self.body.stream:
            return await streamed(request, engine, jobs, self._pieces)
        await whole(request, engine, jobs, self._add)
        return as_json(self._answer())

    def _prompts(self) -> list[list[int]]:
        given: Any = self.body.prompt
        if isinstance(given, str):
            return [self.opened.intake.prompt(given)]
        if isinstance(given[0], int):
            return [given]
        return [self.opened.intake.prompt(each) if isinstance(each, str) else each for each in given]

    def _jobs(self) -> list[Job]:
        decode = drawing(self.opened, self.body, self.body.max_tokens)
        cut, top = self.body.max_tokens is None, self.body.logprobs or 0
        asks = [self.opened.intake.onward(prompt, decode, cut=cut) for prompt in self.prompts]
        return [self.opened.jobs.make(ask, decode, top=top, number=number) for ask in asks for number in range(self.n)]

    async def _pieces(self, order: Order) -> AsyncIterator[dict[str, Any]]:
        for number in range(len(self.passages)):
            if self.body.echo:
                yield self._chunk([self._choice(number, self._echo(number), self._heard(number), None)])
        async for news in order.each():
            piece = self._add(news)
            if piece.text or piece.tokens or piece.reason:
                yield self._chunk([self._choice(news.number, piece.text, piece.tokens, piece.reason)])
        if self.body.usage:
            yield self._chunk([]) | {"usage": self._usage()}

    def _add(self, news: News) -> Piece:
        piece = self.passages[news.number].add(news)
        if piece.reason and all(each.reason for each in self.passages):
            self.answers.keep(self.id, [self._kept(number) for number in range(len(self.passages))])
        return piece

    def _kept(self, number: int) -> Kept:
        passage = self.passages[number]
        return Kept(self.opened.name, Example({}, self.prompts[number // self.n], passage.ids, passage.ended))

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """What is common to answers and their pieces."""
        head = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.opened.name}
        return head | {"choices": choices}

    def _choice(self, number: int, text: str, tokens: list[Token], reason: str | None) -> dict[str, Any]:
        top = self.body.logprobs
        told = None if top is None else completion_logprobs(self.opened, tokens, top)
        return {"index": number, "text": text, "logprobs": told, "finish_reason": reason}

    def _answer(self) -> dict[str, Any]:
        choices = [
            self._choice(number, self._echo(number) + each.text, self._heard(number) + each.told, each.reason)
            for number, each in enumerate(self.passages)
        ]
        return self._chunk(choices) | {"usage": self._usage()}

    def _echoed(self) -> Response:
        """The prompt alone, judged."""
        for passage in self.passages:
            passage.reason = "length"
        if self.body.stream:
            return Events(self._said(), lambda: None)
        return as_json(self._answer())

    async def _said(self) -> AsyncIterator[dict[str, Any]]:
        for number in range(len(self.passages)):
            yield self._chunk([self._choice(number, self._echo(number), self._heard(number), "length")])
        if self.body.usage:
            yield self._chunk([]) | {"usage": self._usage()}

    def _usage(self) -> dict[str, int]:
        read, written = sum(map(len, self.prompts)), sum(len(each.ids) for each in self.passages)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    def _echo(self, number: int) -> str:
        """The prompt, where it is told again."""
        if not self.body.echo:
            return ""
        given: Any = self.body.prompt
        if isinstance(given, str):
            return given
        one = given[number // self.n] if not isinstance(given[0], int) else given
        return one if isinstance(one, str) else self.opened.text.decode(one)

    def _heard(self, number: int) -> list[Token]:
        """The prompt's own tokens, where they are told."""
        return self.judged[number // self.n] if self.judged else []

    async def _judge(self, prompt: list[int]) -> list[Token]:
        """The prompt's tokens with the probabilities that the model gave them; the first had none."""
        top = min(self.body.logprobs or 0, self.opened.model.config.vocab)
        found = await self.opened.engine.call(lambda: judge(self.opened, prompt, top))
        places = Places(self.opened)
        return [Token(token, places.push(token), *one) for token, one in zip(prompt, found, strict=True)]


def judge(opened: Opened, prompt: list[int], top: int) -> list[tuple[float | None, list[tuple[int, float]]]]:
    """The model's log-probability of each token of a text after those before it, and the likeliest in its place."""
    found: list[tuple[float | None, list[tuple[int, float]]]] = [(None, [])]
    model, room = opened.model, opened.model.room
    if room is not None and len(prompt) > room:
        raise Refusal(400, f"a prompt of {len(prompt)} tokens does not fit into {room} positions: shorten it", "prompt")
    with torch.inference_mode(), at_rest(model):
        tokens = torch.tensor(prompt, device=model.device)
        states, wanted = model.states(tokens[None]).last[0, :-1], tokens[1:]
        rows = max(1, SLICE // model.config.vocab)
        for part, said in zip(states.split(rows), wanted.split(rows), strict=True):
            scores = model.answer(part.unsqueeze(0))[0].float().log_softmax(-1)
            best = scores.topk(top, -1)
            own = scores.gather(1, said.unsqueeze(1)).squeeze(1).tolist()
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            found += [(one, list(zip(*pair, strict=True))) for one, pair in zip(own, pairs, strict=True)]
    return found
