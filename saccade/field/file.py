"""What comes from outside as a file or as bytes: whether a file is there, why it cannot be read, and how one comes over
the network. The kinds whose examples are files share this.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from saccade import disk
from saccade.error import SaccadeError
from saccade.field.field import Source, UnreadableError


class Media(NamedTuple):
    """noun: what one is called; endings: of its files; type: how a data: URL of one begins; example: such a type."""

    noun: str
    endings: tuple[str, ...]
    type: str
    example: str

    def check_one(self, value: Any) -> None:
        """Refuses several where one belongs."""
        if isinstance(value, list):
            raise SaccadeError(f"one {self.noun} was expected, not {len(value)}: give each an input of its own")

    def existing(self, path: Path, text: str) -> Path:
        """The path, if a file is there; the error names it as it was written (`text`)."""
        try:
            there = path.is_file()
        except (OSError, ValueError):  # too long for a name, or not one
            there = False
        if not there:
            problem = f"{text!r:.60} is {'a folder' if path.is_dir() else 'no file'}"
            told = f"{problem}, and this reads {self.noun}s: give the name of one ({', '.join(self.endings[:3])} ...)"
            raise UnreadableError(told, "the name of no file", text)
        return path

    def content(self, path: Path) -> bytes:
        """The bytes of a file."""
        try:
            return path.read_bytes()
        except OSError as problem:
            told = f"{path} cannot be read as a {self.noun}: {problem.strerror or problem}"
            raise UnreadableError(told, "a file that cannot be read", str(path)) from None

    def received(self, value: Any) -> bytes:
        """What came over the network: base64, perhaps as a data: URL. A path or an address is never opened."""
        asked = f"this run reads {self.noun}s: give one as base64 or as a data: URL"
        self.check_one(value)
        if not isinstance(value, str):
            raise SaccadeError(asked)
        head, comma, body = value.partition(",") if value.startswith("data:") else ("", "", value)
        if value.startswith("data:") and not (
            comma and head.startswith(f"data:{self.type}/") and head.endswith(";base64")
        ):
            raise SaccadeError(
                f"a {self.noun}'s data: URL begins with data:{self.example};base64, (or another kind of {self.noun})"
            )
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise SaccadeError(asked) from None


class FileSource(Source):
    """An X whose examples are files. media: what they are; inside: what one holds, which may also be in no file."""

    media: ClassVar[Media]
    inside: ClassVar[str]

    @staticmethod
    @abstractmethod
    def opened(raw: Any) -> Any:
        """What is in a raw thing; raises `UnreadableError` where that is none of its kind."""

    @staticmethod
    @abstractmethod
    def digest(raw: Any) -> bytes:
        """The hash of a raw thing that is neither a file nor the bytes of one."""

    @classmethod
    def cell(cls, text: str, folder: Path) -> Path:
        """The path of a file, whose name is relative to the folder of the table."""
        return cls.media.existing(folder / text.strip(), text)

    @classmethod
    def cells(cls, raw: Any, folder: Path) -> list[str]:
        """The name of its file from the folder of the table; refuses what is in no file of its own."""
        if not isinstance(raw, str | Path):
            told = f"these {cls.media.noun}s are {cls.inside} without files of their own, and a table names files"
            raise SaccadeError(told)
        return [os.path.relpath(raw, folder)]

    @classmethod
    def identity(cls, raw: Any) -> bytes:
        """The hash of its file, which need not be decoded for that; of what is in no file, that of its content."""
        if isinstance(raw, str | Path):
            return disk.known_digest(Path(raw)).encode()
        return hashlib.sha256(raw).digest() if isinstance(raw, bytes) else cls.digest(raw)

    @classmethod
    def flaw(cls, raw: Any) -> UnreadableError | None:
        return flaw(raw, cls.opened)

    def line(self, text: str) -> Path:
        """The path of a file."""
        self.media.check_one(text)
        return self.media.existing(Path(str(text)), str(text))


def flaw(raw: Any, reads: Callable[[Any], Any]) -> UnreadableError | None:
    """Why a raw thing cannot be read, if it cannot. Of a file that is remembered until it changes."""
    if not isinstance(raw, str | Path):
        return _flaw_of(raw, reads)
    try:
        state = Path(raw).stat()
    except OSError:
        return _flaw_of(raw, reads)
    return _flaw_of_file(str(raw), reads, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1 << 20)
def _flaw_of_file(path: str, reads: Callable[[Any], Any], size: int, changed: int) -> UnreadableError | None:
    """`flaw` of a file of this size that was changed at this time."""
    return _flaw_of(path, reads)


def _flaw_of(raw: Any, reads: Callable[[Any], Any]) -> UnreadableError | None:
    try:
        reads(raw)
    except UnreadableError as problem:
        return UnreadableError(str(problem), problem.reason, problem.name)  # without the frames, which hold its content
    return None
