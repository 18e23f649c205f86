"""`shapes`: pictures of up to eight shapes that overlap, and a box around each.

A picture has 96 x 96 pixels. A shape is a circle, square, triangle, cross, star or ring, about 10 to 40 pixels wide
and high, in a colour that no other shape of the picture has and that tells nothing of its kind. Later shapes cover
earlier ones; one of which less than 30 % can be seen is not there at all. Its box holds the whole shape, also what is
covered. The ground is greyish, uneven and noisy. The same number gives the same picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from saccade.data.batch import random_of
from saccade.data.outlines import COLOURS, EXTENTS, OUTLINES
from saccade.error import SaccadeError, nearest
from saccade.field.elements.element import Elements, elements

VERSION = 1  # of the generator: raise it when the same number gives another picture
SPLITS = ("train", "val", "test")
SIDE = 96  # pixels of a picture's side
MOST = 8  # shapes that are drawn at most
SIZES = (10, 40)  # pixels of a shape's width and height
SEEN = 0.3  # the share of a shape that must be seen
TONES = {**COLOURS, "orange": (236, 128, 28), "teal": (24, 150, 160)}
TEXTURE = 8  # pixels between two places where the light of the ground is drawn
NOISE = 3  # bits that are taken from a byte of noise: pixels are lighter or darker by up to 16
VARIED = 18  # by which a tone differs from its colour at most
LIGHT, UNEVEN, TINT = (140, 225), 25, 14  # of the ground: its mean, how far it goes up and down, how coloured it is


class Shape(NamedTuple):
    """corners: of its box, left, top, right, bottom; inside: which of its pixels are the shape's, (height, width)."""

    kind: str
    colour: str
    corners: tuple[int, int, int, int]
    inside: np.ndarray

    @property
    def window(self) -> tuple[slice, slice]:
        """Where it lies in a picture: rows and columns."""
        left, top, right, bottom = self.corners
        return slice(top, bottom), slice(left, right)


class DrawnShapes:
    """A picture of shapes, drawn when it is asked for. numbers: the seed of its ground and its tones."""

    def __init__(self, shapes: list[Shape], numbers: tuple[int, ...]) -> None:
        self.shapes, self.numbers = shapes, numbers

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        pixels = drawn(self.shapes, random_of(*self.numbers))
        return pixels if dtype is None else pixels.astype(dtype)


def example(number: int, *, split: str = "train", seed: int = 0) -> tuple[DrawnShapes, Elements]:
    """The picture (96,96,3) of this number and its boxes."""
    if split not in SPLITS:
        raise SaccadeError(f"shapes: the split {split!r} is unknown; {nearest(split, SPLITS)}")
    numbers = (seed, SPLITS.index(split), number)
    shapes = placed(random_of(*numbers))
    frame = (0, 0, SIDE, SIDE)
    boxes = elements([each.kind for each in shapes], [each.corners for each in shapes], frame)
    return DrawnShapes(shapes, (*numbers, 1)), boxes


def examples(
    count: int, *, split: str = "train", seed: int = 0, first: int = 0
) -> Iterator[tuple[DrawnShapes, Elements]]:
    """`count` examples of a split."""
    return (example(number, split=split, seed=seed) for number in range(first, first + count))


def placed(random: np.random.Generator) -> list[Shape]:
    """The shapes of a picture, from the one below all others up; none of which too little is seen."""
    count = int(random.integers(1, MOST + 1))
    colours = random.permutation(len(TONES))[:count].tolist()
    kinds = random.integers(0, len(OUTLINES), count).tolist()
    names, tones = list(OUTLINES), list(TONES)
    sizes, places = random.integers(SIZES[0], SIZES[1] + 1, (count, 2)).tolist(), random.random((count, 2)).tolist()
    covered, found = np.zeros((SIDE, SIDE), bool), []
    for kind, colour, size, place in zip(kinds, colours, sizes, places, strict=True):  # the uppermost first
        shape = _shape(names[kind], tones[colour], size, place)
        over = covered[shape.window]
        if np.count_nonzero(shape.inside & ~over) >= SEEN * np.count_nonzero(shape.inside):
            over |= shape.inside
            found.append(shape)
    return found[::-1]


def drawn(shapes: list[Shape], random: np.random.Generator) -> np.ndarray:
    """A picture (96,96,3) of bytes: the ground, the shapes one over the other, and noise on all of it."""
    planes = _ground(random)
    tones = random.integers(-VARIED, VARIED + 1, (len(shapes), 3), np.int16)
    tones += np.array([TONES[each.colour] for each in shapes], np.int16)
    for each, tone in zip(shapes, tones[:, :, None, None], strict=True):
        np.copyto(planes[:, *each.window], tone, where=each.inside)
    planes += np.frombuffer(random.bytes(planes.size), np.uint8).reshape(planes.shape) >> NOISE
    planes -= (1 << 8 - NOISE) // 2
    return planes.clip(0, 255, out=planes).astype(np.uint8).transpose(1, 2, 0)


def _ground(random: np.random.Generator) -> np.ndarray:
    """The planes (3,96,96) of a ground whose light goes softly up and down: long rows, which numpy is quick with."""
    knots = random.uniform(*LIGHT) + random.uniform(-UNEVEN, UNEVEN, BETWEEN.shape[1:] * 2)
    light = (BETWEEN @ knots @ BETWEEN.T).astype(np.int16)
    return light + random.integers(-TINT, TINT + 1, (3, 1, 1), np.int16)


def _shape(kind: str, colour: str, size: list[int], place: list[float]) -> Shape:
    """A shape that lies wholly in the picture. place: from 0 to 1, how far to the right and down it lies."""
    inside = _outline(kind, *size)
    tall, broad = inside.shape
    across, down = int(place[0] * (SIDE - broad + 1)), int(place[1] * (SIDE - tall + 1))
    return Shape(kind, colour, (across, down, across + broad, down + tall), inside)


@lru_cache(1 << 13)
def _outline(kind: str, wide: int, high: int) -> np.ndarray:
    """Which pixels are inside a shape, without rows and columns that have none."""
    left, top, right, bottom = EXTENTS[kind]
    x = left + (right - left) * (np.arange(wide) + 0.5) / wide
    y = top + (bottom - top) * (np.arange(high) + 0.5) / high
    inside = OUTLINES[kind](x[None], y[:, None])
    return inside[inside.any(1)][:, inside.any(0)]


def _between() -> np.ndarray:
    """What lies between knots (13,) along a side, (96,13): linear."""
    places = (np.arange(SIDE) + 0.5) / TEXTURE
    return np.maximum(0, 1 - abs(places[:, None] - np.arange(SIDE // TEXTURE + 1)))


BETWEEN = _between()
