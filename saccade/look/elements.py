"""Elements over what they are in: boxes on a picture, events over a spectrogram, boxes around points seen from above.

What was found and what was wanted are drawn beside each other or, of a sound, above and below its spectrogram. A label
has the same colour everywhere. Which picture a side becomes, its kind says: to add one, write its function and name it
in STAGES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from saccade.error import SaccadeError
from saccade.field.elements.element import Elements
from saccade.field.unit import Side
from saccade.look.chart import MARGIN, SMALL, TITLE
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, visible, width_of
from saccade.look.lines import COLOURS, ticks
from saccade.look.overlay import Overlay
from saccade.look.part import INK, PAPER, Cells, Dot, Lettering, Line, Part, Rectangle, frame

LARGE = 340.0  # units of the longer side of a picture, and of a square of points
WIDTH, HEIGHT = 620.0, 150.0  # of a spectrogram
GAP, FOOT = 12.0, 18.0  # between pictures, and below one for its name
LANE, BAR = 19.0, 15.0  # heights of a lane of events, and of a bar in it
PAD = 4.0  # units around a lettering
BESIDE = 58.0  # left of a spectrogram, for what its lanes are
THICK, HALO = 2.0, 4.0  # of the line around a box, and of the light around that
FILLED = 0.4  # the strength of a bar
POINT = 1.7  # the radius of a point
TAKEN = 18  # lanes at most


class Panel(NamedTuple):
    """Elements that are drawn together, and what they are called: found, wanted."""

    name: str
    elements: Elements


Paint = Callable[[str], str]  # the colour of a label


def pictured(side: Side, found: Elements | None = None, wanted: Elements | None = None, title: str = "") -> Drawing:
    """What was found and what is wanted, or either, over the example that a side is of."""
    given = [Panel(name, each) for name, each in (("found", found), ("wanted", wanted)) if each is not None]
    if not given:
        raise SaccadeError("there are no elements to draw: give those that were found, or that are wanted")
    if side.kind not in STAGES:
        raise SaccadeError(f"elements lie in pictures, sounds and points with two coordinates; these are {side.kind}")
    return STAGES[side.kind](side, given, painted(given), visible(title) if title else "")


def painted(panels: Sequence[Panel]) -> Paint:
    """A colour for each label, in the order of the alphabet; where there are many, they begin again."""
    labels = sorted({label for each in panels for label in each.elements.labels})
    return {label: COLOURS[number % len(COLOURS)] for number, label in enumerate(labels)}.__getitem__


class Ground(NamedTuple):
    """What boxes are drawn over. size: width and height; drawn: it at a place; boxes: left, top, right and bottom of
    elements as shares of it, (n,4); halo: the light around their lines.
    """

    size: tuple[float, float]
    drawn: Callable[[float, float], Iterator[Part]]
    boxes: Callable[[Elements], np.ndarray]
    halo: float = 0.0


def _on_picture(side: Side, panels: Sequence[Panel], paint: Paint, title: str) -> Drawing:
    overlay = Overlay(side)

    def boxes(given: Elements) -> np.ndarray:
        low, extent = given.frame[:2], given.extent
        return (given.corners - np.tile(low, 2)) / np.tile(extent, 2)

    def drawn(x: float, y: float) -> Iterator[Part]:
        yield from overlay.drawn(x, y, LARGE, overlay.pixels)

    return _beside(Ground(overlay.size(LARGE), drawn, boxes, HALO), panels, paint, title)


def _among_points(side: Side, panels: Sequence[Panel], paint: Paint, title: str) -> Drawing:
    """From above: the first two axes, of which a unit is as long as on the other."""

    def boxes(given: Elements) -> np.ndarray:
        axes = given.axes
        places = given.corners[:, [0, 1, axes, axes + 1]]
        return (places - np.tile(given.frame[:2], 2)) / given.extent.max()

    def drawn(x: float, y: float) -> Iterator[Part]:
        yield from frame(x, y, LARGE, LARGE)
        for each in side.tokens:
            if each.place is not None:
                yield Dot(x + LARGE * each.place[0], y + LARGE * each.place[1], POINT, None, 0.45, visible(each.text))

    return _beside(Ground((LARGE, LARGE), drawn, boxes), panels, paint, title)


def _beside(ground: Ground, panels: Sequence[Panel], paint: Paint, title: str) -> Drawing:
    """The panels side by side, each over the ground."""
    wide, high = ground.size
    sheet, top = _sheet(len(panels) * (wide + GAP) - GAP, title)
    for number, panel in enumerate(panels):
        x = MARGIN + number * (wide + GAP)
        sheet.add(*ground.drawn(x, top), *_boxes(ground, panel, paint, x, top))
        count = len(panel.elements.labels)
        sheet.add(Lettering(x, top + high + FOOT / 2, f"{panel.name}: {count or 'nothing'}", SMALL))
    sheet.height = top + high + FOOT + MARGIN
    return sheet


def _boxes(ground: Ground, panel: Panel, paint: Paint, x: float, y: float) -> Iterator[Part]:
    """Each box, and above all boxes their names."""
    wide, high = ground.size
    places = ground.boxes(panel.elements).clip(0, 1) * np.tile([wide, high], 2) + np.tile([x, y], 2)
    colours = [*map(paint, panel.elements.labels)]
    for place, colour in zip(places.tolist(), colours, strict=True):
        yield from _outline(place, colour, ground.halo)
    for place, name, colour in zip(places.tolist(), names_of(panel.elements), colours, strict=True):
        yield from _tag(place, name, colour, (x, y, x + wide, y + high))


def _outline(place: Sequence[float], colour: str, halo: float) -> Iterator[Part]:
    """The lines around a box, with some light beside them where that makes them seen on any ground."""
    left, top, right, bottom = place
    for thick, tone, strength in ((halo, PAPER, 0.6), (THICK, colour, 1.0)):
        for x1, y1, x2, y2 in (
            (left, top, right, top),
            (left, bottom, right, bottom),
            (left, top, left, bottom),
            (right, top, right, bottom),
        ):
            if thick:
                yield Rectangle(x1 - thick / 2, y1 - thick / 2, x2 - x1 + thick, y2 - y1 + thick, tone, strength)


def _tag(place: Sequence[float], name: str, colour: str, ground: tuple[float, float, float, float]) -> Iterator[Part]:
    """The name of a box above it, or in it where there is no room above; never beyond the ground."""
    left, top, _, _ = place
    high = SMALL + PAD
    name = shorten(name, ground[2] - ground[0] - 2 * PAD, SMALL)
    wide = width_of(name, SMALL) + 2 * PAD
    x = min(max(left, ground[0]), ground[2] - wide)
    y = top - high if top - high >= ground[1] else min(top + THICK / 2, ground[3] - high)
    yield Rectangle(x, y, wide, high, PAPER, 0.85)
    yield Rectangle(x, y, THICK + 1, high, colour)
    yield Lettering(x + PAD + 1, y + high / 2, name, SMALL, colour=INK)


def _over_time(side: Side, panels: Sequence[Panel], paint: Paint, title: str) -> Drawing:
    """The spectrogram with lanes of events above and below, and lines where they begin and end."""
    overlay = Overlay(side)
    sheet, y = _sheet(BESIDE + WIDTH, title)
    x, lanes = MARGIN + BESIDE, [lanes_of(each.elements, WIDTH) for each in panels]
    for number, (panel, rows) in enumerate(zip(panels, lanes, strict=True)):
        if number == len(panels) - 1:
            sheet.add(*_spectrum(overlay, panels, paint, x, y))
            y += HEIGHT + GAP / 2
        sheet.add(*_bars(panel, rows, paint, x, y))
        y += LANE * _height(rows) + GAP / 2
    seconds = float(panels[0].elements.frame[1])
    sheet.add(*_times(seconds, x, y))
    sheet.height = y + FOOT + MARGIN
    return sheet


def _spectrum(overlay: Overlay, panels: Sequence[Panel], paint: Paint, x: float, y: float) -> Iterator[Part]:
    """The spectrogram; of two panels each has its half of the lines."""
    yield from _stretched(overlay, x, y)
    share = HEIGHT / len(panels)
    for number, panel in enumerate(panels):
        for label, place in zip(panel.elements.labels, _shares(panel.elements).tolist(), strict=True):
            for each in place:
                across, top = x + WIDTH * each, y + number * share
                yield Line(across, top, across, top + share, 3.0, 0.5, PAPER)
                yield Line(across, top, across, top + share, 1.5, 1.0, paint(label))


def _stretched(overlay: Overlay, x: float, y: float) -> Iterator[Part]:
    """The spectrogram as wide and as high as all others are."""
    yield Cells(x, y, WIDTH, HEIGHT, overlay.pixels)
    yield from frame(x, y, WIDTH, HEIGHT)


def _bars(panel: Panel, lanes: Sequence[int], paint: Paint, x: float, y: float) -> Iterator[Part]:
    """Each event in its lane, with its name."""
    yield Lettering(x - PAD * 2, y + LANE / 2, panel.name, SMALL, "end")
    if not lanes:
        yield Lettering(x, y + LANE / 2, "nothing", SMALL, strength=0.6)
    rows = zip(lanes, _shares(panel.elements).tolist(), names_of(panel.elements), panel.elements.labels, strict=True)
    for lane, (begin, end), name, label in rows:
        left, right, top = x + WIDTH * begin, x + WIDTH * end, y + LANE * lane + (LANE - BAR) / 2
        yield Rectangle(left, top, right - left, BAR, paint(label), FILLED)
        for edge in (left, right):
            yield Rectangle(edge - 0.75, top, 1.5, BAR, paint(label))
        room = max(right, min(x + WIDTH, left + width_of(name, SMALL) + 2 * PAD)) - left - 2 * PAD
        yield Lettering(left + PAD, top + BAR / 2, shorten(name, room, SMALL), SMALL)


def lanes_of(given: Elements, width: float) -> list[int]:
    """The lane of each event: the first in which no earlier one, nor its name, is in the way."""
    ends: list[float] = []
    found = [0] * len(given.labels)
    shares, names = _shares(given).tolist(), names_of(given)
    for number in sorted(range(len(shares)), key=lambda each: shares[each]):
        begin, end = (width * each for each in shares[number])
        lane = next((lane for lane, taken in enumerate(ends) if taken <= begin), len(ends))
        lane = min(lane, TAKEN - 1)
        ends[lane:] = [max(end, begin + width_of(names[number], SMALL) + 2 * PAD), *ends[lane + 1 :]]
        found[number] = lane
    return found


def _height(lanes: Sequence[int]) -> int:
    """How many lanes there are; one that says so where there is no event."""
    return max(lanes, default=0) + 1


def _shares(given: Elements) -> np.ndarray:
    """Begin and end of each event as shares of the sound, (n,2)."""
    return ((given.corners - given.frame[0]) / given.extent).clip(0, 1)


def _times(seconds: float, x: float, y: float) -> Iterator[Part]:
    """A scale of seconds."""
    yield Line(x, y, x + WIDTH, y, 1.0, 0.35)
    for each in ticks(0.0, seconds):
        if each <= seconds:
            across = x + WIDTH * each / seconds
            yield Line(across, y, across, y + 3, 1.0, 0.35)
            yield Lettering(across, y + 3 + FOOT / 2, f"{each:g} s", SMALL, "middle", strength=0.7)


def names_of(given: Elements) -> list[str]:
    """Each label with its score, where there is one."""
    scores = [""] * len(given.labels) if given.scores is None else [f" {each:.2f}" for each in given.scores.tolist()]
    return [visible(label) + score for label, score in zip(given.labels, scores, strict=True)]


def _sheet(width: float, title: str) -> tuple[Drawing, float]:
    """A sheet with its title, and where it goes on below."""
    sheet = Drawing(width + 2 * MARGIN, 0.0, title)
    if not title:
        return sheet, MARGIN
    sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, shorten(title, width, TITLE, bold=True), TITLE, bold=True))
    return sheet, MARGIN + TITLE + GAP


Stage = Callable[[Side, Sequence[Panel], Paint, str], Drawing]
STAGES: dict[str, Stage] = {"patches": _on_picture, "frames": _over_time, "points": _among_points}
