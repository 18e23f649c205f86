"""A line chart: numbers over names, a line for each series, told apart by marks and dashes, with its name at its end.

It reads the same without colours, as when printed in grey. The marks' colours are those of Okabe and Ito (2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice, pairwise
from typing import NamedTuple

from saccade.error import SaccadeError
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, visible, width_of
from saccade.look.part import Lettering, Line, Rectangle, frame

WIDTH, HEIGHT = 460.0, 260.0  # of the inside
MARGIN, GAP = 14.0, 8.0
TITLE, SIZE = 14.0, 12.0  # of letters
ROOM = 180.0  # for a name; longer ones are cut
MARK = 8.0  # the side of a mark
SAMPLE = 34.0  # units of a line beside its name
TICKS = 6  # numbers beside the lines, at most
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES: tuple[tuple[float, ...], ...] = ((), (7.0, 4.0), (2.0, 3.0), (9.0, 3.0, 2.0, 3.0), (14.0, 5.0))

Point = tuple[float, float]


class Style(NamedTuple):
    """How a series differs from the others: lengths of dashes and gaps in turn, and the colour of its marks."""

    dash: tuple[float, ...]
    colour: str


def lines(
    series: Mapping[str, Sequence[float | None]], names: Sequence[str], *, title: str = "", powers: bool = False
) -> Drawing:
    """Each series has a number for each name; where it is None or no number, its line has a gap.

    powers: a logarithmic scale, on which numbers from 0 down are gaps.
    """
    for name, values in series.items():
        if len(values) != len(names):
            raise SaccadeError(f"the series {name!r} has {len(values)} numbers for {len(names)} names: give one each")
    if powers:
        series = {name: [_power(value) for value in values] for name, values in series.items()}
    if not any(_is_number(value) for values in series.values() for value in values):
        raise SaccadeError("there is no number to draw a line through")
    return _LineChart(series, list(names), visible(title) if title else "", powers).drawn()


def ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Round numbers (steps of 1, 2 or 5) from at most `low` to at least `high`, about `most` of them."""
    span = high - low or abs(high) or 1.0
    power = 10 ** math.floor(math.log10(span / most))
    step = next(each * power for each in (1, 2, 5, 10, 20) if span / (each * power) <= most - 1)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _tens(low: float, high: float) -> list[float]:
    """The whole powers of ten around numbers that are logarithms."""
    first = math.floor(low + 1e-9)
    return [float(each) for each in range(first, max(math.ceil(high - 1e-9), first + 1) + 1)]


