"""Files that are there whole or not at all: written aside, flushed to the disk, renamed into place."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from saccade.error import SaccadeError

MANIFEST = "manifest.json"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FORMAT = 1  # of run folders and checkpoints


@contextmanager
def aside(path: Path, *, over: bool = False) -> Iterator[Path]:
    """A folder to fill, which becomes `path` when all went well, and vanishes when not.

    What is at `path` is replaced at the very end: an empty folder always, a full one only if `over`.
    """
    _clear(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with explaining(path):
            partial.mkdir(parents=True)
            yield partial
            for each in sorted(partial.rglob("*")):
                flush(each)
            flush(partial)
            if path.is_dir():
                old = partial.with_suffix(".old")
                if over:
                    path.replace(old)
                else:
                    path.rmdir()  # which the system refuses for a folder that is not empty
                shutil.rmtree(old, ignore_errors=True)
            partial.replace(path)
            flush(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write(path: Path, content: bytes) -> None:
    """Writes one file in place of what was there."""
    with _replacing(path) as partial:
        partial.write_bytes(content)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Writes one file of tensors in place of what was there."""
    with _replacing(path) as partial:
        save_tensors(partial, tensors)


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Writes tensors by name; an error of safetensors becomes an OSError, as any other failure to write is."""
    try:
        save_file({name: each.detach().contiguous() for name, each in tensors.items()}, path, metadata={"format": "pt"})
    except SafetensorError as problem:
        raise OSError(errno.EIO, f"{problem}") from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Reads what `save_tensors` wrote."""
    try:
        return load_file(path)
    except SafetensorError as problem:
        raise SaccadeError(f"{path} is damaged: {problem}") from None


def seal(folder: Path, about: dict[str, Any], *, without: tuple[str, ...] = ()) -> None:
    """Writes the manifest, when all else is there: `about` the folder, and the hash of every file outside `without`."""
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    names = {each.relative_to(folder).as_posix(): each for each in files}
    kept = {name: digest(each) for name, each in names.items() if name.split("/")[0] not in without}
    content = {"format": FORMAT, **about, "sha256": kept}
    (folder / MANIFEST).write_text(json.dumps(content, indent=2, sort_keys=True))


def manifest(folder: Path) -> dict[str, Any]:
    """What a folder's manifest says; refuses one that is damaged, or written by a newer saccade."""
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_text())
        version = int(found["format"])
        outside = [name for name, _ in found["sha256"].items() if not _inside(name)]
    except FileNotFoundError:
        raise DamagedError(f"{folder} lacks {MANIFEST}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise DamagedError(f"{path} is damaged") from None
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror}") from None
    if outside:
        raise DamagedError(f"{path} is damaged: it names a file outside the folder ({outside[0]!r:.80})")
    if version > FORMAT:
        raise SaccadeError(f"{folder} was written by a newer saccade (format {version}, here {FORMAT}): update saccade")
    return dict(found)


def _inside(name: str) -> bool:
    """Whether a manifest names a file below its own folder: a run may come from a stranger."""
    parts = PurePosixPath(name).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts and "\\" not in name


def verify(folder: Path) -> dict[str, Any]:
    """The manifest; refuses a folder that lacks one of its files, or has one with another hash."""
    found = manifest(folder)
    for name, expected in found["sha256"].items():
        sound(folder / name, expected)
    return found


def sound(file: Path, expected: str) -> Path:
    """The file; refuses one that is missing or has another hash."""
    if not file.is_file():
        raise DamagedError(f"{file.parent} lacks {file.name}")
    if digest(file) != expected:
        raise DamagedError(f"{file} is damaged: its hash is not the one that was written down")
    return file


class DamagedError(SaccadeError):
    """A file is not what its manifest says."""


def vacant(path: Path) -> Path:
    """The absolute path of a folder to make; refuses one that holds anything."""
    path = named(path.absolute())
    with explaining(path):
        if path.is_symlink():
            raise SaccadeError(f"{path} is a link to {path.readlink()}: give the folder itself")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise SaccadeError(f"{path} is there already and not empty: give a new folder")
        path.parent.mkdir(parents=True, exist_ok=True)
    return writable(path)


def writable(path: Path) -> Path:
    """The path of a file or folder to make; refuses it before any long work if its parent cannot be written to."""
    with explaining(path):
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return path


def named(path: Path) -> Path:
    """The path; refuses a name that is not UTF-8, since a run stores its paths as text."""
    if any(0xD800 <= ord(letter) < 0xE000 for letter in str(path)):  # surrogates stand for other bytes
        raise SaccadeError(f"{str(path)!r}: this name is not UTF-8, and a run could not store it: rename it")
    return path


@cache
def _digest(path: Path, size: int, changed: int) -> str:
    return digest(path)


def known_digest(path: Path) -> str:
    """The hash of a file that somebody else wrote, computed again only when its size or time has changed."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror}") from None


def flush(path: Path) -> None:
    """Waits until a file or folder is on the disk (fsync), so that nothing written later is there before it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turns an error of the disk while `path` is written into one sentence."""
    try:
        yield
    except OSError as problem:
        full = problem.errno in FULL or any(os.strerror(each) in str(problem) for each in FULL)
        reason = "the disk is full" if full else (problem.strerror or str(problem))
        raise SaccadeError(f"{path} cannot be written: {reason}; what was there before is untouched") from None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with explaining(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield partial
            flush(partial)
            partial.replace(path)
            flush(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Removes half-written copies of `path` that this process, or one that has ended, left behind."""
    for each in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = each.name.split(".")[-2]
        if owner.isdigit() and (int(owner) == os.getpid() or not _lives(int(owner))):
            shutil.rmtree(each, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it lives, and belongs to another user
        return True
    return True
