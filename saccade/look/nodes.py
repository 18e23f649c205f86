"""Maps over what lies at places: the nodes of a graph, with its edges, points, and agents with their tracks.

A dot grows and takes colour with the weight it was looked at with. Of all rows together each half of a line tells how
much the node at its end looked at the other one; of one row, lines go from who looks (ringed) to what was looked at. Of
a large graph a single row is drawn with the nodes around it alone, laid out anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

import numpy as np
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.layout import layout
from saccade.field.unit import Side
from saccade.look.chart import MARGIN, SMALL, TITLE, TITLED, filled
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.label import shorten, visible, width_of
from saccade.look.looked import Layered, Looked
from saccade.look.map import Map
from saccade.look.overlay import views_of
from saccade.look.part import Dot, Lettering, Line, Part, frame
from saccade.look.thumb import SIDE as THUMB
from saccade.look.thumb import SmallMatrix, Thumb
from saccade.look.ways import ways_of

LARGE, SIDE = 380.0, 128.0  # units of a side of a large and of a small picture
GAP, FOOT = 10.0, 20.0  # between pictures, and below one for its name
WIDEST = 620.0  # units that a sheet becomes wider for what is told below, at most
ACROSS, MOST = 6, 12  # small pictures side by side, and in all
NAMED, APART = 40, 12  # nodes that have their names beside them, at most, and points, which lie anyhow
CROWD = 150  # nodes from which on a row is drawn with those around it alone
AROUND = 45  # of them, at most
ROOM = 400  # nodes of a small picture in the atlas, at most
WEIGHT, LEAST = (
    "#d55e00",
    0.04,
)  # the colour of weights (Okabe and Ito 2008), and the share of the largest that is drawn
FAINT = 0.16  # the strength of edges
INSET = 0.075  # of a side, around the outermost dots

Place = tuple[float, float]  # across and down


def nodes(look: Looked, excerpt: Excerpt, kind: str) -> Drawing:
    """All rows together or the one that is asked for, large, and some rows small."""
    layer = excerpt.layer_of(look)
    if layer is None:
        raise SaccadeError("this map has no sides that could be drawn")  # `rendered` asks before it chooses a renderer
    map = filled(replace(excerpt, size=None).map(look))
    return _NodeSheet(map, look.sides[layer.rows], look.sides[layer.columns]).drawn()


class _NodeSheet:
    """A map whose columns lie at places."""

    def __init__(self, map: Map, rows: Side, columns: Side) -> None:
        self.map, self.rows, self.same = map, rows, rows is columns
        self.scatter = Scatter(columns, map.column_places)

    def drawn(self) -> Drawing:
        """The sheet with everything on it."""
        small = [] if len(self.map.rows) == 1 else self._telling()
        across = min(len(small), ACROSS)
        titled = min(width_of(self.map.title, TITLE, bold=True), TITLED)
        told = min(width_of(self._told(), SMALL), WIDEST)
        width = max(LARGE, across * (SIDE + GAP) - GAP, titled, told) + 2 * MARGIN
        sheet = Drawing(width, MARGIN + TITLE + GAP, self.map.title)
        title = shorten(visible(self.map.title), width - 2 * MARGIN, TITLE, bold=True)
        sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        sheet.add(*self._large(MARGIN, sheet.height, width - 2 * MARGIN))
        sheet.height += LARGE + FOOT + GAP
        for begin in range(0, len(small), ACROSS):
            for place, row in enumerate(small[begin : begin + ACROSS]):
                sheet.add(*self._row(MARGIN + place * (SIDE + GAP), sheet.height, row))
            sheet.height += SIDE + FOOT
        sheet.height += MARGIN - (0 if small else GAP)
        return sheet

    def _large(self, x: float, y: float, room: float) -> Iterator[Part]:
        """The one row or, without one, all together; with what is to be seen below, in so much room."""
        if len(self.map.rows) == 1:
            whole, weights, looker = self._seen(0)
            yield from whole.looked(x, y, LARGE, weights, looker)
        else:
            yield from self.scatter.together(x, y, LARGE, self.map, self.same)
        yield _name(x, y, LARGE, self._told(), room)

    def _told(self) -> str:
        """What the large picture shows."""
        most = f"(most {float(self.map.values.max()):.2g})"
        if len(self.map.rows) == 1:
            whole = self._seen(0)[0]
            few = "" if whole is self.scatter else f", among the {len(whole.kept)} of {len(self.map.columns)} around it"
            return f"what {visible(self.map.rows[0])} looked at {most}{few}"
        half = "; half a line: how much its end looked at the other" if self.same and self.scatter.lined else ""
        return f"what all looked at {most}{half}"

    def _row(self, x: float, y: float, row: int) -> Iterator[Part]:
        whole, weights, looker = self._seen(row)
        yield from whole.looked(x, y, SIDE, weights, looker)
        yield _name(x, y, SIDE, self.map.rows[row], SIDE)

    def _seen(self, row: int) -> tuple[Scatter, Tensor, int | None]:
        """What lies around a row, with its weights, and the number of who looks, where that lies here."""
        weights = self.map.values[row]
        if not self.same or self.map.row_places[row] not in self.map.column_places:
            return self.scatter, weights, None
        looker = self.map.column_places.index(self.map.row_places[row])
        whole = self.scatter.around(looker, weights)
        return whole, weights[whole.kept], whole.kept.index(looker)

    def _telling(self) -> list[int]:
        """The rows that have a small picture: those without a place, nodes with many edges, or some points."""
        places = [self.rows.tokens[place].place for place in self.map.row_places]
        beside = [row for row, place in enumerate(places) if place is None]
        if beside:
            return beside[:MOST]
        if len(places) <= MOST:
            return [*range(len(places))]
        if not (self.same and self.scatter.edges):
            return [len(places) * n // MOST for n in range(MOST)]
        degrees = self.scatter.degrees
        number = {place: column for column, place in enumerate(self.map.column_places)}
        known = [row for row, place in enumerate(self.map.row_places) if place in number]
        return sorted(sorted(known, key=lambda row: -degrees[number[self.map.row_places[row]]])[:MOST])


class Scatter:
    """Some units of a side at their places. kept: their numbers among the columns of a map."""

    def __init__(self, side: Side, column_places: Sequence[int]) -> None:
        self.names = [side.tokens[place].text for place in column_places]
        self.kept = [*range(len(column_places))]
        placed = [side.tokens[place].place for place in column_places]
        self.placed = [each is not None for each in placed]
        self.places = np.array([_middle(each) for each in placed]).reshape(-1, 2)
        number = {place: column for column, place in enumerate(column_places)}
        self.ways = ways_of(side)
        known = side.shown.get("edges", ())
        self.edges = [(number[a], number[b]) for a, b in known if a in number and b in number and a != b]

    @property
    def lined(self) -> bool:
        """Whether looks are drawn as lines, and not by the dots alone."""
        return bool(self.edges or self.ways)

    @cached_property
    def degrees(self) -> list[int]:
        """How many edges each has."""
        found = [0] * len(self.names)
        for pair in self.edges:
            for each in pair:
                found[each] += 1
        return found

    def around(self, looker: int, weights: Tensor) -> Scatter:
        """The units around one that looks, where there are too many for a picture: those it looked at most, its
        neighbours and theirs, laid out anew; a cloud of points stays whole.
        """
        if len(self.names) <= CROWD or not self.edges:
            return self
        beside: dict[int, set[int]] = {}
        for a, b in self.edges:
            beside.setdefault(a, set()).add(b)
            beside.setdefault(b, set()).add(a)
        most = weights.abs().topk(min(AROUND // 2, len(weights)))
        looked = [
            n
            for n, w in zip(most.indices.tolist(), most.values.tolist(), strict=True)
            if w > LEAST * float(most.values[0])
        ]
        kept = dict.fromkeys([looker, *looked])
        for near in (sorted(beside.get(looker, ())), *(sorted(beside.get(each, ())) for each in looked)):
            kept |= dict.fromkeys(near)
        chosen = sorted([*kept][:AROUND])
        made = object.__new__(Scatter)
        number = {each: n for n, each in enumerate(chosen)}
        made.ways = self.ways
        made.kept, made.names, made.placed = chosen, [self.names[each] for each in chosen], [True] * len(chosen)
        made.edges = [(number[a], number[b]) for a, b in self.edges if a in number and b in number]
        made.places = layout(len(chosen), np.array(made.edges, np.int64).reshape(-1, 2))
        return made

    def together(self, x: float, y: float, side: float, map: Map, same: bool) -> Iterator[Part]:
        """All rows: dots by the mean weight they got, half lines by how much their ends looked."""
        yield from frame(x, y, side, side, 0.12)
        yield from self._edges(x, y, side)
        values, top = map.values, max(float(map.values.abs().max()), 1e-12)
        number = {place: row for row, place in enumerate(map.row_places)} if same else {}
        for a, b in self._linked():
            for looker, other in ((a, b), (b, a)):
                row = number.get(map.column_places[looker])
                share = 0.0 if row is None else float(values[row, other].abs()) / top
                here, there = self._at(x, y, side, looker), self._at(x, y, side, other)
                middle = (here[0] + there[0]) / 2, (here[1] + there[1]) / 2
                yield from _weighted(here, middle, share, self.radius(side))
        mean = values.mean(0)
        yield from self._dots(x, y, side, mean / max(float(mean.abs().max()), 1e-12), mean, None)

    def _linked(self) -> list[tuple[int, int]]:
        """Between which a look is drawn as a line: along edges, and among all agents of a scene."""
        return [*combinations(range(len(self.names)), 2)] if self.ways else self.edges

    def looked(self, x: float, y: float, side: float, weights: Tensor, looker: int | None) -> Iterator[Part]:
        """One row: lines from who looks, where it lies here, and dots by weight."""
        yield from frame(x, y, side, side, 0.12)
        yield from self._edges(x, y, side)
        shares = weights / max(float(weights.abs().max()), 1e-12)
        if looker is not None:
            here = self._at(x, y, side, looker)
            lines = range(len(self.names)) if self.lined else ()
            for other in lines:
                if other != looker and self.placed[other]:
                    yield from _weighted(
                        here, self._at(x, y, side, other), float(shares[other].abs()), self.radius(side)
                    )
        yield from self._dots(x, y, side, shares, weights, looker)

    def _edges(self, x: float, y: float, side: float) -> Iterator[Part]:
        for way in self.ways:
            yield from way.drawn(lambda place: _spot(x, y, side, place), side / LARGE)
        for a, b in self.edges:
            yield Line(*self._at(x, y, side, a), *self._at(x, y, side, b), _thin(side), FAINT)

    def _dots(
        self, x: float, y: float, side: float, shares: Tensor, weights: Tensor, looker: int | None
    ) -> Iterator[Part]:
        """The faint ones first, so that what was looked at lies above, and who looks above all."""
        radius = self.radius(side)
        order = shares.abs().argsort().tolist()
        for n in [*(each for each in order if each != looker), *([] if looker is None else [looker])]:
            if not self.placed[n]:
                continue
            at, share = self._at(x, y, side, n), float(shares[n].abs())
            note = f"{visible(self.names[n])}: {float(weights[n]):.3g}"
            if n == looker:
                yield Dot(*at, radius * 1.75, None, 1.0, note)
                yield Dot(*at, radius * 1.45, "#ffffff", 1.0, note)
            if n != looker:
                yield Dot(*at, radius * (0.6 + 0.6 * share**0.5), "#ffffff", 1.0, note)
            if share > LEAST:
                yield Dot(*at, radius * (0.6 + 0.6 * share**0.5), WEIGHT, 0.15 + 0.85 * share, note)
            else:
                yield Dot(*at, radius * 0.6, "#ffffff" if n == looker else None, 0.35, note)
        if len(self.names) <= (NAMED if self.lined else APART) and side == LARGE:
            for n in range(len(self.names)):
                yield from self._lettered(x, y, side, n, n == looker) if self.placed[n] else ()

    def _lettered(self, x: float, y: float, side: float, n: int, bold: bool) -> Iterator[Part]:
        """The name of a unit, in the middle of the widest gap between its edges; without any, above it."""
        across, down = self._at(x, y, side, n)
        near = np.array([self.places[b if a == n else a] for a, b in self.edges if n in (a, b)]).reshape(-1, 2)
        angles = np.sort(np.arctan2(*(near - self.places[n]).T[::-1])) if len(near) else np.array([np.pi / 2])
        gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
        angle = float(angles[gaps.argmax()] + gaps.max() / 2)
        away = self.radius(side) * 1.75 + SMALL * 0.7
        left, top = across + away * np.cos(angle), down + away * np.sin(angle)
        yield Lettering(float(left), float(top), visible(self.names[n]), SMALL, "middle", bold=bold)

    def radius(self, side: float) -> float:
        """Of a dot that got the largest weight, about."""
        return side * min(0.022, max(0.006, 0.14 / max(len(self.names), 1) ** 0.5))

    def _at(self, x: float, y: float, side: float, n: int) -> Place:
        left, top = self.places[n]
        return _spot(x, y, side, (float(left), float(top)))


def small(look: Looked, layer: Layered) -> Thumb:
    """How the heads of a layer are drawn small: of more nodes than a small picture has room for, as matrices."""
    kind = SmallScatter if len(look.sides[layer.columns]) <= ROOM else SmallMatrix
    return kind(look, layer)


class SmallScatter:
    """A head over the nodes: what all of its rows looked at."""

    cells: int | None = None  # every node at its place

    def __init__(self, look: Looked, layer: Layered) -> None:
        self.rows, self.columns = look.sides[layer.rows], look.sides[layer.columns]

    def size(self, map: Map) -> tuple[float, float]:
        """A square."""
        return THUMB, THUMB

    def drawn(self, map: Map, x: float, y: float) -> Iterator[Part]:
        """The nodes and lines by weight; nothing but a frame where all is hidden."""
        if not map.values.numel():
            yield from frame(x, y, THUMB, THUMB, 0.25)
            return
        scatter, same = Scatter(self.columns, map.column_places), self.rows is self.columns
        first = views_of(map, self.rows)[0]
        if same and all(scatter.placed):
            yield from scatter.together(x, y, THUMB, map, same)
        else:
            yield from scatter.looked(x, y, THUMB, first.weights, None)


def _weighted(here: Place, there: Place, share: float, radius: float) -> Iterator[Part]:
    if share > LEAST:
        yield Line(*here, *there, radius * (0.12 + 0.6 * share), 0.15 + 0.85 * share, WEIGHT)


def _middle(place: Sequence[float] | None) -> Place:
    """The place of a unit, or the middle of its box: left, top, width and height."""
    if place is None:
        return 0.0, 0.0
    wide, high = place[2:] if len(place) == 4 else (0.0, 0.0)
    return place[0] + wide / 2, place[1] + high / 2


def _spot(x: float, y: float, side: float, place: Place) -> Place:
    """Where a place, as shares of the square, is drawn."""
    room = 1 - 2 * INSET
    return x + side * (INSET + room * place[0]), y + side * (INSET + room * place[1])


def _thin(side: float) -> float:
    return 0.6 if side < LARGE else 1.0


def _name(x: float, y: float, side: float, name: str, room: float) -> Lettering:
    return Lettering(x, y + side + FOOT / 2, shorten(visible(name), room, SMALL), SMALL)
