"""Event F1: how many events are found at the right time, and named rightly (after Mesaros et al. 2016, who count begins
and ends; pairs are chosen as mir_eval chooses them, Raffel et al. 2014).

A found event may be a wanted one if both have the same label and begin and end within 50 ms of each other. Pairs are
chosen such that there are as many as can be, each event in one pair at most. Then, of all examples together,

    precision = pairs / found,    recall = pairs / wanted,    F1 = 2 pairs / (found + wanted)

This is `mir_eval.transcription` with labels as pitches, offset_ratio=0 and offset_min_tolerance=0.05. Elsewhere the end
often gets more room (a fifth of the event's length, or half of it), and then scores are higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saccade.field.elements.element import Elements
from saccade.field.tally import Counts, Tally, intervals, ratio

TOLERANCE = 0.05  # seconds
DIGITS = 4  # behind the point, that times are compared to: 0.35 - 0.3 is as far as 0.05
SCORES = {  # of pairs, found and wanted events
    "f1": lambda total: ratio(np.array([2 * total[0], total[1] + total[2]])),
    "precision": lambda total: ratio(total[[0, 1]]),
    "recall": lambda total: ratio(total[[0, 2]]),
}


def tallies(found: Sequence[Elements], wanted: Sequence[Elements]) -> dict[str, Tally]:
    """event_f1, event_precision and event_recall, from the pairs, the found and the wanted events of each example."""
    counts = np.array([counts_of(*each) for each in zip(found, wanted, strict=True)]).reshape(-1, 3)
    return {f"event_{name}": Tally(counts, score) for name, score in SCORES.items()}


def by_label(found: Sequence[Elements], wanted: Sequence[Elements]) -> dict[str, dict[str, Any]]:
    """Precision, recall and F1 of each label that is wanted or found, with their intervals; support: how many events
    are wanted. What has nothing to be divided by is 0.
    """
    shown = {}
    for label in sorted({name for each in (*found, *wanted) for name in each.labels}):
        own = ([_only(each, label) for each in some] for some in (found, wanted))
        known = {name.removeprefix("event_"): each for name, each in tallies(*own).items()}
        values = {name: float(np.nan_to_num(each.value)) for name, each in known.items()}
        support = int(known["f1"].counts[:, 2].sum())
        shown[label] = {**values, "support": support, "interval": intervals(known)}
    return shown


def timed(found: Sequence[Elements], wanted: Sequence[Elements]) -> dict[str, float]:
    """The scores of times alone, whatever the labels: how much of what is missing is due to names."""
    own = ([each._replace(labels=("",) * len(each.labels)) for each in some] for some in (found, wanted))
    return {name.removeprefix("event_"): each.value for name, each in tallies(*own).items()}


def counts_of(found: Elements, wanted: Elements) -> Counts:
    """Pairs, found and wanted events of one example, (3,)."""
    return np.array([len(pairs(found, wanted)), len(found.labels), len(wanted.labels)], np.float64)


def pairs(found: Elements, wanted: Elements, tolerance: float = TOLERANCE) -> list[tuple[int, int]]:
    """As many pairs (number of a found, of a wanted event) as can be, by augmenting paths (Berge 1957): an event that
    has no partner takes one, whose own event finds another.
    """
    close = [
        [other for other in range(len(wanted.labels)) if _alike(found, each, wanted, other, tolerance)]
        for each in range(len(found.labels))
    ]
    partner: dict[int, int] = {}  # of wanted events

    def moved(each: int, tried: set[int]) -> bool:
        for other in close[each]:
            if other not in tried:
                tried.add(other)
                if other not in partner or moved(partner[other], tried):
                    partner[other] = each
                    return True
        return False

    for each in range(len(close)):
        moved(each, set())
    return sorted((each, other) for other, each in partner.items())


def _alike(found: Elements, each: int, wanted: Elements, other: int, tolerance: float) -> bool:
    """Whether two events have one label and begin and end at about the same time."""
    if found.labels[each] != wanted.labels[other]:
        return False
    return bool((np.abs(found.corners[each] - wanted.corners[other]).round(DIGITS) <= tolerance).all())


def _only(given: Elements, label: str) -> Elements:
    """The elements of one label."""
    kept = [number for number, each in enumerate(given.labels) if each == label]
    scores = None if given.scores is None else given.scores[kept]
    return Elements(tuple(label for _ in kept), given.corners[kept], given.frame, scores)
