"""How far chance moves a difference: the paired bootstrap (Efron 1979; of translations, Koehn 2004).

Two systems answered the same sentences. As many sentences are drawn from these with replacement, again and again, and
both systems are scored on the same draws: so it does not blur the difference that some sentences are hard. A score
follows from the sum of the sentences' counts, so a thousand draws are one matrix product: how often each sentence was
drawn, times its counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.error import SaccadeError
from saccade.field.metric import DRAWS, SEED, totals
from saccade.field.tally import FEWEST, Tally


class Difference(NamedTuple):
    """The score of another system minus that of the first, the interval that holds 95 % of the draws, and the share of
    draws in which the first is better (a tie counts half).
    """

    difference: float
    low: float
    high: float
    first_better: float


def differences(
    first: Tally, others: Sequence[Tally], *, draws: int = DRAWS, seed: int = SEED
) -> list[Difference | None]:
    """Each of the others beside the first, all on the same draws; None where a score is not finite, or where there is
    only one sentence, of which all draws are the same.
    """
    if any(len(each.counts) != len(first.counts) for each in others):
        raise SaccadeError("a paired difference needs the same sentences on both sides, and here their numbers differ")
    if len(first.counts) < FEWEST or not np.isfinite(first.value):
        return [None for _ in others]
    scores = _scores([first, *others], draws, seed)
    return [_difference(first, each, scores[0], own) for each, own in zip(others, scores[1:], strict=True)]


def _difference(
    first: Tally, other: Tally, before: NDArray[np.float64], after: NDArray[np.float64]
) -> Difference | None:
    gain = after - before
    gain = gain[np.isfinite(gain)]  # a draw may hold nothing that was counted
    if not len(gain) or not np.isfinite(other.value):
        return None
    low, high = np.percentile(gain, [2.5, 97.5])
    better = first.better * gain < 0
    share = float(better.mean() + (gain == 0).mean() / 2)
    return Difference(other.value - first.value, float(low), float(high), share)


def _scores(found: Sequence[Tally], draws: int, seed: int) -> list[NDArray[np.float64]]:
    """The scores of each system on every draw, (draws,)."""
    sums = totals(np.hstack([each.counts for each in found]), draws, seed)
    edges = np.cumsum([each.counts.shape[1] for each in found])[:-1]
    parts = np.split(sums, edges, axis=1)
    return [np.array([each.score(total) for total in part]) for each, part in zip(found, parts, strict=True)]
