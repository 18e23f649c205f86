"""Maps over a picture: which parts of it were looked at, laid over the picture itself.

For words that look at a picture, there is a small picture for each word, in their order (`walk`); for patches that look
at each other, a small picture for some of them, laid out as they lie, below those of a class token and other vectors
that have no place. One row alone is drawn large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.unit import Side
from saccade.look.chart import MARGIN, SMALL, TITLE, TITLED, filled
from saccade.look.cuts import Borders
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.label import shorten, visible, width_of
from saccade.look.looked import Looked
from saccade.look.map import Map
from saccade.look.overlay import Overlay, ViewOf, views_of
from saccade.look.part import Lettering, Part
from saccade.look.walk import Place, strip, walk, written

LARGE, SIDE = 200.0, 76.0  # units of a large and of a small picture's longer side
GAP, FOOT = 8.0, 18.0  # between pictures, and below one for its name
ACROSS = 8  # small pictures side by side
MOST = 64  # small pictures of what has no place
READ = ("words", "queries")  # the kinds of the sides whose units are read one after another


def patches(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """The picture, the views that tell most laid over it, and a small picture for each of some rows."""
    layer = excerpt.layer_of(look)
    if layer is None:
        raise SaccadeError("this map has no sides that could be drawn")  # `rendered` asks before it chooses a renderer
    if look.sides[layer.rows].kind in READ and excerpt.row is None:
        map = written(look, excerpt)
        return strip(map, Overlay(look.sides[layer.columns]), places_of(map, look.sides[layer.rows]))
    map = filled(replace(excerpt, size=None).map(look))  # every patch at its place
    borders = layer.borders if layer.name == (excerpt.layer or look.usual) else None
    return _Sheet(map, look.sides[layer.rows], look.sides[layer.columns], borders).drawn()


def walked(look: Looked, excerpt: Excerpt) -> list[Drawing]:
    """The same picture again and again, with what each word looked at, one after another."""
    layer = excerpt.layer_of(look)
    if layer is None or look.sides[layer.rows].kind not in READ:
        raise SaccadeError(
            "a walk goes over a picture word by word, and in this map no words look at one: write .png, .svg or .html"
        )
    return walk(written(look, excerpt), Overlay(look.sides[layer.columns]))


def places_of(map: Map, rows: Side) -> list[Place | None]:
    """Where each row of a map found something, as shares of the picture; words find nothing anywhere."""
    if all(each.place is None for each in rows.tokens):
        return [None] * len(map.rows)
    return [rows.tokens[each].place for each in map.row_places]


class _Sheet:
    """A map with a picture on the side that is looked at."""

    def __init__(self, map: Map, rows: Side, columns: Side, borders: Borders | None) -> None:
        self.map, self.rows, self.columns = map, rows, columns
        self.picture = Overlay(columns, borders)

    def drawn(self) -> Drawing:
        """The sheet with everything on it."""
        views, lines = views_of(self.map, self.rows), self._lines()
        large, small = self.picture.size(LARGE), self.picture.size(SIDE)
        across = max((len(line) for line in lines), default=0)
        titled = min(width_of(self.map.title, TITLE, bold=True), TITLED)
        room = (1 + len(views)) * (large[0] + GAP), across * (small[0] + GAP)
        width = max(max(room) - GAP, titled) + 2 * MARGIN
        sheet = Drawing(width, MARGIN + TITLE + GAP, self.map.title)
        title = shorten(visible(self.map.title), width - 2 * MARGIN, TITLE, bold=True)
        sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        sheet.add(*self._named(MARGIN, sheet.height, LARGE, "what was read", self.picture.pixels))
        for number, view in enumerate(views, 1):
            sheet.add(*self._view(MARGIN + number * (large[0] + GAP), sheet.height, view))
        sheet.height += large[1] + FOOT + GAP
        for line in lines:
            for place, row in enumerate(line):
                sheet.add(*self._row(MARGIN + place * (small[0] + GAP), sheet.height, row))
            sheet.height += small[1] + FOOT
        sheet.height += MARGIN - (0 if lines else GAP)
        return sheet

    def _lines(self) -> list[list[int]]:
        """The rows that have a small picture, line by line: the first words, or what has no place and as many patches
        as the sheet has room for, evenly spread, as they lie. A row alone has its large picture.
        """
        if len(self.map.rows) == 1:
            return []
        places = {row: self.rows.tokens[place].place for row, place in enumerate(self.map.row_places)}
        placed = {row: place for row, place in places.items() if place is not None}
        beside = [row for row in places if row not in placed][:MOST]
        tops, lefts = (_evenly_spread({place[axis] for place in placed.values()}) for axis in (1, 0))
        inside = [row for row, place in placed.items() if place[1] in tops and place[0] in lefts]
        return [*_cut(beside, ACROSS), *_cut(inside, max(len(lefts), 1))]

    def _view(self, x: float, y: float, view: ViewOf) -> Iterator[Part]:
        """A large picture of what was looked at; its name says how much of it has a place there."""
        placed = [self.columns.tokens[place].place is not None for place in self.map.column_places]
        total = float(view.weights.abs().sum())
        here = sum(abs(weight) for weight, on in zip(view.weights.tolist(), placed, strict=True) if on)
        share = f" ({here / total:.0%} here)" if not all(placed) and total > 0 else ""
        tinted = self.picture.tinted(view.weights, self.map.column_places)
        yield from self._named(x, y, LARGE, f"what {view.name} looked at{share}", tinted)
        if len(self.map.rows) == 1:
            yield from self._frame_of_looker(x, y, LARGE, 0)

    def _row(self, x: float, y: float, row: int) -> Iterator[Part]:
        tinted = self.picture.tinted(self.map.values[row], self.map.column_places)
        yield from self._named(x, y, SIDE, self.map.rows[row], tinted)
        yield from self._frame_of_looker(x, y, SIDE, row)

    def _named(self, x: float, y: float, side: float, name: str, pixels: Tensor) -> Iterator[Part]:
        wide, high = self.picture.size(side)
        yield from self.picture.drawn(x, y, side, pixels)
        yield Lettering(x, y + high + FOOT / 2, shorten(visible(name), wide, SMALL), SMALL)

    def _frame_of_looker(self, x: float, y: float, side: float, row: int) -> Iterator[Part]:
        """A frame around the part that looks, where it lies on the picture."""
        place = self.rows.tokens[self.map.row_places[row]].place
        if place is not None and self.rows.kind == self.columns.kind:
            yield from self.picture.framed(x, y, side, place)


def _cut(rows: list[int], across: int) -> list[list[int]]:
    """Lines of at most so many."""
    return [rows[begin : begin + across] for begin in range(0, len(rows), across)]


def _evenly_spread(values: set[float]) -> set[float]:
    """At most `ACROSS` of these, evenly spread."""
    ranked = sorted(values)
    step = max(1, -(-len(ranked) // ACROSS))
    return set(ranked[step // 2 :: step])
