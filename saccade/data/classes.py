"""A folder by class: the name of each folder inside it is the label of the files that lie there."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade import disk
from saccade.error import SaccadeError
from saccade.field.field import Kind
from saccade.field.kinds import SOURCES


class ClassFolder(NamedTuple):
    """files: those that a kind of X can read, with their labels, sorted by name; others: what is left out, by name and
    reason.
    """

    files: list[tuple[Path, str]]
    others: list[tuple[str, str]]


def folder(path: str | Path) -> ClassFolder:
    """What lies in a folder by class; of files of several kinds, those of the commonest are read."""
    root = Path(path)
    visible = [each for each in sorted(root.iterdir()) if not each.name.startswith(".")]
    inner = [each for each in visible if each.is_dir()]
    every = [(path, each.name) for each in inner for path in _files_in(each)]
    counts = Counter(KINDS[path.suffix.lower()] for path, _ in every if path.suffix.lower() in KINDS)
    if not counts:
        there = "it has no folders inside" if not inner else f"its folders ({inner[0].name}, ...) hold no {_nouns()}"
        raise SaccadeError(f"{path} is no folder of {_nouns()} by class: {there}")
    ((common, _),) = counts.most_common(1)
    noun = SOURCES[common].noun
    found = [(path, label) for path, label in every if KINDS.get(path.suffix.lower()) == common]
    empty = {each.name for each in inner} - {label for _, label in found}
    others = [(str(root / each), f"a class folder without {noun}s") for each in sorted(empty)]
    others += [(str(path), "another kind of file") for path, _ in every if KINDS.get(path.suffix.lower()) != common]
    others += [(str(path), "a link to nothing") for each in inner for path in sorted(each.rglob("*")) if _broken(path)]
    stray = [each for each in visible if each.is_file() and KINDS.get(each.suffix.lower()) == common]
    return ClassFolder(found, others + [(str(each), f"a {noun} in no class folder") for each in stray])


def _nouns() -> str:
    """What a folder by class may hold, in words."""
    return " or ".join(f"{field.noun}s" for field in SOURCES.values() if field.endings)


def _files_in(folder: Path) -> list[Path]:
    """All files of a class, in folders inside too, without hidden ones."""
    return [each for each in sorted(folder.rglob("*")) if not each.name.startswith(".") and each.is_file()]


def _broken(path: Path) -> bool:
    """Whether it is a link to a file that is not there."""
    return path.is_symlink() and not path.exists() and not path.name.startswith(".")


def kind(path: str | Path) -> str:
    """The kind of X that the files of a folder are."""
    return KINDS[folder(path).files[0][0].suffix.lower()]


def digest(path: str | Path) -> str:
    """The hash of the names and contents of all its files that are read."""
    found = hashlib.sha256()
    for each, _ in folder(path).files:
        found.update(os.fsencode(each.relative_to(path)) + f" {disk.known_digest(each)}\n".encode())
    return found.hexdigest()


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    return bool(paths) and all(path.is_dir() for path in paths)


def rows(paths: Sequence[str], leave_out: Callable[[str, str, str], None]) -> Iterator[tuple[Any, ...]]:
    """Files and their labels. leave_out: gets the reason, the name and a sentence of each that is none."""
    for path in paths:
        found = folder(path)
        for name, reason in found.others:
            leave_out(reason, name, f"{name} is {reason}")
        yield from found.files


# Of several kinds whose files end alike, the first: graphs and tracks are both JSON.
KINDS: dict[str, str] = {ending: name for name, field in reversed(SOURCES.items()) for ending in field.endings}
