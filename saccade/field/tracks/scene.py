"""Scenes of tracks as arrays: read from a file, from JSON or from Python, and checked.

A scene is (agents, steps, axes), two axes or three, NaN where an agent is not there. A file is JSON, a list of tracks,
each a list of places with null for a step where the agent is not there, [[[0, 1], [0.5, 1]], [null, [3, 2]]], or
{"tracks": [...]}; NPZ with an array `tracks`, or NPY; or a table `frame agent x y` (.csv .tsv .txt), whose frames are
the steps.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade.error import SaccadeError
from saccade.field.field import UnreadableError
from saccade.field.file import Media

ENDINGS = (".json",)
TRACKS = Media("scene of tracks", (".json", ".csv", ".npz"), "application", "application/json")
LARGEST = 200_000_000  # bytes of a file
AXES = (2, 3)
AS_JSON = "[[[0, 1], [0.5, 1]], [null, [3, 2]]]"
TITLES = 2  # of the four columns of a table, how many are no numbers in a line that is a header, at least
EVEN = 1e-6  # share of a step by which a frame may be off
ROOM = 50_000_000  # numbers of a scene, at most


class Sequel(NamedTuple):
    """What was seen of a scene, (N,T,D), and what came then, (N,S,D)."""

    seen: np.ndarray
    future: np.ndarray


class Sighting(NamedTuple):
    """The rows of a table: frames (R,), the number of the agent in each (R,), and places (R,D)."""

    frames: np.ndarray
    agents: np.ndarray
    places: np.ndarray


def tracks_of(raw: Any) -> np.ndarray:
    """A scene (N,T,D) float64 from itself, a list, a table {"tracks": ...}, or a file or the bytes of one."""
    if isinstance(raw, str | Path):
        return _of_bytes(_content(Path(raw)), str(raw))
    if isinstance(raw, bytes):
        return _of_bytes(raw, "this")
    if isinstance(raw, Mapping):
        return _of_table(raw, "this scene", "tracks")
    if isinstance(raw, Sequence) or hasattr(raw, "__array__"):
        return checked(raw, "this scene")
    raise unreadable(f"a scene is tracks of places, {AS_JSON}; got {type(raw).__name__}")


def of_json(text: str, name: str) -> np.ndarray:
    """A scene written as JSON."""
    held = _parsed(text, name)
    return _of_table(held, name, "tracks") if isinstance(held, dict) else checked(held, name)


def sequel_of(raw: Any) -> Sequel:
    """A scene with what came then, from itself, a table {"seen": ..., "future": ...}, or that as JSON."""
    if isinstance(raw, Sequel):
        return raw
    held = _parsed(raw, "this") if isinstance(raw, str) else raw
    if not isinstance(held, Mapping):
        raise unreadable(f'what came then is {{"seen": {AS_JSON}, "future": {AS_JSON}}}')
    seen, future = (_of_table(held, "this", key) for key in ("seen", "future"))
    if len(seen) != len(future) or seen.shape[2] != future.shape[2]:
        told = f"seen are {len(seen)} agents with {seen.shape[2]} numbers a place, and the future has"
        raise unreadable(f"{told} {len(future)} with {future.shape[2]}: it belongs to the same agents, in their order")
    return Sequel(seen, future)


def as_lists(scene: np.ndarray) -> list[list[list[float] | None]]:
    """A scene as plain lists, None where an agent is not there."""
    there = np.isfinite(scene).all(2)
    rows = zip(scene.tolist(), there.tolist(), strict=True)
    return [[place if held else None for place, held in zip(row, now, strict=True)] for row, now in rows]


def as_json(scene: np.ndarray) -> str:
    """A scene as JSON."""
    return json.dumps(as_lists(scene))


def checked(values: Any, name: str, *, anybody: bool = True) -> np.ndarray:
    """Tracks (N,T,D), all as long and as wide; anybody: each agent is seen once at least."""
    found = values.astype(np.float64) if _is_numbers(values) else _of_lists(values, name)
    if found.ndim != 3 or found.shape[2] not in AXES:
        if not found.size:
            raise unreadable(f"{name} has no agents: a scene is one track for each, {AS_JSON}", name)
        told = f"{name}: tracks are (agents, steps, 2 or 3 numbers of a place); got {found.shape}"
        raise unreadable(told, name)
    if not found.shape[0] or not found.shape[1]:
        raise unreadable(f"{name} has no {'steps' if found.shape[0] else 'agents'}: a scene is {AS_JSON}", name)
    if np.isinf(found).any():
        agent, step = np.argwhere(np.isinf(found).any(2))[0].tolist()
        raise unreadable(f"{name}: agent {agent + 1} is infinitely far at step {step + 1}: give a finite place", name)
    part = np.isnan(found).any(2) & ~np.isnan(found).all(2)
    if part.any():
        agent, step = np.argwhere(part)[0].tolist()
        told = f"{name}: a number of agent {agent + 1} is missing at step {step + 1}: give all of a place, or null"
        raise unreadable(told, name)
    nobody = np.isnan(found).all((1, 2))
    if anybody and nobody.any():
        told = f"{name}: agent {int(nobody.argmax()) + 1} is at no step: leave it out, or say where it was"
        raise unreadable(told, name)
    return found


def sightings(path: Path) -> Sighting:
    """The rows of a table `frame agent x y`, with commas, tabs, semicolons or spaces between; a first line that is
    none is a header. Refuses two rows of one agent and frame.
    """
    return _of_lines(_decoded(_content(path), str(path)), str(path))


def steps_of(seen: Sighting, name: str) -> tuple[np.ndarray, int]:
    """The number of the step (R,) of each row, and how many there are: frames that are evenly apart, but for those in
    which nobody was there.
    """
    known = np.unique(seen.frames)
    gaps = np.diff(known)
    step = float(gaps.min()) if len(gaps) else 1.0
    places = (known - known[0]) / step
    if np.abs(places - np.rint(places)).max() > EVEN * max(len(known), 1):
        wrong = int(np.abs(places - np.rint(places)).argmax())
        told = f"{name}: frame {known[wrong]:g} is no whole number of steps of {step:g} after frame {known[0]:g}"
        raise unreadable(f"{told}: frames are evenly spaced", name)
    numbers = np.rint((seen.frames - known[0]) / step).astype(np.int64)
    return numbers, int(numbers.max()) + 1


def unreadable(told: str, name: str = "") -> UnreadableError:
    return UnreadableError(told, "no scene of tracks", name)


def _content(path: Path) -> bytes:
    content = TRACKS.content(TRACKS.existing(path, str(path)))
    if path.suffix.lower() == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise unreadable(f"{path} is no whole gzip file: fetch or compress it again", str(path)) from None
    if len(content) > LARGEST:
        told = f"{path} has {len(content):,} bytes, and a scene has {LARGEST:,} at most"
        raise unreadable(told, str(path))
    return content


def _of_bytes(content: bytes, name: str) -> np.ndarray:
    if content[:2] == b"PK" or content[:6] == b"\x93NUMPY":
        return _of_arrays(content, name)
    text = _decoded(content, name)
    return of_json(text, name) if text.lstrip()[:1] in ("{", "[") else _scene(_of_lines(text, name), name)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise unreadable(f"{name} is no table of tracks, no JSON and no array: {AS_JSON}", name) from None


def _of_arrays(content: bytes, name: str) -> np.ndarray:
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(found, np.ndarray):
            return checked(found, name)
        with found:
            return _of_table({key: found[key] for key in found.files}, name, "tracks")
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as problem:
        if isinstance(problem, SaccadeError):
            raise
        raise unreadable(f"{name} is damaged, or holds pickles, which are not read: {problem}", name) from None


def _of_table(table: Mapping[str, Any], name: str, key: str) -> np.ndarray:
    if key not in table:
        there = ", ".join(map(repr, table)) or "nothing"
        raise unreadable(f"{name} has no {key!r} (it has {there}): a scene is {AS_JSON}", name)
    return checked(table[key], name, anybody=key != "future")


def _scene(seen: Sighting, name: str) -> np.ndarray:
    """All rows of a table as one scene, the agents in the order in which they come."""
    numbers, count = steps_of(seen, name)
    agents = int(seen.agents.max()) + 1
    if agents * count * seen.places.shape[1] > ROOM:
        raise unreadable(f"{name} has {agents:,} agents in {count:,} steps, which is too much for one scene", name)
    scene = np.full((agents, count, seen.places.shape[1]), np.nan)
    scene[seen.agents, numbers] = seen.places
    return checked(scene, name)


def _of_lines(text: str, name: str) -> Sighting:
    rows = [(number, _cells(line)) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if rows and sum(not _is_number(each) for each in rows[0][1]) >= TITLES:
        rows = rows[1:]
    if not rows:
        raise unreadable(f"{name} has no rows: a line is frame, agent, x, y", name)
    wide = len(rows[0][1])
    if wide not in (4, 5):
        raise unreadable(f"{name}: a line is frame, agent, x, y (and perhaps z); line {rows[0][0]} has {wide}", name)
    names: dict[str, int] = {}
    known: dict[tuple[float, int], int] = {}
    frames, agents, places = np.empty(len(rows)), np.empty(len(rows), np.int64), np.empty((len(rows), wide - 2))
    for row, (number, cells) in enumerate(rows):
        if len(cells) != wide:
            raise unreadable(f"{name}, line {number}: {len(cells)} cells, where others have {wide}", name)
        frames[row], *places[row] = _numbers([cells[0], *cells[2:]], f"{name}, line {number}", name)
        agents[row] = names.setdefault(_agent(cells[1]), len(names))
        before = known.setdefault((float(frames[row]), int(agents[row])), number)
        if before != number:
            told = f"{name}, lines {before} and {number}: agent {cells[1]} is there twice in frame {cells[0]}"
            raise unreadable(f"{told}: leave one of them out", name)
    return Sighting(frames, agents, places)


def _cells(line: str) -> list[str]:
    return line.replace(",", " ").replace(";", " ").split()


def _agent(text: str) -> str:
    """An agent's name: 3 and 3.0 are the same."""
    return f"{float(text):g}" if _is_number(text) else text


