"""`Tally`: what was counted in every example that was answered, whose sum gives a score.

So the score of any part, or of examples drawn again, follows without asking the model again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]


class Tally(NamedTuple):
    """counts (N, K), the score of a sum of them (K,), and which is better: more (1), less (-1) or neither (0)."""

    counts: Counts
    score: Callable[[Counts], float]
    better: int = 1

    @property
    def value(self) -> float:
        """The score of everything."""
        return self.score(self.counts.sum(0)) if len(self.counts) else float("nan")

    def of(self, chosen: NDArray[np.bool_]) -> Tally:
        """The same of some alone."""
        return self._replace(counts=self.counts[chosen])


def mean(values: Counts, better: int = 1) -> Tally:
    """The mean of a number of each example (N,)."""
    counts = np.stack([values, np.ones(len(values))], 1)
    return Tally(counts, lambda total: float(total[0] / total[1]) if total[1] else float("nan"), better)
