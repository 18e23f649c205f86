"""A map as a heat map: cells between names, with a title and the colours' scale. Large ones are thinned, not cut."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.error import SaccadeError
from saccade.look import colour
from saccade.look.axis import GAP, columns_of, rows_of
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, visible, width_of
from saccade.look.map import Map, step_of
from saccade.look.part import Image, Label, Line, frame

SIDE = 600  # units of the cells' longer side, and the most cells of a side
LARGEST, SHORTEST = 30, 240  # units of a cell, and of a side where cells need not be small
NOTED = 2500  # cells that tell their numbers when one stops over them
TITLE, SMALL = 14.0, 11.0  # of letters
MARGIN, NARROWEST = 14.0, 220.0
TITLED = 460.0  # units that a small chart becomes wider for its title, at most
BAR, TALLEST = 12.0, 160.0  # the width of the colours' scale, and its height at most


def heat(map: Map, *, colours: str | None = None, side: int = SIDE, title: str | None = None) -> Drawing:
    """The heat map. colours: "sequential" from 0 on, "diverging" around 0; by default what the values ask for."""
    return _Chart(filled(map), colours, side, map.title if title is None else title).drawn()


def filled(map: Map) -> Map:
    """The map, if there is anything in it to draw."""
    if map.values.numel():
        return map
    R, C = map.values.shape
    raise SaccadeError(f"a map of {R} rows and {C} columns has nothing to draw: hide less, or choose more of it")


def tinted(values: Tensor, colours: str | None = None) -> tuple[Tensor, float, str]:
    """The colours (R,C,3) of values, the largest value of their scale, and its name."""
    known = values[values.isfinite()]
    signed = bool((known < 0).any())
    name = ("diverging" if signed else "sequential") if colours is None else colours
    colour.scale_of(name)  # refuses a name that is none
    top = float(known.abs().max()) if known.numel() else 0.0
    top = top if top > 0 else 1.0
    return (colour.diverging if name == "diverging" else colour.sequential)(values / top), top, name


def smaller(map: Map, size: int) -> Map:
    """The map with at most `size` cells a side; a cell is the value furthest from 0 of all it covers."""
    tall, wide = (step_of(count, size) for count in map.values.shape)
    if tall == wide == 1:
        return map
    found = map.values[None, None].float()
    high, low = (sign * F.max_pool2d(sign * found, (tall, wide), ceil_mode=True)[0, 0] for sign in (1, -1))
    values = torch.where(high >= -low, high, low)
    rows, columns = slice(None, None, tall), slice(None, None, wide)
    names = map.rows[rows], map.columns[columns], map.row_places[rows], map.column_places[columns]
    return Map(values, *names, map.title)


class _Chart:
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
        beside = max(2 * GAP + BAR + 8 + width_of(_number(-self.top), SMALL), self.columns.past(self.width))
        titled = min(MARGIN + width_of(self.title, TITLE, bold=True), TITLED)
        width = max(self.x + self.width + beside, NARROWEST, titled) + MARGIN
        sheet = Drawing(width, self.y + max(self.height, self.tall + SMALL) + MARGIN, self.title)
        if self.title:
            title = shorten(self.title, width - 2 * MARGIN, TITLE, bold=True)
            sheet.add(Label(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        note = self._note if self.map.values.numel() <= NOTED else None
        sheet.add(Image(self.x, self.y, self.width, self.height, self.colours, note))
        sheet.add(*frame(self.x, self.y, self.width, self.height))
        sheet.add(*self.rows.beside(self.x, self.y), *self.columns.above(self.x, self.y))
        self._add_scale(sheet)
        return sheet

    @property
    def tall(self) -> float:
        """The height of the colours' scale."""
        return max(60.0, min(self.height, TALLEST))

    def _note(self, row: int, column: int) -> str:
        names = visible(self.map.rows[row]), visible(self.map.columns[column])
        return f"{names[0]} \u2192 {names[1]}: {float(self.map.values[row, column]):.4g}"

    def _add_scale(self, sheet: Drawing) -> None:
        """The colours with their numbers, the largest above."""
        x = self.x + self.width + 2 * GAP
        sheet.add(Image(x, self.y, BAR, self.tall, colour.scale_of(self.scale).flip(0)[::2].unsqueeze(1)))
        sheet.add(*frame(x, self.y, BAR, self.tall))
        numbers = (self.top, 0.0, -self.top) if self.scale == "diverging" else (self.top, self.top / 2, 0.0)
        for share, value in zip((0.0, 0.5, 1.0), numbers, strict=True):
            y = self.y + share * self.tall
            sheet.add(Line(x + BAR, y, x + BAR + 3, y, 1.0, 0.6), Label(x + BAR + 6, y, _number(value), SMALL))


def cell_of(R: int, C: int, side: int) -> tuple[float, float]:
    """The width and height of a cell: square where that shows something, whole pixels where there is room."""
    square = min(LARGEST, side / R, side / C)
    sides = (max(square, min(LARGEST, SHORTEST / count)) for count in (C, R))
    wide, high = (float(int(each)) if each >= 1 else each for each in sides)
    return wide, high


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e5 else f"{value:.1e}"
