"""A folder by class: the name of each folder inside it is the label of the files that lie there."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade import disk
from saccade.error import SaccadeError
from saccade.field.field import Kind
from saccade.field.kinds import SOURCES


def files(folder: str | Path) -> list[tuple[Path, str]]:
    """The files of a folder that some kind of X reads, all of one kind, with their labels, in the order of their names;
    of several kinds, those of the commonest.
    """
    root = Path(folder)
    inner = sorted(each for each in root.iterdir() if each.is_dir() and not each.name.startswith("."))
    found = [
        (path, each.name)
        for each in inner
        for path in sorted(each.rglob("*"))
        if path.suffix.lower() in KINDS and not path.name.startswith(".") and path.is_file()
    ]
    if not found:
        there = "it has no folders inside" if not inner else f"its folders ({inner[0].name}, ...) hold no pictures"
        raise SaccadeError(f"{folder} is no folder of pictures by class: {there}")
    ((kind, _),) = Counter(KINDS[path.suffix.lower()] for path, _ in found).most_common(1)
    return [(path, label) for path, label in found if KINDS[path.suffix.lower()] == kind]


def kind(folder: str | Path) -> str:
    """The kind of X that the files of a folder are."""
    return KINDS[files(folder)[0][0].suffix.lower()]


def digest(folder: str | Path) -> str:
    """The hash of the names and contents of all its files."""
    found = hashlib.sha256()
    for path, _ in files(folder):
        found.update(os.fsencode(path.relative_to(folder)) + f" {disk.known_digest(path)}\n".encode())
    return found.hexdigest()


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Whether all of them are folders."""
    return bool(paths) and all(path.is_dir() for path in paths)


def rows(folders: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The files and labels of all folders."""
    return (each for folder in folders for each in files(folder))


KINDS: dict[str, str] = {ending: name for name, field in SOURCES.items() for ending in field.endings}
