"""`Excerpt`: which map of a look to make: layer and head, rows and columns, and how many cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from saccade.error import SaccadeError, nearest
from saccade.look.looked import Layered, Looked
from saccade.look.map import Map


@dataclass(frozen=True)
class Excerpt:
    """A layer (by default the look's usual map) and a head of it, in tokens or words, without what is hidden.

    size: cells a side at most; rows and columns: from the first to before the last.
    """

    layer: str | None = None
    head: int | str = "mean"
    words: bool = False
    hide: Sequence[str] = ()  # special, sink, or both; as one text with a comma
    size: int | None = None
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None

    row: str | None = None  # one row alone: the name of a unit (class, "3,4"), or its number from 0

    def map(self, look: Looked, most: int | None = None) -> Map:
        """The map; of at most `most` cells a side, unless a size is asked for."""
        return look.map(
            self.layer,
            self.head,
            rows=self.rows if self.row is None else self._span(look, self.row),
            columns=self.columns,
            size=most if self.size is None else self.size,
            words=self.words,
            hide=self.hide,
        )

    def layer_of(self, look: Looked) -> Layered | None:
        """The layer whose sides this map is of, the last of several; None where there is none, which `map` refuses."""
        name = look.usual if self.layer is None else self.layer
        return next((each for each in reversed(look.layers) if name in _maps_of(each)), None)

    def _span(self, look: Looked, row: str) -> tuple[int, int] | None:
        """The row of a unit, or of its word."""
        layer = self.layer_of(look)
        if layer is None:
            return None
        side = look.sides[layer.rows]
        names = [each.text for each in side.tokens]
        spaced = {each.strip(): each for each in reversed(names)}  # the first of each, without the space before a word
        row = row if row in names else spaced.get(row, row)
        if row not in names and not (row.isdecimal() and int(row) < len(names)):
            raise SaccadeError(f"no row is called {row!r}, and {len(names)} are there; {nearest(row, names)}")
        number = names.index(row) if row in names else int(row)
        place = side.tokens[number].word if self.words else number
        return place, place + 1


def _maps_of(layer: Layered) -> tuple[str, str]:
    """The maps that a layer is part of: its own, and the one over several layers."""
    stack = layer.name.partition(".")[0]
    return layer.name, "alignment" if layer.kind == "cross" else f"rollout:{stack}"
