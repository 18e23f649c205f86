"""`Trace`: how an agent came, and the ways it may go on, drawn beneath a map over the agents of a scene."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from saccade.field.unit import Side
from saccade.look.part import Dot, Line, Part

Place = tuple[float, float]
CAME, GOES = "#0072b2", "#009e73"  # what was seen, what is told (Okabe and Ito 2008)
LEAST = 0.02  # the probability from which a future is drawn beside the likeliest
EDGE = 0.06  # of a square, around it, within which a way is drawn


class Trace(NamedTuple):
    """Places, as shares of a square; colour, width and strength of the lines between them. ends: whether its end has a
    dot; note: what an SVG shows there under the pointer.
    """

    places: Sequence[Place | None]
    colour: str
    width: float
    strength: float
    ends: bool = False
    note: str = ""

    def drawn(self, at: Callable[[Place], Place], scale: float) -> Iterator[Part]:
        """Its lines, where they lie on the square and both ends are known. at: where a place is drawn; scale: of a
        small picture.
        """
        for one, other in pairwise(self.places):
            if one is not None and other is not None and _inside(one) and _inside(other):
                width = max(self.width * scale, 0.4)
                yield Line(*at(one), *at(other), width, self.strength, self.colour)
        last = self.places[-1]
        if self.ends and last is not None and _inside(last):
            yield Dot(*at(last), 2.4 * scale, self.colour, self.strength, self.note)


def ways_of(side: Side) -> list[Trace]:
    """The tracks of a side and the futures that are told, the likeliest last; none where it has no tracks."""
    tracks, told = side.shown.get("tracks", ()), side.shown.get("futures", ())
    found = [
        Trace([None if each is None else (each[0], each[1]) for each in track], CAME, 2.6, 0.8) for track in tracks
    ]
    for unit, future in zip(side.tokens, told, strict=False):
        if future is None or unit.place is None:
            continue
        here = unit.place[0], unit.place[1]
        for number, (way, share) in reversed([*enumerate(zip(future["ways"], future["probabilities"], strict=True))]):
            places = [here, *((each[0], each[1]) for each in way)]
            if not number:
                found.append(Trace(places, GOES, 1.8, 1.0, True, f"{unit.text}: {share:.0%}"))
            elif share >= LEAST:
                found.append(Trace(places, GOES, 1.1, 0.15 + 0.85 * share, True, f"{unit.text}: {share:.0%}"))
    return found


def _inside(place: Place) -> bool:
    return all(-EDGE <= each <= 1 + EDGE for each in place)
