"""`Tally`: counts of every answered example, from whose sum a score follows.

So the score of a part of the examples, or of examples drawn again, needs no second run of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.field.metric import DRAWS, SEED, totals

Counts = NDArray[np.float64]
FEWEST = 2  # examples: of one, all draws are the same
DRAWN = 20_000_000  # examples of all draws together; with more examples there are fewer draws, for about two seconds
FEWEST_DRAWS = 200  # whatever the number of examples


class Tally(NamedTuple):
    """counts (N, K); score: of a sum (K,) of them; better: a higher score (1), a lower one (-1) or neither (0)."""

    counts: Counts
    score: Callable[[Counts], float]
    better: int = 1

    @property
    def value(self) -> float:
        """The score of all examples."""
        return self.score(self.counts.sum(0)) if len(self.counts) else float("nan")

    def of(self, chosen: NDArray[np.bool_]) -> Tally:
        """The tally of the chosen examples (N,)."""
        return self._replace(counts=self.counts[chosen])


def mean(values: Counts, better: int = 1) -> Tally:
    """The tally whose score is the mean of one number for each example (N,)."""
    return Tally(np.stack([values, np.ones(len(values))], 1), ratio, better)


def ratio(total: Counts) -> float:
    """The score that is one sum for each of another (2,); NaN where there is nothing to divide by."""
    return float(total[0] / total[1]) if total[1] else float("nan")


def intervals(tallies: Mapping[str, Tally], *, draws: int | None = None, seed: int = SEED) -> dict[str, list[float]]:
    """Where 95 % of each score lies when the examples are drawn again, as many, with replacement (Efron 1979).

    All tallies are of the same examples and are scored on the same draws. A score is that of the drawn examples
    together (BLEU of a drawn corpus, macro F1 of drawn labels), never a mean of scores. Left out are scores that are
    not finite, and everything where there is but one example. draws: 1,000, or fewer for more than 20,000 examples.
    """
    size = len(next(iter(tallies.values())).counts) if tallies else 0
    known = {name: each for name, each in tallies.items() if np.isfinite(each.value)}
    if size < FEWEST or not known:
        return {}
    sums = totals(np.hstack([each.counts for each in known.values()]), draws or draws_for(size), seed)
    edges = np.cumsum([each.counts.shape[1] for each in known.values()])[:-1]
    found = {}
    for (name, each), part in zip(known.items(), np.split(sums, edges, axis=1), strict=True):
        scores = np.array([each.score(total) for total in part])
        found[name] = limits(scores)
    return found


def limits(scores: Counts) -> list[float]:
    """Between which two 95 % of the scores (draws,) lie; a draw that holds nothing of what was counted has none."""
    low, high = np.percentile(scores[np.isfinite(scores)], [2.5, 97.5])
    return [float(low), float(high)]


def draws_for(size: int) -> int:
    """How often so many examples are drawn again."""
    return max(FEWEST_DRAWS, min(DRAWS, DRAWN // max(size, 1)))
