"""The atlas: every head of every layer as a small map, with its badges and how widely it looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from saccade.error import SaccadeError
from saccade.field.unit import Side
from saccade.look.chart import TITLED, tinted
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, width_of
from saccade.look.map import Map
from saccade.look.part import Cells, Lettering, frame
from saccade.look.statistic import Statistic

SIDE = 84  # units of a small map, and the most cells of its sides
ACROSS = 12  # small maps side by side, at most
GAP, MARGIN = 12.0, 14.0
HEAD, FOOT = 26.0, 34.0  # above a layer, and below a small map
SIZE, SMALL = 12.0, 10.0
THINNEST = 0.15  # of a small map's longer side


class Layered(Protocol):
    """What is asked of a layer that looked: `Layer` is one."""

    @property
    def name(self) -> str:
        """As in `model.named_modules()`."""

    @property
    def kind(self) -> str:
        """self or cross."""

    @property
    def rows(self) -> str:
        """The side that looks."""

    @property
    def columns(self) -> str:
        """The side that is looked at."""

    @property
    def heads(self) -> int:
        """How many there are."""


class Looked(Protocol):
    """What a picture asks of a look: `Look` is one."""

    sides: dict[str, Side]

    @property
    def layers(self) -> Sequence[Layered]:
        """Those that looked."""

    @property
    def usual(self) -> str:
        """The map to begin with."""

    @property
    def output(self) -> str:
        """What was written, or said at once."""

    def map(self, *args: Any, **options: Any) -> Map:
        """Who looked at whom; what can be asked for is said in `Look.map`."""

    def statistics(self, layer: str) -> list[Statistic]:
        """Of each head."""


def atlas(look: Looked, *, words: bool = False, hide: Sequence[str] = ()) -> Drawing:
    """All heads, a layer below the other; each head has colours of its own, from 0 on."""
    if not look.layers:
        raise SaccadeError("no layer looked at anything: there is nothing to draw")
    across = max(min(each.heads, per_line(each.heads)) for each in look.layers)
    titled = min(max(width_of(_title(each), SIZE, bold=True) for each in look.layers), TITLED)
    width = 2 * MARGIN + max(across * (SIDE + GAP) - GAP, titled)
    sheet = Drawing(math.ceil(width), MARGIN, "all heads")
    for layer in look.layers:
        _add_layer(sheet, look, layer, words, hide)
    return sheet


def per_line(heads: int) -> int:
    """How many of a layer's heads stand in one line, so that the lines are about equal."""
    lines = -(-heads // ACROSS)
    return -(-heads // lines)


def _title(layer: Layered) -> str:
    return f"{layer.name}  ({layer.rows} \u2192 {layer.columns})"


def _add_layer(sheet: Drawing, look: Looked, layer: Layered, words: bool, hide: Sequence[str]) -> None:
    told = shorten(_title(layer), sheet.width - 2 * MARGIN, SIZE, bold=True)
    sheet.add(Lettering(MARGIN, sheet.height + SIZE / 2, told, SIZE, bold=True))
    maps = [look.map(layer.name, head, size=SIDE, words=words, hide=hide) for head in range(layer.heads)]
    top, high, across = sheet.height + HEAD, max(size_of(each)[1] for each in maps), per_line(layer.heads)
    for head, (each, statistic) in enumerate(zip(maps, look.statistics(layer.name), strict=True)):
        line, place = divmod(head, across)
        x, y = MARGIN + place * (SIDE + GAP), top + line * (high + FOOT)
        _add_map(sheet, each, x, y)
        about = f"{head}: entropy {statistic.entropy:.2f}"
        for number, text in enumerate((about, ", ".join(statistic.badges))):
            shown = shorten(text, SIDE + GAP - 4, SMALL)
            sheet.add(Lettering(x, y + high + 9 + 12 * number, shown, SMALL, strength=0.7 if number else 1.0))
    sheet.height = top + -(-layer.heads // across) * (high + FOOT) + GAP


def size_of(map: Map) -> tuple[float, float]:
    """The width and height of a small map: as large as its place lets it be, in the proportions of its cells."""
    R, C = (max(each, 1) for each in map.values.shape)
    return SIDE * min(1.0, max(C / R, THINNEST)), SIDE * min(1.0, max(R / C, THINNEST))


def _add_map(sheet: Drawing, map: Map, x: float, y: float) -> None:
    wide, high = size_of(map)
    if map.values.numel():
        sheet.add(Cells(x, y, wide, high, tinted(map.values)[0]))
    sheet.add(*frame(x, y, wide, high, 0.25))
