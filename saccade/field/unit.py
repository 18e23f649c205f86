"""`Side`: one sequence that a model looks from or at, as units with names: words, patches, frames, points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Lengths(NamedTuple):
    """What the lengths of inputs are counted in, as people do, and where the usual buckets of a comparison begin."""

    name: str
    edges: tuple[int, ...]


class Unit(NamedTuple):
    """id: its number in a vocabulary, else its own among the units: equal ids mean the same thing; text: its name, half
    a character as \\xe4; word: the number of the group it belongs to; special: whether hiding may leave it out; place:
    where it lies, as the renderer of its side's kind reads it: of patches left, top, width and height, as shares of the
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

    kind: what draws it (words, patches); shown: what else that needs, as JSON can tell it (a picture, its grid).
    """

    tokens: Sequence[Unit]
    words: Sequence[str]
    text: str
    kind: str = "words"
    shown: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)


def joined(sides: Mapping[str, Side]) -> Side:
    """Several inputs that a model reads as one sequence: their units one behind another, the groups of each its own."""
    units: list[Unit] = []
    words: list[str] = []
    for side in sides.values():
        units += [each._replace(word=each.word + len(words)) for each in side.tokens]
        words += side.words
    return Side(units, words, "; ".join(f"{name}: {side.text}" for name, side in sides.items()))
