"""Word by word, where a picture was looked at: side by side (`strip`), and one after another as an animation (`walk`),
as the eye jumps (Xu et al. 2015).

Sub-words are one word; what ends a text is left out where there is anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import Tensor

from saccade.look.chart import MARGIN, SMALL, TITLE, TITLED, filled
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.label import shorten, visible, width_of
from saccade.look.looked import Looked
from saccade.look.map import Map
from saccade.look.overlay import Overlay
from saccade.look.part import Lettering, Part

Place = tuple[float, ...]  # left, top, width and height as shares of a picture

SIDE, LARGE = 104.0, 320.0  # units of the longer side of a picture in a strip, and of the one that is walked over
ACROSS = 6  # pictures side by side
MOST = 64  # words
GAP, FOOT = 10.0, 20.0  # between pictures, and below one for its name
SIZE, LINE = 15.0, 22.0  # of the letters of a text that is walked through, and from one line of it to the next
SOON = 0.45  # the strength of a word that is still to come


def written(look: Looked, excerpt: Excerpt) -> Map:
    """The map in words, every patch at its place; without special tokens, unless there is nothing else."""
    asked = replace(excerpt, words=True, size=None)
    shown = replace(asked, hide=[*_hidden(excerpt), "special"]).map(look)
    return filled(shown if shown.values.numel() else asked.map(look))


def strip(map: Map, overlay: Overlay, places: Sequence[Place | None] = ()) -> Drawing:
    """The picture, and behind it as often as there are words, each time with where it was looked at. places: where each
    of them found something, which is framed there, and on the first picture too.
    """
    views = [("what was read", overlay.pixels), *_views(map, overlay)]
    places = places or [None] * len(map.rows)
    framed = [[each for each in places if each is not None], *([] if each is None else [each] for each in places)]
    wide, high = overlay.size(SIDE)
    across = min(len(views), ACROSS)
    titled = min(width_of(map.title, TITLE, bold=True), TITLED)
    sheet = Drawing(max(across * (wide + GAP) - GAP, titled) + 2 * MARGIN, MARGIN + TITLE + GAP, map.title)
    sheet.add(_title(map.title, sheet.width))
    for begin in range(0, len(views), across):
        for place, (name, pixels) in enumerate(views[begin : begin + across]):
            x = MARGIN + place * (wide + GAP)
            sheet.add(*overlay.drawn(x, sheet.height, SIDE, pixels))
            for found in framed[begin + place]:
                sheet.add(*overlay.framed(x, sheet.height, SIDE, found))
            shown = shorten(visible(name), wide + GAP - 4, SMALL)
            sheet.add(Lettering(x, sheet.height + high + FOOT / 2, shown, SMALL))
        sheet.height += high + FOOT + GAP
    sheet.height += MARGIN - GAP
    return sheet


def walk(map: Map, overlay: Overlay) -> list[Drawing]:
    """A drawing for each word, all of one size: where it was looked at for it, above the text so far. The first shows
    the picture alone, the last the whole text.
    """
    words = [visible(each) for each in map.rows[:MOST]]
    views = [overlay.pixels, *(pixels for _, pixels in _views(map, overlay)), overlay.pixels]
    return [_frame(map, overlay, words, number - 1, pixels) for number, pixels in enumerate(views)]


def _frame(map: Map, overlay: Overlay, words: Sequence[str], now: int, pixels: Tensor) -> Drawing:
    """The picture of word `now`, with the text below it; -1: before the first."""
    wide, high = overlay.size(LARGE)
    lines = _lines(words, LARGE)
    sheet = Drawing(LARGE + 2 * MARGIN, 2 * MARGIN + high + GAP + LINE * len(lines), map.title)
    sheet.add(*overlay.drawn(MARGIN + (LARGE - wide) / 2, MARGIN, LARGE, pixels))
    for number, line in enumerate(lines):
        y = MARGIN + high + GAP + (number + 0.5) * LINE
        for x, word in line:
            sheet.add(*_lettered(MARGIN + x, y, words[word], word - now))
    return sheet


def _lettered(x: float, y: float, word: str, away: int) -> Iterator[Part]:
    """A word, bold while it is written, and faint as long as it is still to come. away: words from the one now."""
    yield Lettering(x, y, word, SIZE, bold=away == 0, strength=SOON if away > 0 else 1.0)


def _lines(words: Sequence[str], room: float) -> list[list[tuple[float, int]]]:
    """The words in lines of this width, each with its place and its number."""
    lines: list[list[tuple[float, int]]] = [[]]
    x = 0.0
    for number, word in enumerate(words):
        wide = width_of(word, SIZE, bold=True)
        if x and x + wide > room:
            lines.append([])
            x = 0.0
        lines[-1].append((x, number))
        x += wide + width_of(" ", SIZE)
    return lines


def _views(map: Map, overlay: Overlay) -> Iterator[tuple[str, Tensor]]:
    """Each word and the picture tinted by its weights."""
    for name, weights in zip(map.rows[:MOST], map.values, strict=False):
        yield name, overlay.tinted(weights, map.column_places)


def _hidden(excerpt: Excerpt) -> list[str]:
    return excerpt.hide.split(",") if isinstance(excerpt.hide, str) else [*excerpt.hide]


def _title(title: str, width: float) -> Lettering:
    shown = shorten(visible(title), width - 2 * MARGIN, TITLE, bold=True)
    return Lettering(MARGIN, MARGIN + TITLE / 2, shown, TITLE, bold=True)
