"""The client of a request: events that are streamed to it, and work that is cancelled when it disconnects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from saccade.serve.refusal import as_refusal, to_bytes

T = TypeVar("T")
DONE = b"data: [DONE]\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Left(Exception):  # noqa: N818
    """The client has disconnected, so nobody reads the answer."""


class EventStream(Response):
    """An answer in pieces. pieces: JSON values; leave: called at the end, also when the client disconnects."""

    def __init__(self, pieces: AsyncIterator[Any], leave: Callable[[], None]) -> None:
        super().__init__(None, 200, HEADERS, "text/event-stream")
        del self.headers["content-length"]
        self._pieces, self._leave = pieces, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends until there are no more pieces or the client disconnects."""
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
        except Exception as problem:  # the status is sent already: the error becomes the last event
            body = b"data: " + to_bytes(as_refusal(problem).content) + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": DONE, "more_body": False})


async def attended(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; if the client disconnects first, the work is cancelled and `Left` raised."""
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


async def _gone(receive: Receive) -> None:
    """Returns when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
