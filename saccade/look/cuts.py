"""How a picture is cut where a layer looks: into the patches of its own grid, and into windows that see themselves.

A layer whose grid is not the field's (a class token in front, patches that were merged) has a side of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from saccade.attend.mask import Mask
from saccade.attend.sparse import windows
from saccade.error import SaccadeError
from saccade.field.unit import NOWHERE, Cell, Side, Unit


class Borders(NamedTuple):
    """Where windows meet, as shares of the picture: downwards (rows) and from left to right (columns)."""

    rows: list[float]
    columns: list[float]


def borders_of(mask: Mask | None) -> Borders | None:
    """The borders of the windows that a mask cuts a picture into; None where it cuts none."""
    found = [each for each in (() if mask is None else mask.terms()) if isinstance(each, windows)]
    if not found:
        return None
    cut = found[0]
    down, across = (range(cut.shift or cut.size, length, cut.size) for length in (cut.height, cut.width))
    return Borders([row / cut.height for row in down], [column / cut.width for column in across])


class Cuts:
    """The sides of a look by name, with one for each way in which a layer cuts the picture.

    sides: those of the fields; extras: the names of vectors that the model puts in front. The first way to cut a
    picture takes the name of its side, which no layer reads otherwise; the others are called by their grid.
    """

    def __init__(self, sides: Mapping[str, Side], extras: Sequence[str] = ()) -> None:
        self.sides, self.extras = dict(sides), extras
        self._whole = dict(sides)
        self._found: dict[str, dict[tuple[Cell, ...], str]] = {name: {} for name in sides}

    def name_of(self, name: str, places: Tensor | None, count: int) -> str:
        """The name of the side that `count` vectors of a layer are the units of. name: the side that they come from;
        places: their cells (1 or B,count,2), if the layer keeps them.
        """
        cells = self._whole[name].cells
        if count == 1 != len(self._whole[name]):
            return self._pooled(name)
        if cells is None:
            return name
        if places is None:
            return self._by_count(name, count, cells)
        return self._named(name, tuple((int(row), int(column)) for row, column in places[0].tolist()))

    def _pooled(self, name: str) -> str:
        """A side of one unit, the whole, where a model pools it before anybody looks."""
        whole, name = self._whole[name], f"{name}, pooled"
        one = Unit(0, name, 0, False, None if whole.cells is None else (0.0, 0.0, 1.0, 1.0))
        grid = {} if whole.cells is None else {"grid": [1, 1]}
        self.sides[name] = replace(whole, tokens=[one], words=[name], shown={**whole.shown, **grid})
        return name

    def learned(self, count: int) -> str:
        """The name of a side of so many vectors that a model learned."""
        made = f"{count} learned vector{'' if count == 1 else 's'}"
        units = [Unit(number, f"vector {number + 1}", number, False) for number in range(count)]
        self.sides[made] = Side(units, [each.text for each in units], made)
        return made

    def _by_count(self, name: str, count: int, cells: Sequence[Cell]) -> str:
        """Of vectors that did not keep their cells: the last cut of as many units, or the field's own."""
        same = [each for each in self._found[name].values() if len(self.sides[each]) == count]
        if same:
            return same[-1]
        extra = count - len(cells)
        if extra not in (0, len(self.extras)):
            raise SaccadeError(
                f"a layer looks at {count} vectors, and {name!r} has {len(cells)} parts: nobody says which is which"
            )
        return self._named(name, (*[NOWHERE] * extra, *cells))

    def _named(self, name: str, cells: tuple[Cell, ...]) -> str:
        found, whole = self._found[name], self._whole[name]
        if cells not in found:
            side = whole if list(cells) == whole.cells else whole.on_grid(cells, self.extras)
            found[cells] = self._free_name(side) if found else name
            self.sides[found[cells]] = side
        return found[cells]

    def _free_name(self, side: Side) -> str:
        """patches 4 x 4; of two that are called so, the second has its number behind."""
        rows, columns = side.shown["grid"]
        name = f"{side.kind} {rows} x {columns}"
        return next(each for each in (name, *(f"{name} ({n})" for n in range(2, 99))) if each not in self.sides)
