"""`Listener`: the HTTP server (uvicorn) with more patience for answers and less for idle connections."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from saccade.serve.app import Server
from saccade.serve.guard import Guard
from saccade.serve.limit import Limits

HEADERS = 1 << 16  # bytes of a request's line and headers


class Listener(uvicorn.Server):
    """Told to stop, it lets answers end for a while; those that have not by then are ended, and told so."""

    def __init__(self, app: Guard, server: Server, limits: Limits) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_connection(limits.patience),
                ws="none",
                lifespan="on",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=limits.connections,
                h11_max_incomplete_event_size=HEADERS,
                timeout_graceful_shutdown=max(1, round(limits.grace)),
            )
        )
        self._server, self._grace = server, limits.grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Nobody new, then those who are there, then all the rest."""
        for each in self.servers:
            each.close()
        self._server.refuse()
        end = asyncio.get_running_loop().time() + self._grace
        while self.server_state.tasks and not self.force_exit and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        self._server.stop()
        await super().shutdown(sockets)


def _connection(patience: float) -> type[asyncio.Protocol]:
    """The kind of connection that ends where a client neither asks nor reads for so many seconds."""

    class Connection(H11Protocol):
        """One client."""

        _alarm: asyncio.TimerHandle | None = None
        _stalled = False  # the client does not read; whatever it sends meanwhile, it must

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = True
            self._set(True)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stalled = False
            self._set(False)

        def connection_lost(self, problem: Exception | None) -> None:
            self._set(False)
            super().connection_lost(problem)

        def _watch(self) -> None:
            """A request that has begun must be whole in time; keep-alive sees to those that have not."""
            self._set(self._stalled or self.cycle is None or self.cycle.response_complete)

        def _set(self, running: bool) -> None:
            if not running and self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            elif running and self._alarm is None:
                self._alarm = self.loop.call_later(patience, self.transport.abort)

    return Connection
