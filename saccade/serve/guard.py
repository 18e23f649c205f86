"""`Guard`: what every request passes before a route sees it, as an ASGI application around the server's own.

A foreign page in a browser can send requests to this machine. But it cannot set the Host header, so that a foreign name
bound to our address (DNS rebinding) is noticed; it cannot hide its Origin; and it cannot send JSON without a preflight
request, which is never granted.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.serve.host import EVERYWHERE, LOOPBACK, host_of, is_number, origin_of
from saccade.serve.limit import Limits
from saccade.serve.metrics import Metrics
from saccade.serve.refusal import Refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; media-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
BODIES = ("POST", "PUT", "PATCH")


class Guard:
    """host: the address that is listened on; key: what clients must show, None: nothing."""

    def __init__(self, app: ASGIApp, *, host: str, key: str | None, limits: Limits, metrics: Metrics) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self._hosts = {*LOOPBACK, host.lower().strip("[]")}
        self._anywhere = host in EVERYWHERE
        self._key = None if key is None else key.encode()
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or answers why not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._guarded(scope, receive, self._with_security_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open += 1
        try:
            self._check(scope)
            body = await self._body(scope, receive) if scope["method"] in BODIES else b""
        except Refusal as refusal:
            await refusal.response()(scope, receive, send)
        else:
            await self.app(scope, _replayed(body, receive), send)
        finally:
            self._open -= 1

    def _with_security_headers(self, send: Send) -> Send:
        """Adds the security headers to every answer, and counts it."""

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                self.metrics.answered(message["status"])
            await send(message)

        return sealed

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope["headers"])
        host = headers.one("host")
        if not self._is_own_host(host):
            raise Refusal(403, "this Host is not served here: use the address that the server was started with")
        origin = headers.one("origin", "")
        if origin and origin_of(origin) != host.lower():
            raise Refusal(403, "a page of another origin may not ask here")
        if scope["path"] == "/" or scope["path"].startswith("/page/"):
            return
        if headers.one("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refusal(403, "a page of another origin may not ask here")
        if scope["path"] == "/health":
            return
        self._authorise(headers)
        if self._open > self.limits.requests:
            busy = f"{self.limits.requests} requests are under way, which is all there is room for: try again later"
            raise Refusal(429, busy, headers={"Retry-After": "1"})

    def _is_own_host(self, host: str) -> bool:
        """Whether the name in Host is ours. A numeric address is safe: no foreign name was bound to it."""
        name = host_of(host)
        if name is None:
            return False
        if name in self._hosts:
            return True
        return self._anywhere and (self._key is not None or is_number(name))

    def _authorise(self, headers: Headers) -> None:
        if self._key is None:
            return
        kind, _, given = headers.raw("authorization").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._key):
            raise Refusal(
                401, "a key is needed: send it as Authorization: Bearer KEY", headers={"WWW-Authenticate": "Bearer"}
            )

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        headers, most = Headers(scope["headers"]), self.limits.body
        kind, *_ = headers.one("content-type", "").split(";")
        if kind.strip().lower() != "application/json" or headers.one("content-encoding", "identity") != "identity":
            raise Refusal(415, "a body must be plain JSON: send Content-Type: application/json")
        length = headers.one("content-length", "")
        if not length and "chunked" not in headers.one("transfer-encoding", "").lower():
            raise Refusal(411, "a body is needed, and its Content-Length")
        if length and (not length.isdecimal() or int(length[:20]) > most):
            raise Refusal(413, f"a body has {most} bytes at most")
        try:
            async with asyncio.timeout(self.limits.patience):
                return await _read_body(receive, most)
        except TimeoutError:
            raise Refusal(408, "the body did not come in time") from None


class Headers:
    """A request's headers. One that is given twice is ambiguous: `raw` passes over it, `one` refuses it."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._pairs = list(pairs)

    def raw(self, name: str) -> bytes:
        """The bytes of a header; empty where there is none, or more than one."""
        found = [value for key, value in self._pairs if key == name.encode()]
        return found[0] if len(found) == 1 else b""

    def one(self, name: str, default: str | None = None) -> str:
        """The text of a header."""
        found = [value for key, value in self._pairs if key == name.encode()]
        if len(found) > 1 or (not found and default is None):
            raise Refusal(400, f"a request has one {name} header; this one has {len(found)}")
        return found[0].decode("latin-1") if found else default or ""


async def _read_body(receive: Receive, most: int) -> bytes:
    """Reads the body; refuses one of more than `most` bytes."""
    content, more = bytearray(), True
    while more:
        message = await receive()
        content += message.get("body", b"")
        if len(content) > most:
            raise Refusal(413, f"a body has {most} bytes at most")
        more = message["type"] == "http.request" and message.get("more_body", False)
    return bytes(content)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body again, in one message, and then the server's own messages (a disconnect)."""
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message
