"""`Excerpt`: which map of a look is meant: its layer and head, its rows and columns, and how fine it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from saccade.field.unit import Side
from saccade.look.atlas import Layered, Looked
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

    def map(self, look: Looked, most: int | None = None) -> Map:
        """The map; of at most `most` cells a side, unless a size is asked for."""
        return look.map(
            self.layer,
            self.head,
            rows=self.rows,
            columns=self.columns,
            size=most if self.size is None else self.size,
            words=self.words,
            hide=self.hide,
        )

    def sides(self, look: Looked) -> tuple[Side, Side] | None:
        """What looks and what is looked at in this map; None where there is no such layer, which `map` refuses."""
        name = look.usual if self.layer is None else self.layer
        found = next((each for each in look.layers if name in _names(each)), None)
        return None if found is None else (look.sides[found.rows], look.sides[found.columns])


def _names(layer: Layered) -> tuple[str, str]:
    """The maps that a layer has part in: its own, and the one that is made of it and others."""
    stack = layer.name.partition(".")[0]
    return layer.name, "alignment" if layer.kind == "cross" else f"rollout:{stack}"
