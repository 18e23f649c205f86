"""`Confusion`: which label was wanted, which was given instead, and what follows from it.

precision   of the answers that name a class, the share that is right
recall      of the examples of a class, the share that is found
F1          2 precision recall / (precision + recall) = 2 right / (named + wanted)
macro F1    the mean of F1 over the classes that are wanted or named at all (van Rijsbergen 1979)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.field.metric import SEED, totals
from saccade.field.tally import FEWEST, Counts, Tally, draws_for, limits

NOTHING = -1  # the number of an answer that is missing


class Confusion(NamedTuple):
    """counts (n,n): examples by the class that is wanted (rows) and the one that is named (columns); unanswered (n,):
    examples without an answer, by the class that is wanted.
    """

    labels: list[str]
    counts: NDArray[np.int64]
    unanswered: NDArray[np.int64]

    def classes(self) -> dict[str, dict[str, float]]:
        """Precision, recall and F1 of each class, 0 where nothing is there to divide by; support: its examples."""
        wanted = self.counts.sum(1) + self.unanswered
        columns = _scores(self.counts.diagonal(), self.counts.sum(0), wanted)
        return {
            label: {
                **{name: float(np.nan_to_num(each[n])) for name, each in columns.items()},
                "support": int(wanted[n]),
            }
            for n, label in enumerate(self.labels)
        }

    def described(self) -> dict[str, Any]:
        """As JSON's values; unanswered only where there are such examples."""
        missing = {"unanswered": self.unanswered.tolist()} if self.unanswered.any() else {}
        return {"labels": self.labels, "counts": self.counts.tolist(), **missing}


def confusion(answers: Sequence[str | None], wanted: Sequence[str], names: Sequence[str]) -> Confusion:
    """The confusion of answers (None: there is none), with the classes of a run first, and any others behind them."""
    labels, said, right = _numbered(answers, wanted, names)
    n, there = len(labels), said != NOTHING
    cells = np.bincount(right[there] * n + said[there], minlength=n * n).reshape(n, n)
    return Confusion(labels, cells, np.bincount(right[~there], minlength=n))


def macro_f1(answers: Sequence[str | None], wanted: Sequence[str], names: Sequence[str]) -> Tally:
    """Macro F1 as a tally: of each example, for each class, whether it is rightly named, named and wanted, (N,3n).

    Classes that neither the answers nor the wanted labels name take no columns: they do not count.
    """
    return Tally(_marked(answers, wanted, names)[1], _mean_f1)


def class_intervals(
    answers: Sequence[str | None],
    wanted: Sequence[str],
    names: Sequence[str],
    *,
    draws: int | None = None,
    seed: int = SEED,
) -> dict[str, dict[str, list[float]]]:
    """Where 95 % of precision, recall and F1 of each class lie when the examples are drawn again, as in `intervals`.

    A draw counts that holds something to divide by; left out is what has no value at all, such as the precision of a
    class that is never named.
    """
    labels, counts = _marked(answers, wanted, names)
    if len(counts) < FEWEST:
        return {}
    sums = totals(counts, draws or draws_for(len(counts)), seed)  # (draws,3n)
    drawn = _scores(*np.split(sums, 3, axis=1))
    return {
        label: {name: limits(each[:, n]) for name, each in drawn.items() if np.isfinite(each[:, n]).any()}
        for n, label in enumerate(labels)
    }


def _marked(answers: Sequence[str | None], wanted: Sequence[str], names: Sequence[str]) -> tuple[list[str], Counts]:
    """The n labels that are named or wanted, and of each example, for each of them, whether it is rightly named, named
    and wanted, (N,3n).
    """
    labels, said, right = _numbered(answers, wanted, names)
    used = np.unique(np.concatenate([said, right]))
    used = used[used != NOTHING]
    hits = np.where(said == right, said, NOTHING)
    columns = [(each[:, None] == used) for each in (hits, said, right)]
    return [labels[each] for each in used], np.hstack(columns).astype(np.float64)


def _mean_f1(total: Counts) -> float:
    """Macro F1 of summed counts (3n,), over the classes that occur in them."""
    right, named, wanted = total.reshape(3, -1)
    there = named + wanted > 0
    return float((2 * right[there] / (named + wanted)[there]).mean()) if there.any() else float("nan")


def _numbered(
    answers: Sequence[str | None], wanted: Sequence[str], names: Sequence[str]
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """All labels, and answers and wanted labels as their numbers."""
    others = {each for each in (*answers, *wanted) if each is not None} - set(names)
    labels = [*names, *sorted(others)]
    numbers: dict[str | None, int] = {name: number for number, name in enumerate(labels)}
    said = np.array([numbers.get(each, NOTHING) for each in answers], np.int64)
    return labels, said, np.array([numbers[each] for each in wanted], np.int64)


def _scores(right: NDArray[Any], named: NDArray[Any], wanted: NDArray[Any]) -> dict[str, Counts]:
    """Precision, recall and F1 of counts (...,n); NaN where there is nothing to divide by."""
    return {
        "precision": _shares(right, named),
        "recall": _shares(right, wanted),
        "f1": _shares(2 * right, named + wanted),
    }


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> Counts:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
