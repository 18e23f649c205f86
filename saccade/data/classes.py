"""A folder by class: the name of each folder inside it is the label of the files that lie there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade import disk
from saccade.error import SaccadeError
from saccade.field.field import Kind
from saccade.field.picture import ENDINGS


def files(folder: str | Path) -> list[tuple[Path, str]]:
    """The pictures of a folder with their labels, in the order of their names."""
    root = Path(folder)
    inner = sorted(each for each in root.iterdir() if each.is_dir() and not each.name.startswith("."))
    found = [
        (path, each.name)
        for each in inner
        for path in sorted(each.rglob("*"))
        if path.suffix.lower() in ENDINGS and path.is_file()
    ]
    if not found:
        there = "it has no folders inside" if not inner else f"its folders ({inner[0].name}, ...) hold no pictures"
        raise SaccadeError(f"{folder} is no folder of pictures by class: {there}")
    return found


def digest(folder: str | Path) -> str:
    """The hash of the names and contents of all pictures."""
    found = hashlib.sha256()
    for path, _ in files(folder):
        found.update(f"{path.relative_to(folder)} {disk.digest(path)}\n".encode())
    return found.hexdigest()


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Whether all of them are folders."""
    return bool(paths) and all(path.is_dir() for path in paths)


def rows(folders: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The pictures and labels of all folders."""
    return (each for folder in folders for each in files(folder))
