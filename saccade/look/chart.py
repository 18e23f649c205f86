"""A map as a heat map: cells between names, with a title and the colours' scale. Large ones are thinned, not cut."""

from __future__ import annotations

import math

from torch import Tensor

from saccade.error import SaccadeError
from saccade.look import colour
from saccade.look.axis import GAP, columns_of, rows_of
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, visible, width_of
from saccade.look.map import Map, furthest, step_of
from saccade.look.part import Cells, Lettering, Line, frame

SIDE = 600  # units of the cells' longer side, and the most cells of a side
LARGEST, SHORTEST = 30, 240  # units of a cell, and of a side where cells need not be small
NOTED = 2500  # cells of a chart, at most, that show their numbers under the pointer
TITLE, SMALL = 14.0, 11.0  # of letters
MARGIN, NARROWEST = 14.0, 220.0
TITLED = 460.0  # units that a small chart becomes wider for its title, at most
BAR, TALLEST = 12.0, 160.0  # the width of the colours' scale, and its height at most


def heat(map: Map, *, colours: str | None = None, side: int = SIDE, title: str | None = None) -> Drawing:
    """The heat map. colours: "sequential" from 0 on, "diverging" around 0; by default what the values ask for."""
    return _HeatMap(filled(map), colours, side, map.title if title is None else title).drawn()


def filled(map: Map) -> Map:
    """The map; refuses one without cells."""
    if map.values.numel():
        return map
    R, C = map.values.shape
    raise SaccadeError(f"a map of {R} rows and {C} columns has nothing to draw: hide less, or choose more of it")


def tinted(values: Tensor, colours: str | None = None) -> tuple[Tensor, float, str]:
    """The colours (R,C,3) of values, the largest value of their scale, and its name. Larger values have its colour."""
    if colours is None:
        signed = bool((values[values.isfinite()] < 0).any())
        colours = "diverging" if signed else "sequential"
    colour.scale_of(colours)  # refuses an unknown name
    paint = colour.diverging if colours == "diverging" else colour.sequential
    top = _top(values)
    return paint(values / top), top, colours


def _top(values: Tensor) -> float:
    """The value that takes the last colour. Rows that see half as many columns as the widest, or fewer, do not count:
    under a causal mask the first row gives all its weight to one column, and the other rows would be dark beside it.
    """
    known = values.abs().where(values.isfinite(), 0.0)
    seen = (known > 0).sum(-1)
    counted = known[2 * seen > seen.max()]
    return float(counted.max()) if counted.numel() else 1.0


def smaller(map: Map, size: int) -> Map:
    """The map with at most `size` cells a side; a cell is the value furthest from 0 of all it covers."""
    tall, wide = (step_of(count, size) for count in map.values.shape)
    if tall == wide == 1:
        return map
    rows, columns = slice(None, None, tall), slice(None, None, wide)
    names = map.rows[rows], map.columns[columns], map.row_places[rows], map.column_places[columns]
    return Map(furthest(map.values.float(), tall, wide), *names, map.title)


class _HeatMap:
    """The places of everything, found from the inside out: cells, names, scale, title."""

    def __init__(self, map: Map, colours: str | None, side: int, title: str) -> None:
        self.map, self.title = smaller(map, side), visible(title)
        self.colours, self.top, self.scale = tinted(self.map.values, colours)
        R, C = self.map.values.shape
        self.wide, self.high = cell_of(R, C, side)
        self.width, self.height = C * self.wide, R * self.high
        self.rows, self.columns = rows_of(self.map.rows, self.high), columns_of(self.map.columns, self.wide)
        self.x = MARGIN + self.rows.room + GAP
        self.y = MARGIN + (TITLE + 12 if self.title else 0) + self.columns.height + GAP

    def drawn(self) -> Drawing:
        """The sheet with everything on it."""
        longest = max(width_of(each, SMALL) for each in self.marks)
        beside = max(2 * GAP + BAR + 8 + longest, self.columns.past(self.width))
        titled = min(MARGIN + width_of(self.title, TITLE, bold=True), TITLED)
        width = max(self.x + self.width + beside, NARROWEST, titled) + MARGIN
        height = self.y + max(self.height, self.tall + SMALL) + MARGIN
        sheet = Drawing(math.ceil(width), math.ceil(height), self.title)
        if self.title:
            title = shorten(self.title, width - 2 * MARGIN, TITLE, bold=True)
            sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        note = self._note if self.map.values.numel() <= NOTED else None
        sheet.add(Cells(self.x, self.y, self.width, self.height, self.colours, note))
        sheet.add(*frame(self.x, self.y, self.width, self.height))
        sheet.add(*self.rows.beside(self.x, self.y), *self.columns.above(self.x, self.y))
        self._add_scale(sheet)
        return sheet

    @property
    def tall(self) -> float:
        """The height of the colours' scale."""
        return max(60.0, min(self.height, TALLEST))

    @property
    def marks(self) -> tuple[str, str, str]:
        """The numbers beside the colours, from above: the largest, the middle and the least."""
        values, top = self.map.values, self.top
        above = f"\u2265 {_number(top)}" if bool((values > top).any()) else _number(top)
        if self.scale != "diverging":
            return above, _number(top / 2), _number(0.0)
        below = f"\u2264 {_number(-top)}" if bool((values < -top).any()) else _number(-top)
        return above, _number(0.0), below

    def _note(self, row: int, column: int) -> str:
        names = visible(self.map.rows[row]), visible(self.map.columns[column])
        return f"{names[0]} \u2192 {names[1]}: {float(self.map.values[row, column]):.4g}"

    def _add_scale(self, sheet: Drawing) -> None:
        """The colours with their numbers, the largest above."""
        x = self.x + self.width + 2 * GAP
        sheet.add(Cells(x, self.y, BAR, self.tall, colour.scale_of(self.scale).flip(0)[::2].unsqueeze(1)))
        sheet.add(*frame(x, self.y, BAR, self.tall))
        for share, mark in zip((0.0, 0.5, 1.0), self.marks, strict=True):
            y = self.y + share * self.tall
            sheet.add(Line(x + BAR, y, x + BAR + 3, y, 1.0, 0.6), Lettering(x + BAR + 6, y, mark, SMALL))


def cell_of(R: int, C: int, side: int) -> tuple[float, float]:
    """The width and height of a cell: square where that shows something; more cells never make a smaller picture."""
    square = min(LARGEST, side / R, side / C)
    wide, high = (max(square, min(LARGEST, SHORTEST / count)) for count in (C, R))
    return wide, high


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e5 else f"{value:.1e}"