def _numbers(cells: Sequence[str], where: str, name: str) -> list[float]:
    found = []
    for each in cells:
        value = float(each) if _is_number(each) else math.nan
        if not math.isfinite(value):
            told = f"{where}: {each!r:.40} is no finite number"
            raise unreadable(f"{told}: leave out the row of who is not there", name)
        found.append(value)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "fiu"


def _of_lists(values: Any, name: str) -> np.ndarray:
    """Lists of lists of places, None where there is none."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise unreadable(f"{name}: a scene is a list of tracks, {AS_JSON}", name)
    if not len(values):
        raise unreadable(f"{name} has no agents: a scene is one track for each, {AS_JSON}", name)
    steps = {len(each) if isinstance(each, Sequence) and not isinstance(each, str) else -1 for each in values}
    if -1 in steps or len(steps) > 1:
        told = "all tracks have as many steps, with null where an agent is not there"
        raise unreadable(f"{name}: {told}, {AS_JSON}", name)
    wide = {len(place) if _is_row(place) else 0 for row in values for place in row if place is not None}
    axes = wide.pop() if len(wide) == 1 else 0
    if axes not in AXES and any(place is not None for row in values for place in row):
        raise unreadable(f"{name}: a place is two numbers, or three in all of a scene, {AS_JSON}", name)
    filled = [[[math.nan] * (axes or 2) if place is None else place for place in row] for row in values]
    for agent, row in enumerate(filled, 1):
        for step, place in enumerate(row, 1):
            if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in place):
                told = f"{name}: agent {agent} is at {place!r:.40} at step {step}"
                raise unreadable(f"{told}: a place is numbers, or null where it is not there", name)
    try:
        return np.array(filled, np.float64).reshape(len(values), -1, axes or 2)
    except OverflowError:
        raise unreadable(f"{name}: a number is too large: give finite places", name) from None


def _is_row(place: Any) -> bool:
    return isinstance(place, Sequence) and not isinstance(place, str)


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise unreadable(f"{name} is no JSON ({problem}): a scene is {AS_JSON}", name) from None
