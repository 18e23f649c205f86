"""`/v1/completions`: how texts go on, whole or streamed, in OpenAI's shapes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import torch
from pydantic import Field, model_validator
from starlette.requests import Request
from starlette.responses import Response

from saccade.model.dropout import evaluating
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.serve.body import LIMITS, Lists, SamplingBody, Several, Tokens, Written
from saccade.serve.client import EventStream, attended
from saccade.serve.refusal import Refusal, as_json
from saccade.serve.served import Served
from saccade.serve.transcript import (
    CHOICE,
    History,
    News,
    Places,
    Token,
    Transcript,
    as_number,
    bound_logprobs,
    new_id,
)
from saccade.task.answer import Ask
from saccade.task.decode_options import without_beam

SLICE = 1 << 24  # scores that are computed at a time for the log-probabilities of a prompt


class CompletionBody(SamplingBody):
    """How a text goes on."""

    prompt: Written | Several | Tokens | Lists
    max_tokens: int | None = Field(None, ge=0, le=LIMITS.max_tokens)
    logprobs: int | None = Field(None, ge=0, le=LIMITS.logprobs)
    echo: bool | None = None
    best_of: int | None = Field(None, ge=1, le=LIMITS.n)

    @model_validator(mode="after")
    def _possible(self) -> CompletionBody:
        if self.best_of is not None and self.best_of > (self.n or 1):
            raise ValueError("best_of above n is not offered here: leave it out, and choose among n yourself")
        if self.max_tokens == 0 and not self.echo:
            raise ValueError(
                "max_tokens = 0 writes nothing: give echo = true to have the prompt judged, or more tokens"
            )
        return self

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts as a list, each a text or a list of tokens; a request may also give one alone."""
        given: Any = self.prompt
        alone = isinstance(given, str) or isinstance(given[0], int)
        return [given] if alone else given


