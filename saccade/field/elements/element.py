"""`Elements`: what is found in one example, as a set: things with a label and a place along each of its axes.

A box of a picture has two axes, an event of a sound has one, a box in space three. A place is the low and the high end
of each axis, in the units of the example: pixels from the left and from above, seconds, metres.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saccade.error import SaccadeError


class Elements(NamedTuple):
    """labels: of each element; corners (n,2k): where it begins along each axis, then where it ends; frame (2k,): the
    same of the whole example: (0, 0, width, height) of a picture, (0, seconds) of a sound. scores: how sure each is,
    where a model has told them.
    """

    labels: tuple[str, ...]
    corners: np.ndarray
    frame: np.ndarray
    scores: np.ndarray | None = None

    @property
    def axes(self) -> int:
        """Along how many axes an element lies."""
        return len(self.frame) // 2

    @property
    def shares(self) -> np.ndarray:
        """Centre and size of each element along each axis, (n,2k), as shares of the frame."""
        low, high = np.split((self.corners - np.tile(self.frame[: self.axes], 2)) / np.tile(self.extent, 2), 2, 1)
        return np.concatenate([(low + high) / 2, high - low], 1)

    @property
    def extent(self) -> np.ndarray:
        """How long the example is along each axis, (k,)."""
        return self.frame[self.axes :] - self.frame[: self.axes]


def elements(labels: Sequence[str], corners: Any, frame: Any) -> Elements:
    """Elements from plain sequences; refuses what is no place: not finite, its end not behind its beginning."""
    whole = np.asarray(frame, np.float64)
    found = np.asarray(corners, np.float64).reshape(-1, len(whole)) if len(labels) else np.empty((0, len(whole)))
    if len(found) != len(labels):
        raise SaccadeError(f"each element has a label and a place: there are {len(labels)} and {len(found)}")
    axes = len(whole) // 2
    wrong = ~np.isfinite(found).all(1) | (found[:, axes:] <= found[:, :axes]).any(1)
    if wrong.any():
        number = int(wrong.argmax())
        raise SaccadeError(
            f"element {number + 1} ({labels[number]}) has the place {found[number].tolist()}: its end lies behind its "
            "beginning along each axis"
        )
    return Elements(tuple(labels), found, whole)


def placed(labels: Sequence[str], shares: np.ndarray, frame: np.ndarray, scores: np.ndarray | None = None) -> Elements:
    """The inverse of `Elements.shares`: elements from centres and sizes (n,2k) as shares of a frame."""
    axes = len(frame) // 2
    centre, size = shares[:, :axes], shares[:, axes:]
    inside = np.concatenate([centre - size / 2, centre + size / 2], 1).clip(0, 1)
    extent = np.tile(frame[axes:] - frame[:axes], 2)
    return Elements(tuple(labels), inside * extent + np.tile(frame[:axes], 2), frame, scores)
