"""Sets of points as arrays: read from a file, from JSON or from Python, or made of the pixels of a picture.

A file is JSON, [[0.5, 1.0], [2.0, 0.25], ...] or {"points": [...]}; NPZ with an array `points`, or NPY; or lines of
numbers (.csv .tsv .txt .xyz), a point in each. Of a picture each pixel that stands out from the ground is a point
(x, y, light): bytes of two or three axes are one, other arrays are rows of numbers.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saccade.error import SaccadeError
from saccade.field.field import UnreadableError
from saccade.field.file import Media
from saccade.field.picture import ENDINGS as PICTURES
from saccade.field.picture import pixels_of

ENDINGS = (".npy", ".xyz")
POINTS = Media("point set", (".json", ".npz", ".csv", ".npy"), "application", "application/json")
LARGEST = 200_000_000  # bytes of a file
AS_JSON = "[[0.5, 1.0], [2.0, 0.25], ...]"
EXACT = 9  # digits that tell every float32 apart


def points_of(raw: Any) -> np.ndarray:
    """A set (N,F) float32 from itself, a list, a table {"points": ...}, a picture, or a file or the bytes of one."""
    if isinstance(raw, str | Path):
        return _of_file(Path(raw))
    if isinstance(raw, bytes):
        return _of_bytes(raw, "this")
    if isinstance(raw, Mapping):
        return _of_table(raw, "this set")
    if is_picture(raw):
        return of_pixels(pixels_of(raw))
    if isinstance(raw, Sequence) or hasattr(raw, "__array__"):
        return _checked(raw, "this set")
    raise _unreadable(f"a set of points is rows of numbers, {AS_JSON}; got {type(raw).__name__}")


def is_picture(raw: Any) -> bool:
    """Whether a raw thing is a picture whose pixels become points: its file, an array of bytes, or one of PIL."""
    if isinstance(raw, str | Path):
        return Path(raw).suffix.lower() in PICTURES
    if isinstance(raw, np.ndarray):
        return raw.dtype == np.uint8 and raw.ndim in (2, 3)
    return hasattr(raw, "mode") and hasattr(raw, "convert")


def of_pixels(pixels: np.ndarray) -> np.ndarray:
    """Pixels (3,H,W) that differ from the ground, the light of most of the edge, as points (x, y, light): where the
    middle of each is, in units of the longer side, and by how much it differs, from 0 to 1.
    """
    grey = np.tensordot(np.array([0.299, 0.587, 0.114]), pixels.astype(np.float64), 1)
    edge = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    light = np.rint(np.abs(grey - np.median(edge)))
    rows, columns = np.nonzero(light)
    places = (np.stack([columns, rows], 1) + 0.5) / max(grey.shape)
    return np.concatenate([places, light[rows, columns, None] / 255], 1).astype(np.float32)


def of_json(text: str, name: str) -> np.ndarray:
    """A set written as JSON."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _unreadable(f"{name} is no JSON ({problem}): a set of points is {AS_JSON}", name) from None
    return _of_table(held, name) if isinstance(held, dict) else _checked(held, name)


def as_json(points: np.ndarray) -> str:
    """A set as JSON, from which the same float32 are read back."""
    return json.dumps([[float(f"{each:.{EXACT}g}") for each in row] for row in points.tolist()])


def _of_file(path: Path) -> np.ndarray:
    if is_picture(path):
        return of_pixels(pixels_of(path))
    content = POINTS.content(POINTS.existing(path, str(path)))
    if len(content) > LARGEST:
        raise _unreadable(f"{path} has {len(content):,} bytes, and a set of points has {LARGEST:,} at most", str(path))
    return _of_bytes(content, str(path))


def _of_bytes(content: bytes, name: str) -> np.ndarray:
    if content[:2] == b"PK" or content[:6] == b"\x93NUMPY":
        return _of_arrays(content, name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return of_pixels(pixels_of(content))  # which says so, where it is no picture
    return of_json(text, name) if text.lstrip()[:1] in ("{", "[") else _of_lines(text, name)


def _of_arrays(content: bytes, name: str) -> np.ndarray:
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(found, np.ndarray):
            return _checked(found, name)
        with found:
            return _of_table({key: found[key] for key in found.files}, name)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as problem:
        if isinstance(problem, SaccadeError):
            raise
        raise _unreadable(f"{name} is damaged, or holds pickles, which are not read: {problem}", name) from None


def _of_lines(text: str, name: str) -> np.ndarray:
    """A point in each line; a first line without numbers is a header."""
    rows = [line.replace(",", " ").replace(";", " ").split() for line in text.splitlines() if line.strip()]
    if rows and not _is_number(rows[0][0]):
        rows = rows[1:]
    return _checked(rows, name)


def _of_table(table: Mapping[str, Any], name: str) -> np.ndarray:
    if "points" not in table:
        there = ", ".join(map(repr, table)) or "nothing"
        raise _unreadable(f"{name} has no 'points' (it has {there}): a set of points is {AS_JSON}", name)
    return _checked(table["points"], name)


def _checked(values: Any, name: str) -> np.ndarray:
    """Rows of numbers (N,F); a list of numbers is one of points with one number each."""
    try:
        found = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        raise _unreadable(f"{name}: points are rows of numbers, all equally long, {AS_JSON}", name) from None
    if not found.size:
        return np.empty((0, found.shape[1] if found.ndim == 2 else 0), np.float32)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2:
        raise _unreadable(f"{name}: a set of points has two axes, points and their numbers; got {found.shape}", name)
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).any(1).argmax())
        raise _unreadable(f"{name}: point {row} has a number that is not finite", name)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unreadable(told: str, name: str = "") -> UnreadableError:
    return UnreadableError(told, "no set of points", name)
