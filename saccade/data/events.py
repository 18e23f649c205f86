"""Events of sounds as files have them, checked against their sound: rows (path of the sound, Elements of one axis).

A table has a row for each event, with a header: the file of the sound, the label, begin and end in seconds; a row with
a file alone is a sound without events. Audacity's label files lie beside the sounds, `name.txt` beside `name.wav`, a
line for each event: begin, end and label with tabs between; a file without lines says that there is no event.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from saccade import disk
from saccade.data import source
from saccade.error import SaccadeError
from saccade.field.elements.element import Elements, elements
from saccade.field.field import Kind, UnreadableError
from saccade.field.recording import ENDINGS, recording_of

HOLDS = [("sound", "events")]
TITLES = (  # what the columns of a table may be called
    ("file", "filename", "sound", "path"),
    ("label", "event_label", "event", "class"),
    ("begin", "onset", "start"),
    ("end", "offset", "stop"),
)
HEADER = "file,label,begin,end"
LABELS = ".txt"  # the ending of Audacity's label files
PITCH = "\\"  # how a line of such a file begins that says between which frequencies the event above it is
ROUNDING = 0.01  # seconds that an event may lie outside its sound without a word
LeaveOut = Callable[[str, str, str], None]  # a reason that all such have, a place, and what is wrong in a sentence


class Mark(NamedTuple):
    """An event as a file has it. begin, end: in seconds, as they are written; place: its file and line."""

    label: str
    begin: str
    end: str
    place: str


class MarkedSound(NamedTuple):
    """A sound and what its files say is in it."""

    sound: Path
    marks: Sequence[Mark]


def is_table(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Tables where events are asked for; where no sounds are, those whose headers name all that events need. So a table
    of events is read as one of sounds with something else, if that is what a recipe wants.
    """
    if not paths or not all(path.is_file() and source.is_table(path) for path in paths):
        return False
    asked = tuple(each.kind for each in kinds.values())
    if asked[0] == HOLDS[0][0]:
        return asked in HOLDS
    return all(_columns(path) is not None for path in paths)


