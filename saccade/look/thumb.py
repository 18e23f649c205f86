"""A head as a small map: rows, columns and the weights between them, in the room that the atlas gives it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from saccade.look.chart import tinted
from saccade.look.looked import Layered, Looked
from saccade.look.map import Map
from saccade.look.part import Cells, Part, frame

SIDE = 84  # units of a small map's longer side
THINNEST = 0.15  # of it, at least


class Thumb(Protocol):
    """How the heads of one layer are drawn small."""

    cells: int | None  # the most of a side of its maps

    def size(self, map: Map) -> tuple[float, float]:
        """Width and height."""

    def drawn(self, map: Map, x: float, y: float) -> Iterator[Part]:
        """What is drawn of a map."""


class SmallMatrix:
    """Every row and every column, in the proportions of the map."""

    cells: int | None = SIDE

    def __init__(self, look: Looked, layer: Layered) -> None:
        pass

    def size(self, map: Map) -> tuple[float, float]:
        """As large as its place lets it be."""
        R, C = (max(each, 1) for each in map.values.shape)
        return SIDE * min(1.0, max(C / R, THINNEST)), SIDE * min(1.0, max(R / C, THINNEST))

    def drawn(self, map: Map, x: float, y: float) -> Iterator[Part]:
        """The cells and a frame around them."""
        wide, high = self.size(map)
        if map.values.numel():
            yield Cells(x, y, wide, high, tinted(map.values)[0])
        yield from frame(x, y, wide, high, 0.25)