class Completion:
    """One request: prompts, each with n choices, that an engine writes."""

    def __init__(self, served: Served, body: CompletionBody, history: History) -> None:
        if not served.continues:
            raise Refusal(409, f"{served.name} does not go on with texts: use {served.route}", "model")
        self.served, self.body, self.history = served, body, history
        self.id, self.created, self.n = new_id("cmpl"), int(time.time()), body.n or 1
        self.prompts = [served.inputs.checked(self._tokens(each)) for each in body.prompts]
        if len(self.prompts) * self.n > served.limits.sequences:
            raise Refusal(
                400, f"{len(self.prompts)} prompts x n = {self.n} are too many: {served.limits.sequences}", "n"
            )
        self.echoes = [self._echo(each) for each in body.prompts]
        self.judged: list[list[Token]] = [[] for _ in self.prompts]
        self.transcripts = self._transcripts()
        echoed = self.n * sum(map(len, self.prompts)) if body.echo else 0
        written = sum(each.options["max_tokens"] for each in self.transcripts)
        bound_logprobs(served.limits, echoed + written, body.logprobs)

    async def respond(self, request: Request) -> Response:
        """The answer, in pieces where the request asks for a stream."""
        if self.body.echo and self.body.logprobs is not None:
            self.judged = [await attended(request, self._judge(each)) for each in self.prompts]
        if self.body.max_tokens == 0:
            return self._respond_echo()
        if self.body.stream:
            return await self.served.engine.stream(request, self.transcripts, self._pieces)
        await self.served.engine.write(request, self.transcripts)
        self._keep()
        return as_json(self._answer())

    def _tokens(self, prompt: str | list[int]) -> list[int]:
        return self.served.inputs.prompt(prompt) if isinstance(prompt, str) else prompt

    def _echo(self, prompt: str | list[int]) -> str:
        """The text of the prompt, where the answer repeats it."""
        if not self.body.echo:
            return ""
        return prompt if isinstance(prompt, str) else self.served.text.decode(prompt)

    def _transcripts(self) -> list[Transcript]:
        """n for each prompt, one prompt behind the other."""
        served, most = self.served, self.body.max_tokens
        pairs = [pair for pair in zip(self.prompts, self.echoes, strict=True) for _ in range(self.n)]
        if most == 0:  # nothing is written: only the log-probabilities of the prompts are asked for
            return [Transcript(served.text, Ask(prompt, None, 0), {"max_tokens": 0}) for prompt, _ in pairs]
        decode, cut = sampling(served, self.body, most), most is None
        return [
            served.transcript(
                served.inputs.continuation(prompt, decode, cut=cut),
                decode,
                top=self.body.logprobs,
                number=place % self.n,
                start=len(echo),
            )
            for place, (prompt, echo) in enumerate(pairs)
        ]

    async def _pieces(self, news: AsyncIterator[News]) -> AsyncIterator[dict[str, Any]]:
        for number in range(len(self.transcripts)):
            if self.body.echo:
                yield self._chunk([self._echo_choice(number, None)])
        async for each in news:
            transcript = self.transcripts[each.number]
            tokens = transcript.add(each)
            if transcript.reason and all(one.reason for one in self.transcripts):
                self._keep()
            if each.piece or tokens or transcript.reason:
                yield self._chunk([self._choice(each.number, each.piece, tokens, transcript.reason)])
        if self.body.usage:
            yield self._chunk([]) | {"usage": self._usage()}

    def _keep(self) -> None:
        self.history.keep(self.id, self.served.name, [self.served.example(each) for each in self.transcripts])

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """The shape that answers and their pieces share."""
        head = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.served.name}
        return head | {"choices": choices}

    def _choice(self, number: int, text: str, tokens: list[Token], reason: str | None) -> dict[str, Any]:
        top = self.body.logprobs
        logprobs = None if top is None else completion_logprobs(self.served, tokens, top)
        return {"index": number, "text": text, "logprobs": logprobs, "finish_reason": reason}

    def _echo_choice(self, number: int, reason: str | None) -> dict[str, Any]:
        prompt = number // self.n
        return self._choice(number, self.echoes[prompt], self.judged[prompt], reason)

    def _answer(self) -> dict[str, Any]:
        choices = [
            self._choice(
                number,
                self.echoes[number // self.n] + each.text,
                self.judged[number // self.n] + each.told,
                each.reason,
            )
            for number, each in enumerate(self.transcripts)
        ]
        return self._chunk(choices) | {"usage": self._usage()}

    def _respond_echo(self) -> Response:
        """The prompts alone, with their log-probabilities."""
        for each in self.transcripts:
            each.reason = "length"
        if self.body.stream:
            return EventStream(self._echo_pieces(), lambda: None)
        return as_json(self._answer())

    async def _echo_pieces(self) -> AsyncIterator[dict[str, Any]]:
        for number in range(len(self.transcripts)):
            yield self._chunk([self._echo_choice(number, "length")])
        if self.body.usage:
            yield self._chunk([]) | {"usage": self._usage()}

    def _usage(self) -> dict[str, int]:
        return usage(sum(map(len, self.prompts)), self.transcripts)

    async def _judge(self, prompt: list[int]) -> list[Token]:
        """The prompt's tokens with the probabilities that the model gave them; the first had none."""
        top = min(self.body.logprobs or 0, self.served.model.config.vocab)
        found = await self.served.engine.call(lambda: judge(self.served.model, prompt, top))
        places = Places(self.served.text)
        return [Token(token, places.push(token), *one) for token, one in zip(prompt, found, strict=True)]


def sampling(served: Served, body: SamplingBody, max_tokens: int | None) -> DecodeConfig:
    """The run's own decoding options with those that the request changes."""
    given = {name: getattr(body, name) for name in (*CHOICE, "seed", "min_tokens")}
    stop = [body.stop] if isinstance(body.stop, str) else body.stop
    return without_beam(served.decoding({**given, "stop": stop, "max_tokens": max_tokens or None}))


def usage(read: int, transcripts: list[Transcript]) -> dict[str, int]:
    """How many tokens were read and written."""
    written = sum(len(each.ids) for each in transcripts)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def completion_logprobs(served: Served, tokens: list[Token], top: int) -> dict[str, Any]:
    """As `logprobs` of OpenAI's completions."""
    best = [None if each.logprob is None else _likeliest(served, each, top) for each in tokens]
    return {
        "tokens": [served.spell(each.id)[0] for each in tokens],
        "token_logprobs": [None if each.logprob is None else as_number(each.logprob) for each in tokens],
        "top_logprobs": best if top else None,
        "text_offset": [each.place for each in tokens],
        "token_ids": [each.id for each in tokens],
    }


def judge(model: Model, prompt: list[int], top: int) -> list[tuple[float | None, list[tuple[int, float]]]]:
    """The model's log-probability of each token of a text after those before it, and the likeliest in its place."""
    found: list[tuple[float | None, list[tuple[int, float]]]] = [(None, [])]
    if model.room is not None and len(prompt) > model.room:
        raise Refusal(
            400, f"a prompt of {len(prompt)} tokens does not fit into {model.room} positions: shorten it", "prompt"
        )
    with torch.inference_mode(), evaluating(model):
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


def _likeliest(served: Served, token: Token, top: int) -> dict[str, float]:
    """The likeliest tokens by their texts; the written one is always among them, as in OpenAI's API."""
    found = {served.spell(each)[0]: as_number(logprob) for each, logprob in reversed(token.top[:top])}
    best = dict(reversed(list(found.items())))
    return best if token.logprob is None else best | {served.spell(token.id)[0]: as_number(token.logprob)}
