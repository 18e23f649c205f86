"""`Side`: one sequence that a model looks from or at, as units with names: words, patches, frames, points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

NOWHERE = (-1, -1)  # the cell of a unit that has no place on a grid, such as a class token
Cell = tuple[int, int]  # a row and a column of a grid


class Lengths(NamedTuple):
    """name: what lengths of inputs are counted in (words); edges: where the default buckets of a comparison begin."""

    name: str
    edges: tuple[int, ...]


class Unit(NamedTuple):
    """id: its number in a vocabulary, else its own among the units: equal ids mean the same thing. text: its name, half
    a character as \\xe4. word: the number of the group it belongs to. special: whether a map may hide it. place: where
    it lies, as the renderer of its side's kind reads it: of a patch left, top, width and height, as shares of the
    picture.
    """

    id: int
    text: str
    word: int
    special: bool
    place: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Side:
    """Units in their order, the groups they make up, and all of it as a text.

    kind: which renderer draws it (words, patches); shown: what else the renderer needs, as JSON (a picture, its grid).
    """

    tokens: Sequence[Unit]
    words: Sequence[str]
    text: str
    kind: str = "words"
    shown: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def showing(self, **more: Any) -> Side:
        """The same side with more to be drawn."""
        return replace(self, shown={**self.shown, **more})

    @property
    def cells(self) -> list[Cell] | None:
        """The row and column of each unit on the side's grid, or NOWHERE; None where the side has no grid."""
        if "grid" not in self.shown:
            return None
        rows, columns = self.shown["grid"]
        return [
            NOWHERE if each.place is None else (round(each.place[1] * rows), round(each.place[0] * columns))
            for each in self.tokens
        ]

    def on_grid(self, cells: Sequence[Cell], extras: Sequence[str] = ()) -> Side:
        """The same picture cut otherwise: a unit for each cell, of as many rows and columns as the cells span. A unit
        that is NOWHERE bears the next of the names `extras`, and a map may hide it.
        """
        rows, columns = (max((cell[axis] for cell in cells), default=0) + 1 or 1 for axis in (0, 1))
        names = iter(extras)
        units = []
        for number, (row, column) in enumerate(cells):
            if (row, column) == NOWHERE:
                units.append(Unit(number, next(names, f"vector {number + 1}"), number, True))
                continue
            box = column / columns, row / rows, 1 / columns, 1 / rows
            units.append(Unit(number, f"{row + 1},{column + 1}", number, False, box))
        shown = {**self.shown, "grid": [rows, columns]}
        return replace(self, tokens=units, words=[each.text for each in units], shown=shown)


def joined(sides: Mapping[str, Side]) -> Side:
    """Several inputs that a model reads as one sequence: their units one after another; no group spans two inputs."""
    units: list[Unit] = []
    words: list[str] = []
    for side in sides.values():
        units += [each._replace(word=each.word + len(words)) for each in side.tokens]
        words += side.words
    return Side(units, words, "; ".join(f"{name}: {side.text}" for name, side in sides.items()))
