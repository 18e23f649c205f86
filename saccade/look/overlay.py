"""`Overlay`: a picture with weights laid over its parts; and a head as a small one, for the atlas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.field.picture import PICTURE, pixels_of
from saccade.field.unit import Side
from saccade.look import colour
from saccade.look.cuts import Borders
from saccade.look.looked import Layered, Looked
from saccade.look.map import Map
from saccade.look.part import Cells, Part, Rectangle, frame
from saccade.look.thumb import SIDE

VEIL = 0.65  # the share of a weight's colour; the rest is the picture's own light
FINEST = 4  # pixels of a patch's side, at least


class ViewOf(NamedTuple):
    """What one row looked at, or all of them in the mean: who looked, in words, and the weights (C,)."""

    name: str
    weights: Tensor


def views_of(map: Map, rows: Side) -> list[ViewOf]:
    """What to show of a map at once, the most telling first: the only row's view, or that of the first row without a
    place among others that have one (a class token), and the mean of all.
    """
    if len(map.rows) == 1:
        return [ViewOf(map.rows[0], map.values[0])]
    every = ViewOf("all", map.values.mean(0))
    placed = [rows.tokens[place].place is not None for place in map.row_places]
    if all(placed) or not any(placed):
        return [every]
    first = placed.index(False)
    return [ViewOf(map.rows[first], map.values[first]), every]


class Overlay:
    """The picture of a side; borders: of the windows that are drawn over it."""

    def __init__(self, side: Side, borders: Borders | None = None) -> None:
        self.pixels, self.borders = _pixels(side), borders
        height, width = self.pixels.shape[:2]
        self.shape = width / max(width, height), height / max(width, height)  # of the longer side
        self._owner = _owners(side, height, width)

    def size(self, longer: float) -> tuple[float, float]:
        """Width and height where the longer of the two is this long."""
        return self.shape[0] * longer, self.shape[1] * longer

    def tinted(self, weights: Tensor, columns: Sequence[int]) -> Tensor:
        """The picture's light in the colours of weights (C,), each over the part of its column; the largest of those
        that have a place has the last colour.
        """
        given = torch.zeros(int(self._owner.max()) + 2)
        for weight, column in zip(weights.tolist(), columns, strict=True):
            if column < len(given) - 1:
                given[column] = weight
        shade = given[self._owner]  # the last of them, -1, is nobody's
        light = self.pixels.float().mean(2, keepdim=True)
        tinted = colour.sequential(shade / max(float(shade.abs().max()), 1e-12)).float()
        return (VEIL * tinted + (1 - VEIL) * light).round().byte()

    def drawn(self, x: float, y: float, longer: float, pixels: Tensor, strength: float = 0.35) -> Iterator[Part]:
        """Pixels of this picture at a place, with a frame and the borders of windows."""
        wide, high = self.size(longer)
        yield Cells(x, y, wide, high, pixels)
        if self.borders is not None:
            for row in self.borders.rows:
                yield from _seam(x, y + row * high, wide, 0.0)
            for left in self.borders.columns:
                yield from _seam(x + left * wide, y, 0.0, high)
        yield from frame(x, y, wide, high, strength)

    def framed(self, x: float, y: float, longer: float, place: Sequence[float]) -> Iterator[Part]:
        """A frame around one part of the picture: left, top, width and height as its shares."""
        wide, high = self.size(longer)
        left, top, width, height = x + place[0] * wide, y + place[1] * high, place[2] * wide, place[3] * high
        for below in (0.0, height):
            yield from _seam(left, top + below, width, 0.0)
        for beside in (0.0, width):
            yield from _seam(left + beside, top, 0.0, height)


class SmallOverlay:
    """A head over the picture: what its class token looked at or, without one, all of its rows."""

    cells: int | None = None  # every patch at its place

    def __init__(self, look: Looked, layer: Layered) -> None:
        self.rows = look.sides[layer.rows]
        self.overlay = Overlay(look.sides[layer.columns], layer.borders)

    def size(self, map: Map) -> tuple[float, float]:
        """In the proportions of the picture."""
        return self.overlay.size(SIDE)

    def drawn(self, map: Map, x: float, y: float) -> Iterator[Part]:
        """The picture in the colours of the weights; nothing but a frame where all is hidden."""
        if not map.values.numel():
            yield from frame(x, y, *self.size(map), 0.25)
            return
        weights = views_of(map, self.rows)[0].weights
        yield from self.overlay.drawn(x, y, SIDE, self.overlay.tinted(weights, map.column_places), 0.25)


def _seam(x: float, y: float, width: float, height: float) -> Iterator[Part]:
    """A thin line across (width) or down (height), dark on a light ground, to be seen on any picture in any theme."""
    for thick, tone, strength in ((2.0, "#ffffff", 0.55), (0.8, "#000000", 1.0)):
        yield Rectangle(x - thick / 2, y - thick / 2, width + thick, height + thick, tone, strength)


def _pixels(side: Side) -> Tensor:
    """The picture of a side, (H,W,3), fine enough that the edges of its patches lie between pixels."""
    pixels = torch.from_numpy(pixels_of(PICTURE.received(side.shown["picture"]))).permute(1, 2, 0)
    rows, columns = side.shown.get("grid", (1, 1))  # points lie on no grid
    tall, wide = (
        max(1, -(-FINEST * count // size)) for count, size in zip((rows, columns), pixels.shape, strict=False)
    )
    return pixels.repeat_interleave(tall, 0).repeat_interleave(wide, 1)


def _owners(side: Side, H: int, W: int) -> Tensor:
    """The number of the unit that each pixel belongs to, (H,W); -1 where there is none."""
    owner = torch.full((H, W), -1)
    for number, unit in enumerate(side.tokens):
        if unit.place is not None:
            left, top, width, height = unit.place
            across = slice(round(left * W), round((left + width) * W))
            owner[round(top * H) : round((top + height) * H), across] = number
    return owner
