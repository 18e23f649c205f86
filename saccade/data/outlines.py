"""Flat shapes to draw: which pixels are inside, by x and y in radii from the centre; and colours for them."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi, sin

import numpy as np

Inside = Callable[[np.ndarray, np.ndarray], np.ndarray]
HOLE = 0.55  # of a ring, in radii
WAIST = cos(2 * pi / 5)  # how far the edges of a star lie from its centre, in radii


def _star(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A star of five points, one above: what is inside at least four of the five lines through its edges."""
    turns = (2 * pi * each / 5 for each in range(5))
    lines = np.stack([sin(turn) * x - cos(turn) * y <= WAIST for turn in turns])
    found: np.ndarray = lines.sum(0) >= 4
    return found


OUTLINES: dict[str, Inside] = {
    "circle": lambda x, y: x**2 + y**2 <= 1,
    "square": lambda x, y: (abs(x) <= 0.85) & (abs(y) <= 0.85),
    "triangle": lambda x, y: (y <= 0.8) & (2 * abs(x) <= y + 1.1),
    "cross": lambda x, y: ((abs(x) <= 0.35) & (abs(y) <= 1)) | ((abs(y) <= 0.35) & (abs(x) <= 1)),
    "star": _star,
    "ring": lambda x, y: abs(x**2 + y**2 - (1 + HOLE**2) / 2) <= (1 - HOLE**2) / 2,
}
EXTENTS = dict.fromkeys(OUTLINES, (-1.0, -1.0, 1.0, 1.0)) | {  # left, top, right, bottom, where they are not a radius
    "square": (-0.85, -0.85, 0.85, 0.85),
    "triangle": (-0.95, -1.1, 0.95, 0.8),
    "star": (-sin(2 * pi / 5), -1.0, sin(2 * pi / 5), cos(pi / 5)),
}
COLOURS = {
    "red": (214, 45, 32),
    "green": (38, 145, 60),
    "blue": (42, 85, 205),
    "yellow": (238, 200, 25),
    "purple": (140, 60, 165),
    "black": (30, 30, 34),
}
