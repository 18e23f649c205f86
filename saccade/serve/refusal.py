"""`Refusal`: why a request is not answered, as a status and one sentence in the shape of OpenAI's errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from saccade.error import SaccadeError
from saccade.table import expected

LOG = logging.getLogger("saccade.serve")
LONGEST = 400  # characters of a message, which may quote what was sent
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Refusal(Exception):  # noqa: N818
    """A status, a sentence and, where one field of the body is wrong, its name."""

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


def as_refusal(problem: Exception) -> Refusal:
    """Any problem as a refusal: what the caller can mend in its own words, anything else as a 500 without details."""
    if isinstance(problem, Refusal):
        return problem
    if isinstance(problem, SaccadeError):
        return Refusal(400, str(problem))
    LOG.error("a request failed", exc_info=problem)
    return Refusal(500, "something failed here that is not your fault; the server's log says what")


def to_bytes(content: Any) -> bytes:
    """JSON in ASCII; NaN or infinity would be a bug of ours and raises."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def shortened(message: str) -> str:
    """A message without line ends, no longer than it may be."""
    message = " ".join(message.split())
    return message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}..."


def invalid(problems: Sequence[Mapping[str, Any]]) -> Refusal:
    """What pydantic found wrong, in one sentence that names the field and all that it may be."""
    first = problems[0]
    name = ".".join(_place(first)[:1]) or None
    subject = name or "the request"
    if first["type"] in ("value_error", "assertion_error"):
        return Refusal(400, f"{subject}: {expected(first)}", name)
    if first["type"] == "missing":
        return Refusal(400, f"{'.'.join(_place(first)) or subject} is missing", name)
    same = dict.fromkeys(expected(each, "an object") for each in problems if _place(each)[:1] == _place(first)[:1])
    return Refusal(400, f"{subject} should be {' or '.join(same)}; got {_quoted(first.get('input'))}", name)


def _place(problem: Mapping[str, Any]) -> list[str]:
    """Where it is, without the part of the request (body, query, path) that it is in."""
    return [str(each) for each in problem["loc"][1:]]


def _quoted(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number too large"
    if isinstance(value, str | int | float | bool) or value is None:
        return f"{value!r:.80}"
    return "a list" if isinstance(value, list) else "an object"
