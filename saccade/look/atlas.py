"""The atlas: every head of every layer as a small map, with its badges and how widely it looks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from saccade.error import SaccadeError
from saccade.look.chart import TITLED
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, width_of
from saccade.look.looked import Layered, Looked
from saccade.look.part import Lettering
from saccade.look.renderer import thumb_of
from saccade.look.thumb import SIDE

ACROSS = 12  # small maps side by side, at most
GAP, MARGIN = 12.0, 14.0
HEAD, FOOT = 26.0, 34.0  # above a layer, and below a small map
SIZE, SMALL = 12.0, 10.0


def atlas(look: Looked, *, words: bool = False, hide: Sequence[str] = ()) -> Drawing:
    """All heads, one layer below the other; each head has its own scale of colours, from 0 on."""
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
    title = shorten(_title(layer), sheet.width - 2 * MARGIN, SIZE, bold=True)
    sheet.add(Lettering(MARGIN, sheet.height + SIZE / 2, title, SIZE, bold=True))
    small = thumb_of(look, layer)
    maps = [look.map(layer.name, head, size=small.cells, words=words, hide=hide) for head in range(layer.heads)]
    top, high, across = sheet.height + HEAD, max(small.size(each)[1] for each in maps), per_line(layer.heads)
    for head, (each, statistic) in enumerate(zip(maps, look.statistics(layer.name), strict=True)):
        line, place = divmod(head, across)
        x, y = MARGIN + place * (SIDE + GAP), top + line * (high + FOOT)
        sheet.add(*small.drawn(each, x, y))
        about = f"{head}: entropy {statistic.entropy:.2f}"
        for number, text in enumerate((about, ", ".join(statistic.badges))):
            shown = shorten(text, SIDE + GAP - 4, SMALL)
            sheet.add(Lettering(x, y + high + 9 + 12 * number, shown, SMALL, strength=0.7 if number else 1.0))
    sheet.height = top + -(-layer.heads // across) * (high + FOOT) + GAP
