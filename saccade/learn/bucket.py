"""`Bucket`: the sentences of some lengths, such as those of 10 to 14 words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.error import SaccadeError

PLACES = (16, 64, 256)  # where the default buckets of a language model begin, in tokens before the one predicted


class Bucket(NamedTuple):
    """Lengths from `low` up to, but not including, `high`; None: all longer ones."""

    low: int
    high: int | None

    @property
    def name(self) -> str:
        """under 10, 10 to 14, from 15."""
        if self.high is None:
            return f"from {self.low}"
        if self.low == 0:
            return f"under {self.high}"
        return f"{self.low} to {self.high - 1}" if self.high - self.low > 1 else str(self.low)

    def holds(self, lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which lengths are in it."""
        return (lengths >= self.low) & (lengths < (np.inf if self.high is None else self.high))


def buckets_of(edges: Sequence[int]) -> list[Bucket]:
    """The buckets that begin at 0 and at every edge."""
    if any(low >= high for low, high in pairwise([0, *edges])):
        raise SaccadeError(f"buckets are numbers above 0 that grow, as 10,20,30; got {','.join(map(str, edges))}")
    return [Bucket(low, high) for low, high in pairwise([0, *edges, None])]  # type: ignore[arg-type]


def edges_of(text: str) -> tuple[int, ...]:
    """`10,20,30` as numbers."""
    parts = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() for each in parts):
        raise SaccadeError(f"buckets are whole numbers with commas between them, as 10,20,30; got {text!r}")
    return tuple(map(int, parts))
