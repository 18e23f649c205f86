"""`Order`: what one HTTP request asks an engine for, and the news of it.

The engine's thread fills an order, the event loop reads it: news is copied before it is handed over, and handed over by
the loop itself, so neither waits for the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from saccade.decode.request import BeamRequest, Request
from saccade.decode.sequence import Sequence
from saccade.serve.job import Job


class News(NamedTuple):
    """What a sequence has become since the last news. reason: why it ended; found: what a beam search found."""

    number: int = 0
    piece: str = ""
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    top: tuple[list[tuple[int, float]], ...] = ()
    reason: str | None = None
    score: float = 0.0  # the sum of all its log-probabilities, once it has ended
    problem: Exception | None = None
    found: tuple[Sequence, ...] = ()


class Entry:
    """One sequence of an order at the engine: how much of it was told already."""

    def __init__(self, order: Order, number: int, request: Request | BeamRequest) -> None:
        self.order, self.number, self.request = order, number, request
        self._told = 0

    def news(self) -> News:
        """What is new; called between two steps."""
        request, number = self.request, self.number
        if isinstance(request, BeamRequest):
            return News(number, reason=request.reason, problem=request.problem, found=tuple(request.found))
        since, self._told = self._told, len(request.tokens)
        return News(
            number,
            request.piece,
            tuple(request.tokens[since:]),
            tuple(request.logprobs[since : self._told]),
            tuple(request.likeliest[since : self._told]),
            request.reason,
            0.0 if request.reason is None else sum(request.logprobs),
            request.problem,
        )


class Order:
    """Sequences that one client waits for. `news` waits for some; `over` tells that none comes any more."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs, self.left = jobs, False
        self._running = len(jobs)
        self._news: list[News] = []
        self._bell = asyncio.Event()

    @property
    def over(self) -> bool:
        """Every sequence has ended, and the last news was taken."""
        return not self._running and not self._news

    @property
    def running(self) -> int:
        """How many sequences have not ended."""
        return self._running

    def put(self, news: News) -> None:
        """Something happened; called by the event loop."""
        self._news.append(news)
        self._running -= news.reason is not None
        self._bell.set()

    async def accepted(self) -> None:
        """Waits until the engine has taken the order; if it refuses, that is raised."""
        await self._bell.wait()
        for each in self._news:
            if each.tokens:
                return  # what breaks after something was written is for who reads it
            if each.problem is not None:
                raise each.problem

    async def each(self) -> AsyncIterator[News]:
        """All news, one after another, until every sequence has ended."""
        while not self.over:
            for each in await self.news():
                yield each

    async def news(self) -> list[News]:
        """All that happened since the last call, as soon as anything has. A problem is raised."""
        await self._bell.wait()
        self._bell.clear()
        found, self._news = self._news, []
        for each in found:
            if each.problem is not None:
                raise each.problem
        return found
