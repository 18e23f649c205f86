"""What a drawing is made of: rectangles, cells, lines, dots and lettering, in units: one is a pixel of an SVG.

x goes right, y goes down. The point of a lettering is at half the height of its letters, at its beginning, middle or
end, and it turns clockwise around that point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from saccade.error import SaccadeError

INK, PAPER = "#1c1d21", "#ffffff"
DROP = 0.35  # from half the height of a letter to the line it stands on, in sizes of the font


@dataclass(frozen=True)
class Rectangle:
    """A filled rectangle; without a colour, of ink."""

    x: float
    y: float
    width: float
    height: float
    colour: str | None = None
    strength: float = 1.0


@dataclass(frozen=True)
class Cells:
    """Colours (R,C,3), bytes, each drawn as a cell: the weights of a map, the pixels of a picture. note: the text of a
    cell (row, column), which an SVG shows under the pointer.
    """

    x: float
    y: float
    width: float
    height: float
    colours: Tensor
    note: Callable[[int, int], str] | None = None


@dataclass(frozen=True)
class Line:
    """A line; without a colour, of ink."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float = 1.0
    strength: float = 1.0
    colour: str | None = None


@dataclass(frozen=True)
class Dot:
    """A filled circle; without a colour, of ink. note: what an SVG shows under the pointer."""

    x: float
    y: float
    radius: float
    colour: str | None = None
    strength: float = 1.0
    note: str = ""


@dataclass(frozen=True)
class Lettering:
    """A text on one line; without a colour, of ink. anchor: which part of it stands at (x, y): "start", "middle" or
    "end".
    """

    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: str = "start"
    turn: float = 0.0
    bold: bool = False
    strength: float = 1.0
    colour: str | None = None

    def __post_init__(self) -> None:
        if self.anchor not in ("start", "middle", "end"):
            raise SaccadeError(f"a lettering's anchor is 'start', 'middle' or 'end', not {self.anchor!r}")


Part = Rectangle | Cells | Line | Dot | Lettering


def frame(x: float, y: float, width: float, height: float, strength: float = 0.35) -> Iterator[Line]:
    """The four lines around a rectangle."""
    right, below = x + width, y + height
    corners = ((x, y), (right, y), (right, below), (x, below), (x, y))
    for (x1, y1), (x2, y2) in pairwise(corners):
        yield Line(x1, y1, x2, y2, 1.0, strength)