def is_labelled(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Folders that have sounds with files of labels beside them."""
    return bool(paths) and all(path.is_dir() and any(map(_has_labels, _sounds(path))) for path in paths)


def of_table(path: Path, columns: Sequence[str] | Sequence[int] = ()) -> Iterator[MarkedSound]:
    """Every sound of a table with its events, in the order of first appearance. columns: what they are called, in the
    order of `HEADER`, or their numbers where there is no header; by default they are known by their names.
    """
    titles = columns or _columns(path)
    if titles is None or len(titles) != len(TITLES):
        there = ", ".join(map(str, titles or source.titles(path)))
        raise SaccadeError(f"{path}: a table of events has a first line such as {HEADER}; here it is {there:.80}")
    found: dict[str, list[Mark]] = {}
    for number, row in source.cells(path, titles):
        if row:
            name, label, begin, end = map(str.strip, row)
            marks = found.setdefault(name, [])
            if label or begin or end:
                marks.append(Mark(label, begin, end, f"{path.name}, line {number}"))
    for name, marks in found.items():
        yield MarkedSound(path.parent / name, marks)


def of_folder(folder: Path, leave_out: LeaveOut) -> Iterator[MarkedSound]:
    """Every sound of a folder that has a file of labels, with its events."""
    sounds = _sounds(folder)
    for each in sounds:
        if _has_labels(each):
            yield MarkedSound(each, list(_marks(each.with_suffix(LABELS))))
        else:
            name = each.with_suffix(LABELS).name
            leave_out("a sound without a file of labels", each.name, f"{each} has no {name} beside it")
    known = {each.stem for each in sounds}
    for path in sorted(folder.glob(f"*{LABELS}")):
        if path.stem not in known and any(map(_is_event, _marks(path))):
            leave_out("labels without a sound", path.name, f"{path} has no {path.stem}.wav beside it")


def rows(marked: Iterable[MarkedSound], files: Sequence[str], leave_out: LeaveOut) -> Iterator[tuple[Path, Elements]]:
    """Each sound with its events. A sound that cannot be read, and events that are none, are left out; where no sound
    can be read, the first problem is told.
    """
    first, sound = None, False
    for each in marked:
        try:
            row = each.sound, events_of(each, leave_out)
        except UnreadableError as problem:
            first = first or problem
            leave_out(problem.reason, problem.name, str(problem))
            continue
        sound = True
        yield row
    if not sound:
        told = f"the first problem: {first}" if first is not None else "there is no sound in it"
        raise SaccadeError(f"nothing of {', '.join(files)} can be read; {told}")


def events_of(marked: MarkedSound, leave_out: LeaveOut) -> Elements:
    """The events of a sound in seconds; those that stick out are cut off where it begins and ends."""
    seconds = _seconds(marked.sound)
    labels, places = [], []
    for mark in marked.marks:
        begin, end = _number(mark.begin), _number(mark.end)
        inside = max(begin, 0.0), min(end, seconds)
        reason = _flaw(mark, (begin, end), inside)
        told = f"{mark.place}: {mark.begin or 'nothing'} to {mark.end or 'nothing'} in {marked.sound.name}"
        if reason is not None:
            leave_out(reason, mark.place, f"{told} of {seconds:g} seconds is {reason}")
            continue
        if begin < -ROUNDING or end > seconds + ROUNDING:
            leave_out(STICKS_OUT, mark.place, f"{told} sticks out of its {seconds:g} seconds")
        labels.append(mark.label)
        places.append(inside)
    order = sorted(range(len(places)), key=lambda each: places[each])
    return elements([labels[each] for each in order], [places[each] for each in order], (0.0, seconds))


STICKS_OUT = "the part of an event that is outside its sound"


def table_digest(path: str | Path) -> str:
    """The hash of a table and of the sounds that it names, in whatever column."""
    path, found = Path(path), hashlib.sha256()
    found.update(source.digest(path).encode())
    cells = (cell.strip() for row in source.first_rows(path, sys.maxsize) for cell in row)
    for name in sorted({each for each in cells if Path(each).suffix.lower() in ENDINGS}):
        sound = path.parent / name
        found.update(os.fsencode(name) + f" {disk.known_digest(sound) if sound.is_file() else ''}\n".encode())
    return found.hexdigest()


def folder_digest(path: str | Path) -> str:
    """The hash of the names and contents of the sounds in a folder, and of their labels."""
    found = hashlib.sha256()
    for each in _sounds(Path(path)):
        for file in (each, each.with_suffix(LABELS)):
            if file.is_file():
                found.update(os.fsencode(file.name) + f" {disk.known_digest(file)}\n".encode())
    return found.hexdigest()


def _flaw(mark: Mark, given: tuple[float, float], inside: tuple[float, float]) -> str | None:
    """Why an event is none, if it is none. inside: when the part begins and ends that is in the sound."""
    begin, end = given
    if not mark.label:
        return "an event without a label"
    if not (abs(begin) < float("inf") and abs(end) < float("inf")):  # also of what is no number at all
        return "an event whose begin or end is no number"
    if end <= begin:
        return "an event of no length"
    return "an event outside its sound" if inside[1] <= inside[0] else None


def _number(text: str) -> float:
    """Seconds as they are written; NaN where that is no number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _seconds(path: Path) -> float:
    """How long a sound lasts. It is remembered until its file changes."""
    if not path.is_file():
        raise UnreadableError(f"{path} is not there, and it should be a sound", "a sound that is not there", str(path))
    state = path.stat()
    return _seconds_of(str(path), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1 << 16)
def _seconds_of(path: str, size: int, changed: int) -> float:
    return recording_of(path).seconds


def _columns(path: Path) -> list[str] | None:
    """The titles of the columns; None where one of them is missing."""
    titles = {each.strip().lower(): each for each in source.titles(path)}
    found = [next((titles[each] for each in names if each in titles), None) for names in TITLES]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _sounds(folder: Path) -> list[Path]:
    """The sounds in a folder, without hidden ones."""
    return [each for each in sorted(folder.iterdir()) if each.suffix.lower() in ENDINGS and each.name[0] != "."]


def _has_labels(sound: Path) -> bool:
    return sound.with_suffix(LABELS).is_file()


def _marks(path: Path) -> Iterator[Mark]:
    """The lines of a file of Audacity's labels; some languages write a comma in a number."""
    for number, line in enumerate(source.lines(path), 1) if path.stat().st_size else ():
        if line.strip() and not line.startswith(PITCH):
            begin, end, label, *_ = [*map(str.strip, line.split("\t")), "", "", ""]
            yield Mark(label, begin.replace(",", "."), end.replace(",", "."), f"{path.name}, line {number}")


def _is_event(mark: Mark) -> bool:
    """Whether a line has a begin and an end: other files of text have none."""
    return _number(mark.begin) <= _number(mark.end)
