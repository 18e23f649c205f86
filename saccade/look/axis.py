"""`Axis`: the names along one side of a chart: how large, how many of them, and turned which way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from saccade.look.label import shorten, stride_of, visible, width_of
from saccade.look.part import Lettering

SIZE, LEAST = 12.0, 9.0  # of letters, and of those of crowded names
ROOM = 150.0  # for a name; longer ones are cut
GAP = 6.0
FLAT, SLANTED, UPWARD = 0.0, -45.0, -90.0
SLANT = 0.7072  # of 45 degrees
MOSTLY = 0.75  # of the names fit into their columns: letters, with a longer name here and there


class Axis(NamedTuple):
    """Names with their places along the side. Those that are not wider than `flat` lie flat, the others are turned."""

    names: list[tuple[float, str]]
    turn: float
    size: float
    flat: float = math.inf

    @property
    def room(self) -> float:
        """How long the longest name is."""
        return max(width_of(name, self.size) for _, name in self.names)

    @property
    def height(self) -> float:
        """How high the names of columns are, as they are turned."""
        turned = {FLAT: self.size, SLANTED: SLANT * (self.room + self.size), UPWARD: self.room}
        return self._raised + turned[self.turn] if self.room > self.flat else self.size

    @property
    def _raised(self) -> float:
        """How far turned names are lifted above the chart, so that they do not cross flat names beside them."""
        flat = any(width_of(name, self.size) <= self.flat for _, name in self.names)
        return self.size + 2 if 0 < self.flat < math.inf and flat else 0.0

    def past(self, width: float) -> float:
        """How far slanted names reach past the end of a side of this width."""
        if self.turn != SLANTED:
            return 0.0
        ends = (place + SLANT * (width_of(name, self.size) + self.size) for place, name in self.names)
        return max(0.0, max(ends) - width)

    def beside(self, x: float, y: float) -> list[Lettering]:
        """The names of rows, ending before the chart whose corner is at (x, y)."""
        return [Lettering(x - GAP, y + place, name, self.size, "end") for place, name in self.names]

    def above(self, x: float, y: float) -> list[Lettering]:
        """The names of columns, above the chart whose corner is at (x, y)."""
        return [self._above(x + place, y - GAP, name) for place, name in self.names]

    def _above(self, x: float, y: float, name: str) -> Lettering:
        if width_of(name, self.size) <= self.flat:
            return Lettering(x, y - self.size / 2, name, self.size, "middle")
        nudge = 3.0 if self.turn == SLANTED else 0.0  # the corner of a slanted name stands over the middle
        return Lettering(x + nudge, y - self._raised, name, self.size, "start", self.turn)


def rows_of(names: Sequence[str], cell: float) -> Axis:
    """The names of rows of a height; where they would touch, smaller, then only some of them."""
    size = _letter_size(cell)
    return _axis(names, cell, size + 1, FLAT, size)


def columns_of(names: Sequence[str], cell: float) -> Axis:
    """The names of columns of a width: flat where most fit side by side, slanted where there is some room, else up."""
    if all(name.isdecimal() for name in names):  # numbers may be left out: it is clear what stands between
        return _axis(names, cell, max(width_of(name, SIZE) for name in names) + 8, FLAT, SIZE)
    size = _letter_size(cell)
    fitting = sum(width_of(_shortened(name, size), size) < cell for name in names)
    slanted = stride_of(len(names), cell, size + 1) * cell >= 1.4 * (size + 1)
    flat = cell if fitting >= MOSTLY * len(names) else 0.0
    return _axis(names, cell, size + 1, SLANTED if slanted else UPWARD, size)._replace(flat=flat)


def _axis(names: Sequence[str], cell: float, least: float, turn: float, size: float) -> Axis:
    stride = stride_of(len(names), cell, least)
    return Axis([((n + 0.5) * cell, _shortened(names[n], size)) for n in range(0, len(names), stride)], turn, size)


def _shortened(name: str, size: float) -> str:
    return shorten(visible(name), ROOM, size)


def _letter_size(cell: float) -> float:
    """Of letters that stand a cell apart, if they can."""
    return min(SIZE, cell - 1) if cell >= LEAST + 1 else SIZE
