"""COCO's JSON (Lin et al. 2014): one file with `images`, `annotations` and `categories`; the pictures lie beside it, or
in a folder `images` beside it, under their `file_name`.

A box is [left, top, width, height] in pixels. Annotations of crowds (`iscrowd`) are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from saccade.data.boxes import Annotated, Box, LeaveOut, asked, inner
from saccade.data.boxes import digest as boxes_digest
from saccade.error import SaccadeError
from saccade.field.field import Kind, UnreadableError

FOLDERS = (".", "images")  # where pictures are looked for, from the folder of the file
SHAPE = '{"images": [...], "annotations": [...], "categories": [...]}'
CROWD = "a box of a crowd"


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """JSON where boxes are asked for; else JSON that has COCO's keys."""
    if not paths or not all(path.suffix.lower() == ".json" and path.is_file() for path in paths):
        return False
    return asked(kinds) or all(b'"images"' in each and b'"annotations"' in each for each in map(Path.read_bytes, paths))


def annotated(path: Path, leave_out: LeaveOut) -> Iterator[Annotated | UnreadableError]:
    """Every picture of a file, with its boxes, in the order of the file."""
    content = _content(path, path.stat().st_mtime_ns)
    names = {_key(each, "id", path): str(each.get("name", "")) for each in _entries(content, "categories", path)}
    by_picture: dict[Any, list[dict[str, Any]]] = {}
    for each in _entries(content, "annotations", path):
        by_picture.setdefault(_key(each, "image_id", path), []).append(each)
    known = set()
    for each in _entries(content, "images", path):
        key = _key(each, "id", path)
        if key in known:
            raise SaccadeError(f"{path} has two images with the id {key!r}: give each one of its own")
        known.add(key)
        marks = by_picture.get(key, [])
        boxes = [box for mark in marks for box in _box(mark, names, path, leave_out)]
        yield Annotated(_picture(each, path), boxes, _size(each))
    for key in (each for each in by_picture if each not in known):
        told = f"{path} has annotations of an image {key!r} that is not among its images"
        yield UnreadableError(told, "annotations of an image that is not there", f"image_id {key}")


def digest(path: str | Path) -> str:
    """The hash of the file and of the pictures that it names."""
    path = Path(path)
    entries = _entries(_content(path, path.stat().st_mtime_ns), "images", path)
    return boxes_digest(path.parent, [path, *(_picture(each, path) for each in entries)])


def _box(mark: Mapping[str, Any], names: Mapping[Any, str], path: Path, leave_out: LeaveOut) -> Iterator[Box]:
    """The box of an annotation, if it is of one thing."""
    place = f"{path.name}, annotation {mark.get('id', '?')}"
    if mark.get("iscrowd"):
        leave_out(CROWD, place, f"{place}: this is {CROWD}, not of one thing")
        return
    category = _key(mark, "category_id", path)
    if category not in names:
        raise SaccadeError(f"{place}: its category_id {category!r} is not among the categories ({_some(names)})")
    given = mark.get("bbox")
    try:
        left, top, width, height = map(float, given if isinstance(given, list) else ())
    except (TypeError, ValueError, OverflowError):
        left = top = width = height = float("nan")
    yield Box(names[category], (left, top, left + width, top + height), place)


def _some(names: Mapping[Any, str]) -> str:
    return ", ".join(f"{key}: {name}" for key, name in list(names.items())[:10])


def _picture(image: Mapping[str, Any], path: Path) -> Path:
    """Where a picture lies: the first of the folders that has it."""
    name = image.get("file_name")
    if not isinstance(name, str):
        raise SaccadeError(f"{path}: the image with the id {image.get('id')!r} has no file_name")
    places = [inner(path.parent / folder, name, str(path)) for folder in FOLDERS]
    return next((each for each in places if each.is_file()), places[0])


def _size(image: Mapping[str, Any]) -> tuple[float, float] | None:
    """Width and height, where they are said."""
    sides = image.get("width"), image.get("height")
    known = all(isinstance(each, int | float) and each > 0 for each in sides)
    return (float(sides[0] or 0), float(sides[1] or 0)) if known else None


def _entries(content: Mapping[str, Any], name: str, path: Path) -> list[dict[str, Any]]:
    found = content.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise SaccadeError(f"{path} has no list {name!r} of objects; boxes in COCO's form are {SHAPE}")
    return found


def _key(entry: Mapping[str, Any], name: str, path: Path) -> int | str:
    found = entry.get(name)
    if isinstance(found, bool) or not isinstance(found, int | str):
        raise SaccadeError(f"{path}: {name} is a number or a name in COCO's form, not {found!r:.40}")
    return found


@lru_cache(2)
def _content(path: Path, changed: int) -> dict[str, Any]:
    """What is in a file that was changed at this time."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as problem:
        raise SaccadeError(f"{path} is no JSON ({problem}); boxes in COCO's form are {SHAPE}") from None
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror or problem}") from None
    if not isinstance(found, dict):
        raise SaccadeError(f"{path} is no object; boxes in COCO's form are {SHAPE}")
    return found
