"""A table of boxes: .csv or .tsv with a header, and a row for each box of a picture.

Its columns are known by their names: the file of the picture, the label, and xmin ymin xmax ymax, or x y width height
(the left upper corner and the size), in pixels. A row without a label and without corners is a picture without boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from saccade.data import source
from saccade.data.boxes import Annotated, Box, asked, inner
from saccade.data.boxes import digest as boxes_digest
from saccade.error import SaccadeError
from saccade.field.field import Kind

FILE = ("file", "filename", "file_name", "image", "image_path", "picture", "path")
LABEL = ("label", "class", "class_name", "category", "name")
ENDS = (
    ("xmin", "x_min", "x1", "left"),
    ("ymin", "y_min", "y1", "top"),
    ("xmax", "x_max", "x2", "right"),
    ("ymax", "y_max", "y2", "bottom"),
)
SIZED = (("x",), ("y",), ("width", "w"), ("height", "h"))
HEADER = "file,label,xmin,ymin,xmax,ymax"
USUAL = 2  # columns of a table that has one row for each picture


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Tables whose headers have all that is needed; where boxes are asked for, any of more than two columns."""
    if not paths or not all(path.is_file() and source.is_table(path) for path in paths):
        return False
    if asked(kinds):
        return all(len(next(iter(source.first_rows(path, 1)), [])) > USUAL for path in paths)
    return all(_columns(path, ENDS) is not None for path in paths)


def annotated(path: Path) -> Iterator[Annotated]:
    """Every picture of a table with its boxes, in the order of first appearance."""
    sized = _columns(path, ENDS) is None
    columns = _columns(path, SIZED if sized else ENDS)
    if columns is None:
        there = ", ".join(source.titles(path))
        raise SaccadeError(f"{path}: a table of boxes has a first line such as {HEADER}; here it is {there:.80}")
    found: dict[str, list[Box]] = {}
    for number, row in source.cells(path, columns):
        if row:
            name, label, *corners = row
            boxes = found.setdefault(name.strip(), [])
            if label.strip() or any(map(str.strip, corners)):
                boxes.append(Box(label, _corners(corners, sized), f"{path.name}, line {number}"))
    for name, boxes in found.items():
        yield Annotated(inner(path.parent, name, str(path)), boxes)


def digest(path: str | Path) -> str:
    """The hash of the table and of the pictures that it names."""
    path = Path(path)
    return boxes_digest(path.parent, [path, *(each.picture for each in annotated(path))])


def _columns(path: Path, corners: Sequence[Sequence[str]]) -> list[str] | None:
    """The titles of the file, the label and the corners; None where one of them is missing."""
    titles = {each.strip().lower(): each for each in source.titles(path)}
    found = [next((titles[each] for each in names if each in titles), None) for names in (FILE, LABEL, *corners)]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _corners(cells: Sequence[str], sized: bool) -> tuple[float, float, float, float]:
    try:
        left, top, right, bottom = map(float, cells)
    except ValueError:
        left = top = right = bottom = float("nan")
    return (left, top, left + right, top + bottom) if sized else (left, top, right, bottom)
