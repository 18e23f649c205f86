"""Answers on their way out: streamed as server-sent events or whole, and given up when the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from saccade.error import SaccadeError
from saccade.serve.engine import Engine
from saccade.serve.job import Job
from saccade.serve.order import News, Order
from saccade.serve.refusal import Refusal, to_bytes

T = TypeVar("T")
LOG = logging.getLogger("saccade.serve")
DONE = b"data: [DONE]\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Left(Exception):  # noqa: N818
    """The client is gone; nobody reads the answer."""


class Events(Response):
    """An answer in pieces. pieces: JSON values; leave: called in the end, whatever the end is."""

    def __init__(self, pieces: AsyncIterator[Any], leave: Callable[[], None]) -> None:
        super().__init__(None, 200, HEADERS, "text/event-stream")
        del self.headers["content-length"]
        self._pieces, self._leave = pieces, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends until there is no more, or nobody listens."""
        write, gone = asyncio.ensure_future(self._write(send)), asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({write, gone}, return_when=asyncio.FIRST_COMPLETED)
            if write.done():
                write.result()
        finally:
            self._leave()
            for task in (write, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await task

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for piece in self._pieces:
                body = b"data: " + to_bytes(piece) + b"\n\n"
                await send({"type": "http.response.body", "body": body, "more_body": True})
        except Exception as problem:  # whatever it is, the stream ends as streams do
            body = b"data: " + to_bytes(as_refusal(problem).content) + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": DONE, "more_body": False})


async def attended(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives; if the client leaves before, it is given up."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Left
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await each


async def whole(request: Request, engine: Engine, jobs: list[Job], add: Callable[[News], Any]) -> None:
    """Adds what an engine writes, until all of it is there, unless the client leaves before."""
    order = engine.order(jobs)

    async def read() -> None:
        async for news in order.each():
            add(news)

    try:
        await attended(request, read())
    except BaseException:
        engine.leave(order)
        raise


async def streamed(
    request: Request, engine: Engine, jobs: list[Job], read: Callable[[Order], AsyncIterator[dict[str, Any]]]
) -> Response:
    """The pieces that `read` makes of what an engine writes. A refusal comes before the first."""
    order = engine.order(jobs)
    leave = partial(engine.leave, order)
    try:
        await attended(request, order.accepted())
    except BaseException:
        leave()
        raise
    return Events(read(order), leave)


def as_refusal(problem: Exception) -> Refusal:
    """Any problem as a refusal: what the caller can mend in its own words, else a word that hides our affairs."""
    if isinstance(problem, Refusal):
        return problem
    if isinstance(problem, SaccadeError):
        return Refusal(400, str(problem))
    LOG.error("a request failed", exc_info=problem)
    return Refusal(500, "something failed here that is not your fault; the server's log says what")


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
