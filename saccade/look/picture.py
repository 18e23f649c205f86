"""A map as a file: drawn as SVG, PNG or HTML, row after row as GIF, or its numbers as CSV or NPZ."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from saccade import disk
from saccade.error import SaccadeError, nearest
from saccade.look.chart import SIDE, heat
from saccade.look.drawing import Drawing, to_gif
from saccade.look.excerpt import Excerpt
from saccade.look.looked import Looked
from saccade.look.map import Map
from saccade.look.page import document
from saccade.look.renderer import animated, rendered

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute a cell that begins with one of these


def draw(map: Map, kind: str, *, colours: str | None = None, side: int = SIDE, scale: float = 2.0) -> bytes:
    """The file of a map: kind is svg, png, html, csv or npz.

    colours: sequential or diverging; by default what the values ask for. side: units of the cells' longer side.
    scale: pixels of a PNG for each unit.
    """
    if not isinstance(side, int) or side < 1:
        raise SaccadeError(f"side is a whole number above 0; got {side!r}")
    if _check_kind(kind) in NUMBERS:
        return NUMBERS[kind](map)
    return filed(heat(map, colours=colours, side=side), kind, scale)


def picture(look: Looked, excerpt: Excerpt, kind: str) -> bytes:
    """The file of a map of a look, drawn as its units ask for; numbers come in full, unless a size is given."""
    if kind in MOVING:
        return to_gif(animated(look, excerpt))
    if _check_kind(kind) in NUMBERS:
        return NUMBERS[kind](excerpt.map(look))
    return filed(rendered(look, excerpt, kind), kind)


def filed(drawing: Drawing, kind: str, scale: float = 2.0) -> bytes:
    """The file of a drawing: svg, png or html."""
    if kind == "png":
        return drawing.to_png(scale)
    if kind == "svg":
        return drawing.to_svg().encode()
    return document(drawing.title or "attention", drawing.to_svg(ink="currentColor", paper=None)).encode()


def save(path: str | Path, map: Map, **options: object) -> Path:
    """Writes the file of a map whole or not at all; its ending tells the kind. options: those of `draw`."""
    target = file_for(path, KINDS)
    disk.write(target, draw(map, target.suffix[1:].lower(), **options))  # type: ignore[arg-type]
    return target


def file_for(path: str | Path, kinds: Iterable[str]) -> Path:
    """The path of a file to write, once its ending is one of `kinds` and its folder is there."""
    target = Path(path)
    kind = target.suffix[1:].lower()
    if kind not in kinds:
        raise SaccadeError(
            f"the ending of {str(path)!r} is no kind of file that is written here; {nearest(kind, kinds)}"
        )
    if not target.parent.is_dir():
        raise SaccadeError(f"{target.parent} is no folder: make it first, or write elsewhere")
    if target.is_dir():
        raise SaccadeError(f"{target} is a folder: name a file")
    return target


def to_csv(map: Map) -> bytes:
    """A line of the columns' names, then a line for each row: its name and the shortest texts of its numbers."""
    text = io.StringIO(newline="")
    lines = csv.writer(text)
    lines.writerow(["", *_without_formulas(map.columns)])
    for name, values in zip(_without_formulas(map.rows), map.values.float().numpy(), strict=True):
        lines.writerow([name, *(str(each) for each in values)])
    return text.getvalue().encode(errors="backslashreplace")


def to_npz(map: Map) -> bytes:
    """Arrays `values`, `rows`, `columns`, `row_places`, `column_places` and `title`, without pickle."""
    made = io.BytesIO()
    np.savez_compressed(
        made,
        values=map.values.float().numpy(),
        rows=_array(map.rows),
        columns=_array(map.columns),
        row_places=np.array(map.row_places, np.int64),
        column_places=np.array(map.column_places, np.int64),
        title=_array([map.title])[0],
    )
    return made.getvalue()


def _check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise SaccadeError(f"there is no picture of kind {kind!r}; {nearest(kind, KINDS)}")
    return kind


def _array(names: list[str]) -> np.ndarray:
    """Names as an array of texts, which cannot end in the character 0: there it becomes its picture."""
    return np.array([name[:-1] + "\u2400" if name.endswith("\0") else name for name in names], dtype=np.str_)


def _without_formulas(names: Iterable[str]) -> list[str]:
    return ["'" + name if name.startswith(FORMULA) else name for name in names]


NUMBERS: dict[str, Callable[[Map], bytes]] = {"csv": to_csv, "npz": to_npz}
KINDS = ("svg", "png", "html", *NUMBERS)  # files of a map
MOVING = ("gif",)  # files of a look beside those, which show one row after another
