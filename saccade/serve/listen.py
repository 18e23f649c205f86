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
    """When it is told to stop, answers under way have some time to end; the rest are ended with an error."""

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
        """Takes no new requests, waits for the answers under way, then ends what is left."""
        for each in self.servers:
            each.close()
        self._server.refuse()
        end = asyncio.get_running_loop().time() + self._grace
        while self.server_state.tasks and not self.force_exit and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        self._server.stop()
        await super().shutdown(sockets)


def _connection(patience: float) -> type[asyncio.Protocol]:
    """A class of connections that end when the client neither sends nor reads for so many seconds."""

    class Connection(H11Protocol):
        """One client."""

        _alarm: asyncio.TimerHandle | None = None
        _stalled = False  # the client does not read: the alarm runs on, whatever it sends

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = True
            self._set_alarm(True)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stalled = False
            self._set_alarm(False)

        def connection_lost(self, problem: Exception | None) -> None:
            self._set_alarm(False)
            super().connection_lost(problem)

        def _watch(self) -> None:
            """Sets the alarm until a request is complete; uvicorn's keep-alive ends connections that send none."""
            self._set_alarm(self._stalled or self.cycle is None or self.cycle.response_complete)

        def _set_alarm(self, running: bool) -> None:
            if not running and self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
            elif running and self._alarm is None:
                self._alarm = self.loop.call_later(patience, self.transport.abort)

    return Connection
