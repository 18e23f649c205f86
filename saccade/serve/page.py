"""The page's own files, read once at the start: what a request names is looked up, never opened."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from saccade.serve.refusal import Refusal

FOLDER = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}


class File(NamedTuple):
    """A file of the page as it is sent."""

    content: bytes
    kind: str
    tag: str


class Page:
    """The files of a folder by their names."""

    def __init__(self, folder: Path = FOLDER) -> None:
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        self._files = {each.name: _read(each) for each in found if each.is_file() and each.suffix in TYPES}

    def send(self, name: str, request: Request) -> Response:
        """A file, or that the client's own is the same."""
        if name not in self._files:
            raise Refusal(404, f"the page has no file {name!r:.80}")
        file = self._files[name]
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if file.tag in [each.strip() for each in request.headers.get("if-none-match", "").split(",")]:
            return Response(None, 304, headers)
        return Response(file.content, 200, {**headers, "Content-Type": file.kind})


def _read(path: Path) -> File:
    content = path.read_bytes()
    return File(content, TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
