"""Sets of points with boxes around some of them, in lines of JSON: rows (points, Elements of 2 or 3 axes).

    {"points": [[x, y, z, ...], ...], "boxes": [{"label": "car", "corners": [x0, y0, z0, x1, y1, z1]}]}

The first numbers of a point are its coordinates. A line may tell the space that it is a part of, "frame": [x0, y0, z0,
x1, y1, z1]; otherwise its points and boxes fill it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saccade.data import source
from saccade.data.skipped import numbered
from saccade.error import SaccadeError
from saccade.field.cloud import points_of
from saccade.field.elements.element import Elements, elements
from saccade.field.field import Kind, UnreadableError

HOLDS = [("points", "boxes")]
KEYS = {"points", "boxes"}
ENDING = ".jsonl"
LINE = '{"points": [[x, y, z], ...], "boxes": [{"label": "car", "corners": [x0, y0, z0, x1, y1, z1]}]}'
LeaveOut = Callable[[str, int, str], None]  # a reason that all such have, a line, and what is wrong in a sentence


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Lines of JSON whose first has points and boxes."""
    return bool(paths) and all(
        path.is_file() and source.kind(path) == ENDING and set(source.titles(path)) >= KEYS for path in paths
    )


def rows(files: Sequence[str], leave_out: LeaveOut) -> Iterator[tuple[Any, ...]]:
    """The points and boxes of each line. Lines and boxes that cannot be read are left out; where no line can be read,
    the first problem is told.
    """
    axes = axes_of(files)
    first, sound = None, False
    for path, number, line in _lines(files):
        try:
            row = read(line, number, f"{path}, line {number}", axes, leave_out)
        except UnreadableError as problem:
            first = first or problem
            leave_out(problem.reason, number, str(problem))
            continue
        sound = True
        yield numbered(row, number)
    if not sound:
        told = f"the first problem: {first}" if first is not None else "there is no line in it"
        raise SaccadeError(f"nothing of {', '.join(files)} can be read; {told}")


def axes_of(files: Sequence[str]) -> int:
    """How many axes the boxes have: those of the first box or frame that there is; 3 where there is none."""
    for path, number, line in _lines(files):
        held = _object(line, f"{path}, line {number}")
        boxes = held.get("boxes")
        for each in (held.get("frame"), *(_corners(box) for box in (boxes if isinstance(boxes, list) else ()))):
            if isinstance(each, list) and len(each) in (4, 6):
                return len(each) // 2
    return 3


def read(line: str, number: int, place: str, axes: int, leave_out: LeaveOut) -> tuple[np.ndarray, Elements]:
    """The points of a line, and the boxes that are some, each cut off at the frame if the line tells it."""
    held = _object(line, place)
    if not set(held) >= KEYS or not isinstance(held["boxes"], list):
        raise UnreadableError(f"{place}: a line is {LINE}; here stands {line:.40}", "a line of another shape", place)
    try:
        points = points_of(held["points"])
    except UnreadableError as problem:
        raise UnreadableError(f"{place}: {problem}", problem.reason, place) from None
    if points.shape[1] < axes or not len(points):
        told = f"{place}: boxes have {axes} axes, and {len(points)} points have {points.shape[1]} numbers"
        raise UnreadableError(told, "points with fewer numbers than boxes have axes, or none", place)
    frame = None if held.get("frame") is None else _frame(held["frame"], axes, place)
    labels, corners = [], []
    for each in held["boxes"]:
        whole = _numbers(_corners(each))
        part = _inside(whole, frame)
        reason = _flaw(each, whole, part, axes)
        if reason is None:
            labels.append(str(each["label"]).strip())
            corners.append(part)
        reason = reason or (STICKS_OUT if (part != whole).any() else None)
        if reason is not None:
            leave_out(reason, number, f"{place}: {reason}: {json.dumps(each, ensure_ascii=False):.80}")
    if frame is None:
        ends = [points[:, :axes], *(each.reshape(2, axes) for each in corners)]
        frame = np.concatenate([np.concatenate(ends).min(0), np.concatenate(ends).max(0)])
    return points, elements(labels, corners, frame.tolist())


STICKS_OUT = "the part of a box that is outside the frame"


def _lines(files: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """The lines of all files that are not blank, each with its file and number."""
    for path in files:
        yield from ((path, number, line) for number, line in enumerate(source.lines(path), 1) if line.strip())


def _object(line: str, place: str) -> dict[str, Any]:
    """The object in a line; one that is no JSON ends the reading, since the file is damaged."""
    try:
        held = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise SaccadeError(f"{place}: this is no JSON ({problem}); a line is {LINE}") from None
    if not isinstance(held, dict):
        raise SaccadeError(f"{place}: a line is {LINE}; here stands {line:.40}")
    return held


def _corners(box: Any) -> Any:
    return box.get("corners") if isinstance(box, Mapping) else None


def _numbers(held: Any) -> np.ndarray:
    """Corners as an array; none where they are no row of numbers."""
    try:
        found = np.array(held, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
    return found if found.ndim == 1 else np.empty(0)


def _inside(corners: np.ndarray, frame: np.ndarray | None) -> np.ndarray:
    """The part of a box that is inside a frame of as many axes."""
    if frame is None or len(frame) != len(corners):
        return corners
    low, high = np.split(frame, 2)
    return corners.clip(np.tile(low, 2), np.tile(high, 2))


def _flaw(box: Any, whole: np.ndarray, part: np.ndarray, axes: int) -> str | None:
    """Why a box is none, if it is none. part: its corners inside the frame."""
    if len(whole) != 2 * axes:
        return f"a box whose corners are not {2 * axes} numbers"
    if not isinstance(box.get("label"), str | int) or not str(box["label"]).strip():
        return "a box without a label"
    if not np.isfinite(whole).all():
        return "a box whose corners are not finite"
    if (whole[axes:] <= whole[:axes]).any():
        return "a box of no size"
    return "a box outside the frame" if (part[axes:] <= part[:axes]).any() else None


def _frame(held: Any, axes: int, place: str) -> np.ndarray:
    """The frame that a line tells."""
    found = _numbers(held)
    if _flaw({"label": "frame"}, found, found, axes) is not None:
        told = f"{place}: a frame is where the space begins along {axes} axes and then where it ends, not {held!r:.60}"
        raise UnreadableError(told, "a frame that is none", place)
    return found
