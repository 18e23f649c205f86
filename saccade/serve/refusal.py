"""`Refusal`: why a request is not answered, as a status and one sentence in the shape of OpenAI's errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

LONGEST = 400  # characters of a message: whatever was sent, little of it comes back
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Refusal(Exception):  # noqa: N818
    """A status, a sentence and, where one field is to blame, its name."""

    def __init__(
        self, status: int, message: str, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.headers = status, shortened(message), param, dict(headers or {})

    @property
    def content(self) -> dict[str, Any]:
        """The error as OpenAI's clients read it."""
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": None}}

    def response(self) -> Response:
        """The error as an answer."""
        return as_json(self.content, self.status, self.headers)


def as_json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in ASCII, so that half a character of somebody's text cannot break it."""
    return Response(to_bytes(content), status, dict(headers or {}), "application/json")


def to_bytes(content: Any) -> bytes:
    """JSON; a number that is none is an error of ours and never sent."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def shortened(message: str) -> str:
    """A message without line ends, no longer than it may be."""
    message = " ".join(message.split())
    return message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}..."


def invalid(problems: Sequence[Mapping[str, Any]]) -> Refusal:
    """What pydantic found wrong, in one sentence that names the field; what else a field may be is told too."""
    first = problems[0]
    place = _place(first)
    same = dict.fromkeys(_told(each) for each in problems if _place(each)[:1] == place[:1])
    got = "" if first["type"] in ("missing", "value_error") else f"; got {_shown(first.get('input'))}"
    name = ".".join(place[:1]) or None
    return Refusal(400, f"{name or 'the request'}: {' or '.join(same)}{got}", name)


def _place(problem: Mapping[str, Any]) -> list[str]:
    """Where it is, without the part of the request (body, query, path) that it is in."""
    return [str(each) for each in problem["loc"][1:]]


def _told(problem: Mapping[str, Any]) -> str:
    return str(problem["msg"]).removeprefix("Value error, ")


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        return f"{value!r:.80}" if not isinstance(value, int) or abs(value) < 10**20 else "a number too large"
    return "a list" if isinstance(value, list) else "an object"
