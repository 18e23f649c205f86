"""Boxes of pictures as files have them, checked against their picture: rows (path of the picture, Elements).

Each format of files is read in a file of its own (`coco`, `voc`, `yolo`, `boxtable`), as annotated pictures; what is
wrong with a box or a picture is told here, for all of them alike.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from saccade import disk
from saccade.error import SaccadeError
from saccade.field.elements.element import Elements, elements
from saccade.field.field import Kind, UnreadableError
from saccade.field.picture import ENDINGS, extent_of

HOLDS = [("image", "boxes")]
ROUNDING = 0.5  # pixels that a box may lie outside its picture without a word
SPLITS = {"train": "train", "val": "val", "test": "test"}  # a split, and how the name of its folder begins
LeaveOut = Callable[[str, str, str], None]  # a reason that all such have, a place, and what is wrong in a sentence


class Box(NamedTuple):
    """corners: left, top, right, bottom; place: what an error calls it, such as its file and line."""

    label: str
    corners: tuple[float, float, float, float]
    place: str


class Annotated(NamedTuple):
    """A picture and what its annotations say. size: its width and height as they say, where they do; shares: whether
    corners are shares of the picture instead of pixels.
    """

    picture: Path
    boxes: Sequence[Box]
    size: tuple[float, float] | None = None
    shares: bool = False


def rows(
    annotated: Iterable[Annotated | UnreadableError], files: Sequence[str], leave_out: LeaveOut
) -> Iterator[tuple[Path, Elements]]:
    """Each picture with its boxes. A picture that cannot be read or whose annotations cannot (given as an error), and
    boxes that are none, are left out; where nothing can be read, the first problem is told.
    """
    first, sound = None, False
    for each in annotated:
        try:
            if isinstance(each, Exception):
                raise each
            row = each.picture, boxes_of(each, leave_out)
        except UnreadableError as problem:
            first = first or problem
            leave_out(problem.reason, problem.name, str(problem))
            continue
        sound = True
        yield row
    if not sound:
        told = f"the first problem: {first}" if first is not None else "there is no picture in it"
        raise SaccadeError(f"nothing of {', '.join(files)} can be read; {told}")


def boxes_of(annotated: Annotated, leave_out: LeaveOut) -> Elements:
    """The boxes of a picture in its pixels; those that stick out are cut off at its edge."""
    height, width = extent_of(annotated.picture)
    _check_size(annotated, width, height)
    scale = np.array([width, height, width, height], np.float64) if annotated.shares else np.ones(4)
    limits = np.array([width, height, width, height], np.float64)
    labels, corners = [], []
    for box in annotated.boxes:
        given = np.array(box.corners, np.float64) * scale
        inside = given.clip(0, limits)
        reason = _flaw(box, given, inside)
        if reason is not None:
            leave_out(reason, box.place, f"{box.place}: {reason}, {_numbers(given)} in {width} x {height} pixels")
            continue
        if (abs(inside - given) > ROUNDING).any():
            told = f"{box.place}: {_numbers(given)} sticks out of the {width} x {height} pixels of {annotated.picture}"
            leave_out(STICKS_OUT, box.place, told)
        labels.append(box.label.strip())
        corners.append(inside)
    return elements(labels, corners, (0, 0, width, height))


STICKS_OUT = "the part of a box that is outside its picture"


def _flaw(box: Box, given: np.ndarray, inside: np.ndarray) -> str | None:
    """Why a box is none, if it is none. given: its corners in pixels; inside: those of the part in the picture."""
    if not box.label.strip():
        return "a box without a label"
    if not np.isfinite(given).all():
        return "a box whose corners are no numbers"
    if (given[2:] <= given[:2]).any():
        return "a box without area"
    return "a box outside its picture" if (inside[2:] <= inside[:2]).any() else None


def _numbers(corners: np.ndarray) -> str:
    return ", ".join(f"{each:g}" for each in corners)


def _check_size(annotated: Annotated, width: int, height: int) -> None:
    """Refuses annotations of a picture of another size: their boxes would lie elsewhere."""
    if annotated.size is None or annotated.size == (width, height):
        return
    name, (wide, tall) = str(annotated.picture), annotated.size
    told = f"{name} has {width} x {height} pixels as a person sees it, and its annotations are of {wide:g} x {tall:g}"
    raise UnreadableError(told, "a picture of another size than its annotations say", name)


def inner(folder: Path, name: str, source: str) -> Path:
    """The path of a file in a folder; refuses a name that leads out of it. source: which file says that name."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not name.strip() or ".." in parts or parts[0].endswith((":", "/")) or "\0" in name:
        raise SaccadeError(f"{source} names the picture {name!r:.80}: names are relative to the folder, and stay in it")
    return folder.joinpath(*parts)


def pictures(folder: Path) -> list[Path]:
    """The pictures in a folder and in folders inside it, without hidden ones."""
    found = (each for each in sorted(folder.rglob("*")) if each.suffix.lower() in ENDINGS)
    return [each for each in found if not each.name.startswith(".") and each.is_file()]


def split_of(name: str) -> str | None:
    """The split that a folder's name says, if it does: train2017, valid."""
    return next((split for split, begin in SPLITS.items() if name.lower().startswith(begin)), None)


def splits_in(names: Iterable[str | None]) -> tuple[str, ...]:
    """The splits in their order; none where no row is for training."""
    found = {*names}
    return tuple(each for each in SPLITS if each in found) if "train" in found else ()


def digest(folder: Path, files: Iterable[Path]) -> str:
    """The hash of the names and contents of files in a folder; of one that is not there, of its name."""
    found = hashlib.sha256()
    for each in files:
        content = disk.known_digest(each) if each.is_file() else ""
        found.update(os.fsencode(os.path.relpath(each, folder)) + f" {content}\n".encode())
    return found.hexdigest()


def asked(kinds: Mapping[str, Kind]) -> bool:
    """Whether pictures with boxes are what is to be read."""
    return tuple(each.kind for each in kinds.values()) in HOLDS
