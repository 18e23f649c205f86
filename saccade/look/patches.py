"""Maps over a picture: which parts of it were looked at, laid over the picture itself.

Of words that look at a picture, a small picture a word, in their order (Xu et al. 2015); of patches that look at each
other, a small picture for some of them, laid out as they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.picture import pixels_of, received
from saccade.field.unit import Side
from saccade.look import colour
from saccade.look.atlas import Looked
from saccade.look.chart import MARGIN, SMALL, TITLE, TITLED, filled
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.label import shorten, visible, width_of
from saccade.look.map import Map
from saccade.look.part import Cells, Lettering, Part, frame

LARGE, SIDE = 200.0, 76.0  # units of a large and of a small picture's longer side
GAP, FOOT = 8.0, 18.0  # between pictures, and below one for its name
ACROSS = 8  # small pictures side by side
MOST = 64  # small pictures of words
VEIL = 0.65  # the share of the colour that tells a weight; the rest is the picture's own light
FINEST = 4  # pixels of a patch's side, at least


def patches(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """The picture, what all of it that looked looked at, and small pictures of those who did."""
    sides = excerpt.sides(look)
    if sides is None:
        raise SaccadeError("this map has no sides that could be drawn")  # `rendered` asks before
    rows, columns = sides
    return _Sheet(filled(replace(excerpt, size=None).map(look)), rows, columns).drawn()  # every patch at its place


class _Sheet:
    """A map with a picture on the side that is looked at."""

    def __init__(self, map: Map, rows: Side, columns: Side) -> None:
        self.map, self.rows, self.columns = map, rows, columns
        self.pixels = _pixels(columns)
        height, width = self.pixels.shape[:2]
        self.shape = width / max(width, height), height / max(width, height)  # of the longer side

    def drawn(self) -> Drawing:
        """The sheet with everything on it."""
        chosen, across = self._chosen()
        large, small = self._size(LARGE), self._size(SIDE)
        titled = min(width_of(self.map.title, TITLE, bold=True), TITLED)
        width = max(2 * large[0] + GAP, across * (small[0] + GAP) - GAP, titled) + 2 * MARGIN
        sheet = Drawing(width, MARGIN + TITLE + GAP, self.map.title)
        title = shorten(visible(self.map.title), width - 2 * MARGIN, TITLE, bold=True)
        sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        sheet.add(*self._named(MARGIN, sheet.height, LARGE, "what was read", self.pixels))
        everything = self._veiled(self.map.values.mean(0))
        sheet.add(*self._named(MARGIN + large[0] + GAP, sheet.height, LARGE, "what all looked at", everything))
        sheet.height += large[1] + FOOT + GAP
        for number, row in enumerate(chosen):
            line, place = divmod(number, across)
            x, y = MARGIN + place * (small[0] + GAP), sheet.height + line * (small[1] + FOOT)
            sheet.add(*self._named(x, y, SIDE, self.map.rows[row], self._veiled(self.map.values[row])))
            sheet.add(*self._marked(x, y, row))
        sheet.height += -(-len(chosen) // across) * (small[1] + FOOT) + MARGIN
        return sheet

    def _chosen(self) -> tuple[list[int], int]:
        """The rows that have a small picture, and how many stand side by side: of words the first, of patches as many
        as the sheet has room for, evenly spread, in lines as they lie.
        """
        places = [self.rows.tokens[place].place for place in self.map.row_places]
        if any(place is None for place in places):
            return list(range(min(len(places), MOST))), min(ACROSS, len(places))
        tops, lefts = (_spread({place[axis] for place in places if place is not None}) for axis in (1, 0))
        inside = [n for n, place in enumerate(places) if place is not None and place[1] in tops and place[0] in lefts]
        return inside, len(lefts)

    def _veiled(self, weights: Tensor) -> Tensor:
        """The picture's light in the colours of weights (C,), each over its own part; the largest has the last one."""
        light = self.pixels.float().mean(2, keepdim=True)
        H, W, _ = self.pixels.shape
        shade = torch.zeros(H, W)
        for weight, place in zip(weights, self.map.column_places, strict=True):
            box = self.columns.tokens[place].place
            if box is not None:
                shade[_box(box, H, W)] = weight
        tinted = colour.sequential(shade / max(float(weights.abs().max()), 1e-12)).float()
        return (VEIL * tinted + (1 - VEIL) * light).round().byte()

    def _named(self, x: float, y: float, side: float, name: str, pixels: Tensor) -> Iterator[Part]:
        wide, high = self._size(side)
        yield Cells(x, y, wide, high, pixels)
        yield from frame(x, y, wide, high)
        yield Lettering(x, y + high + FOOT / 2, shorten(visible(name), wide, SMALL), SMALL)

    def _marked(self, x: float, y: float, row: int) -> Iterator[Part]:
        """A frame around the part that looks, where it lies on the picture."""
        place = self.rows.tokens[self.map.row_places[row]].place
        if place is not None and self.rows.kind == self.columns.kind:
            wide, high = self._size(SIDE)
            left, top, width, height = place
            yield from frame(x + left * wide, y + top * high, width * wide, height * high, 1.0)

    def _size(self, side: float) -> tuple[float, float]:
        return self.shape[0] * side, self.shape[1] * side


def _pixels(side: Side) -> Tensor:
    """The picture of a side, (H,W,3), fine enough that the edges of its patches lie between pixels."""
    pixels = torch.from_numpy(pixels_of(received(side.shown["picture"]))).permute(1, 2, 0)
    rows, columns = side.shown["grid"]
    tall, wide = (
        max(1, -(-FINEST * count // size)) for count, size in zip((rows, columns), pixels.shape, strict=False)
    )
    return pixels.repeat_interleave(tall, 0).repeat_interleave(wide, 1)


def _box(place: Sequence[float], H: int, W: int) -> tuple[slice, slice]:
    """The pixels of a part that is told in shares of the picture."""
    left, top, width, height = place
    return slice(round(top * H), round((top + height) * H)), slice(round(left * W), round((left + width) * W))


def _spread(values: set[float]) -> set[float]:
    """At most `ACROSS` of these, evenly spread."""
    ranked = sorted(values)
    step = -(-len(ranked) // ACROSS)
    return set(ranked[step // 2 :: step])
