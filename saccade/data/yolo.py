"""Boxes as YOLO's tools have them: a text file in `labels` for each picture in `images`, with a line for each box.

A line is `class x y width height`: the number of the class from 0, and the box's centre and size as shares of the
picture. The names of the classes stand in `data.yaml` (`names`), or in `classes.txt`, one a line. Splits are folders
inside both (`images/train`, `labels/train`), or around both (`train/images`, `train/labels`). A picture without a text
file has no boxes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from saccade.data import source
from saccade.data.boxes import Annotated, Box, LeaveOut, pictures, split_of, splits_in
from saccade.data.boxes import digest as boxes_digest
from saccade.error import SaccadeError
from saccade.field.field import Kind

IMAGES, LABELS = "images", "labels"
NAMES = ("data.yaml", "data.yml", "classes.txt", "labels/classes.txt")  # where classes are named: the first there is
WRITTEN = "names: [cat, dog]"


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Folders with `images` and `labels`, or with folders of splits that have both."""
    return bool(paths) and all(path.is_dir() and bool(_places(path)) for path in paths)


def splits(folder: Path) -> tuple[str, ...]:
    """The splits that a folder has of its own."""
    return splits_in(split for split, _, _ in _places(folder))


def annotated(folder: Path, split: str | None, leave_out: LeaveOut) -> Iterator[Annotated]:
    """Every picture of a split, or of all, with its boxes."""
    names = classes(folder)
    for name, images, labels in _places(folder):
        for picture in pictures(images) if split in (None, name) else ():
            marks = (labels / picture.relative_to(images)).with_suffix(".txt")
            boxes = list(_boxes(marks, folder, names, leave_out)) if marks.is_file() else []
            yield Annotated(picture, boxes, shares=True)


def classes(folder: Path) -> dict[int, str]:
    """The names of the classes by their numbers."""
    path = next((folder / each for each in NAMES if (folder / each).is_file()), None)
    if path is None:
        raise SaccadeError(f"{folder} has no data.yaml with {WRITTEN!r}, and no classes.txt with a name a line")
    lines = list(source.lines(path))
    if path.suffix == ".txt":
        return {number: line.strip() for number, line in enumerate(lines) if line.strip()}
    found = _names(lines)
    if not found:
        raise SaccadeError(f"{path} names no classes: it should say {WRITTEN!r}, or have a line '  0: cat' for each")
    return found


def digest(path: str | Path) -> str:
    """The hash of all that is read in a folder."""
    folder = Path(path)
    marks = [each for _, _, labels in _places(folder) for each in sorted(labels.rglob("*.txt"))]
    return boxes_digest(
        folder, [*pictures(folder), *marks, *(folder / each for each in NAMES if (folder / each).is_file())]
    )


def _places(folder: Path) -> list[tuple[str | None, Path, Path]]:
    """Folders of pictures and of labels, each pair with its split, where it has one."""
    if (folder / IMAGES).is_dir() and (folder / LABELS).is_dir():
        inside = [each for each in sorted((folder / IMAGES).iterdir()) if each.is_dir() and split_of(each.name)]
        return [(split_of(each.name), each, folder / LABELS / each.name) for each in inside] or [
            (None, folder / IMAGES, folder / LABELS)
        ]
    around = [each for each in sorted(folder.iterdir()) if each.is_dir() and split_of(each.name)]
    pairs = [(split_of(each.name), each / IMAGES, each / LABELS) for each in around]
    return [each for each in pairs if each[1].is_dir() and each[2].is_dir()]


def _boxes(path: Path, folder: Path, names: Mapping[int, str], leave_out: LeaveOut) -> Iterator[Box]:
    """The boxes in a text file, which may be empty."""
    if not path.stat().st_size:
        return
    for number, line in enumerate(source.lines(path), 1):
        place = f"{path.relative_to(folder)}, line {number}"
        cells = line.split()
        if len(cells) != 5:
            if cells:
                leave_out("a line that is no box", place, f"{place}: a box is 5 numbers, and here are {len(cells)}")
            continue
        yield Box(_class(cells[0], names, place), _corners(cells[1:]), place)


def _class(cell: str, names: Mapping[int, str], place: str) -> str:
    if not cell.isdecimal() or int(cell) not in names:
        raise SaccadeError(f"{place}: there is no class {cell!r:.40}; the classes are numbered from 0 to {max(names)}")
    return names[int(cell)]


def _corners(cells: Sequence[str]) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a centre and a size."""
    try:
        x, y, width, height = map(float, cells)
    except ValueError:
        x = y = width = height = float("nan")
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _names(lines: Sequence[str]) -> dict[int, str]:
    """The value of `names` in YAML: a list, or names by number, in brackets or on lines of their own."""
    begin = next((number for number, line in enumerate(lines) if re.match(r"names\s*:", line)), None)
    if begin is None:
        return {}
    rest = (re.sub(r"(^|\s)#.*", "", line).rstrip() for line in lines[begin:])
    first, *more = rest
    block: list[str] = []
    for line in filter(None, more):
        if not line.startswith((" ", "\t", "-")) and not line.startswith(("]", "}")):
            break
        block.append(line.strip())
    head = first.partition(":")[2].strip()
    if head:
        return _in_brackets(" ".join([head, *block]))
    entries = [each.removeprefix("- ").strip() if each.startswith("- ") else each for each in block]
    return _numbered(entries)


def _in_brackets(text: str) -> dict[int, str]:
    """The entries of [a, b] or of {0: a, 1: b}."""
    inside = re.fullmatch(r"[\[{](.*)[\]}]", text.strip())
    if inside is None:
        return {}
    return _numbered([each[0].strip() for each in re.finditer(r"(?:'[^']*'|\"[^\"]*\"|[^,'\"])+", inside[1])])


def _numbered(entries: Sequence[str]) -> dict[int, str]:
    """Names by number: of entries `0: cat` the number that they say, else their place."""
    found = {}
    for place, entry in enumerate(each for each in entries if each):
        said = re.fullmatch(r"(\d+)\s*:\s*(.+)", entry)
        number, name = (int(said[1]), said[2]) if said else (place, entry)
        found[number] = _unquoted(name)
    return found


def _unquoted(name: str) -> str:
    """A name without the quotes around it."""
    if len(name) > 1 and name[0] == name[-1] and name[0] in "'\"":
        try:
            return str(ast.literal_eval(name))
        except (ValueError, SyntaxError):
            return name[1:-1]
    return name