class _LineChart:
    """Finds the places of everything: numbers to the left, names below, the names of the lines to the right."""

    def __init__(
        self, series: Mapping[str, Sequence[float | None]], names: list[str], title: str, powers: bool
    ) -> None:
        self.series, self.names, self.title = series, names, title
        known = [value for values in series.values() for value in values if value is not None and _is_number(value)]
        self.ticks = _tens(min(known), max(known)) if powers else ticks(min(known), max(known))
        step = self.ticks[1] - self.ticks[0]
        self.numbers = [f"{10**each:g}" if powers else _tick_label(each, step) for each in self.ticks]
        self.x = MARGIN + max(width_of(each, SIZE) for each in self.numbers) + GAP
        self.y = MARGIN + (TITLE + 12 if title else SIZE / 2)

    def drawn(self) -> Drawing:
        """The sheet with everything on it."""
        ends = [shorten(visible(name), ROOM, SIZE) for name in self.series]
        right = self.x + WIDTH + 2 * GAP + SAMPLE + max(width_of(each, SIZE) for each in ends) + MARGIN
        sheet = Drawing(right, self.y + HEIGHT + GAP + SIZE + MARGIN, self.title)
        if self.title:
            title = shorten(self.title, sheet.width - 2 * MARGIN, TITLE, bold=True)
            sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        self._add_axes(sheet)
        styles = [Style(*each) for each in islice(zip(cycle(DASHES), cycle(COLOURS), strict=False), len(ends))]
        for values, style in zip(self.series.values(), styles, strict=True):
            self._add_line(sheet, values, style)
        self._add_marks(sheet, styles)
        self._add_ends(sheet, ends, styles)
        return sheet

    def _add_axes(self, sheet: Drawing) -> None:
        for value, number in zip(self.ticks, self.numbers, strict=True):
            y = self._height(value)
            sheet.add(Line(self.x, y, self.x + WIDTH, y, 1.0, 0.12), Lettering(self.x - GAP, y, number, SIZE, "end"))
        room, y = WIDTH / len(self.names) - 4, self.y + HEIGHT + GAP + SIZE / 2
        for place, name in enumerate(self.names):
            sheet.add(Lettering(self._place(place), y, shorten(visible(name), room, SIZE), SIZE, "middle"))
        sheet.add(*frame(self.x, self.y, WIDTH, HEIGHT))

    def _add_line(self, sheet: Drawing, values: Sequence[float | None], style: Style) -> None:
        points = [self._point(number, value) for number, value in enumerate(values)]
        for begin, end in pairwise(points):
            if begin is not None and end is not None:
                sheet.add(*dashed(begin, end, style.dash))

    def _add_marks(self, sheet: Drawing, styles: Sequence[Style]) -> None:
        """Over all lines; where numbers agree, side by side, so that each is seen."""
        for number in range(len(self.names)):
            taken: list[float] = []
            for values, style in zip(self.series.values(), styles, strict=True):
                point = self._point(number, values[number])
                if point is not None:
                    beside = sum(abs(point[1] - y) < MARK / 2 for y in taken)
                    sheet.add(_mark(point[0] + beside * MARK, point[1], style))
                    taken.append(point[1])

    def _add_ends(self, sheet: Drawing, ends: Sequence[str], styles: Sequence[Style]) -> None:
        """The names beside the last numbers of their lines, moved apart where they would touch."""
        last = [
            next((value for value in reversed(values) if _is_number(value)), None) for values in self.series.values()
        ]
        wanted = [self.y + HEIGHT if value is None else self._height(value) for value in last]
        x = self.x + WIDTH + GAP
        for y, name, style in zip(apart(wanted, SIZE + 4, self.y, self.y + HEIGHT), ends, styles, strict=True):
            sheet.add(*dashed((x, y), (x + SAMPLE, y), style.dash), _mark(x + SAMPLE / 2, y, style))
            sheet.add(Lettering(x + SAMPLE + GAP, y, name, SIZE))

    def _point(self, number: int, value: float | None) -> Point | None:
        return (self._place(number), self._height(value)) if value is not None and _is_number(value) else None

    def _place(self, number: int) -> float:
        return self.x + (number + 0.5) * WIDTH / len(self.names)

    def _height(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return self.y + HEIGHT * (high - value) / (high - low)


def dashed(begin: Point, end: Point, dash: Sequence[float]) -> Iterator[Line]:
    """A line from point to point, in dashes of these lengths with gaps of those, in turn."""
    length = math.dist(begin, end)
    place, drawn = 0.0, True
    for step in cycle(dash or (length or 1.0,)):
        if place >= length:
            return
        stop = min(place + step, length)
        if drawn or not dash:
            yield Line(*_between(begin, end, place / length), *_between(begin, end, stop / length), 1.8, 0.75)
        place, drawn = stop, not drawn


def apart(wanted: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones, in the same order, `least` from each other, and from low to high if they fit."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    places, floor = [0.0] * len(wanted), low
    for number in order:
        places[number] = max(wanted[number], floor)
        floor = places[number] + least
    ceiling = max(high, low + least * (len(wanted) - 1))
    for number in reversed(order):
        places[number] = min(places[number], ceiling)
        ceiling = places[number] - least
    return places


def _between(begin: Point, end: Point, share: float) -> Point:
    return begin[0] + share * (end[0] - begin[0]), begin[1] + share * (end[1] - begin[1])


def _mark(x: float, y: float, style: Style) -> Rectangle:
    return Rectangle(x - MARK / 2, y - MARK / 2, MARK, MARK, style.colour)


def _power(value: float | None) -> float | None:
    """The logarithm to the base of ten; None where there is none."""
    return math.log10(value) if value is not None and _is_number(value) and value > 0 else None


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _tick_label(value: float, step: float) -> str:
    """As many digits after the point as the step between numbers needs."""
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.3g}"
