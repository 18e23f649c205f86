"""Average precision of found elements: one number for how well sets are found, whatever share of them is wanted.

Of one label, what was found in all examples is sorted by its score. In this order each is right if it lies over a
wanted element that none before it has taken, by a share of both (intersection over union) of `overlap` at least. The
average precision is the mean, over recalls of 0, 0.01 to 1, of the best precision from that recall on; 0 where it is
never reached. `map` is its mean over the labels that are wanted anywhere and over overlaps of 0.5, 0.55 to 0.95.

`Precision` counts this along any number of axes, and equals pycocotools on boxes (COCO, Lin et al. 2014). Its score is
known of any draw of the examples, too: each counts as often as it was drawn. So the tallies count examples, and their
intervals are those of the average precision of drawn data sets (of equal scores in one example, all copies of the first
come before those of the second).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saccade.error import SaccadeError
from saccade.field.elements.element import Elements
from saccade.field.tally import Counts, Tally

OVERLAPS = tuple(np.linspace(0.5, 0.95, 10).tolist())  # as pycocotools writes them, to the last bit
RECALLS = np.linspace(0, 1, 101)
TINY = np.spacing(1.0)  # so that nothing is divided by 0
MOST = 100  # found elements of a label that count in one example: those with the highest scores
SHOWN = {"map": OVERLAPS, "map50": OVERLAPS[:1], "map75": OVERLAPS[5:6]}
NEEDED = "average precision as COCO has it needs pycocotools: pip install 'saccade[boxes]'"


class Ranked(NamedTuple):
    """What was found of one label, the highest score first. example (D,): where each was found; right: at each overlap,
    the places of those that are right; wanted (N,): how many each example has.
    """

    example: NDArray[np.int64]
    right: list[NDArray[np.int64]]
    wanted: NDArray[np.int64]

    def precision(self, rows: slice, drawn: Counts | None) -> list[float]:
        """The average precision at some overlaps; none where the label is not wanted. drawn (N,): how often each
        example counts.
        """
        often = np.ones(len(self.example)) if drawn is None else drawn[self.example]
        wanted = float(self.wanted.sum() if drawn is None else drawn @ self.wanted)
        count = np.cumsum(often)
        return [_area(often[right], count[right], wanted) for right in self.right[rows]] if wanted else []


def _area(right: Counts, count: Counts, wanted: float) -> float:
    """The mean of the best precision from each of the recalls on; between two right ones it only falls. right: how
    often each right one counts; count: all that were found up to it.
    """
    hits = np.cumsum(right)
    best = np.maximum.accumulate((hits / np.maximum(count, TINY))[::-1])[::-1]
    places = np.searchsorted(hits / wanted, RECALLS)
    return float(best[places[places < len(best)]].sum() / len(RECALLS))


class Precision:
    """Found elements, matched with the wanted ones of the same example and label, at each of some overlaps."""

    def __init__(
        self,
        found: Sequence[Elements],
        wanted: Sequence[Elements],
        labels: Sequence[str],
        overlaps: Sequence[float] = OVERLAPS,
    ) -> None:
        check(found, wanted, labels)
        self.labels, self.overlaps, self.count = tuple(labels), tuple(overlaps), len(wanted)
        self.ranked = _ranked(found, wanted, self.labels, self.overlaps)

    def score(self, drawn: Counts | None = None, overlaps: Sequence[float] | None = None) -> float:
        """The mean average precision. drawn (N,): how often each example counts; NaN where nothing is wanted."""
        rows = self._rows(self.overlaps if overlaps is None else overlaps)
        known = [area for each in self.ranked.values() for area in each.precision(rows, drawn)]
        return float(np.mean(known)) if known else float("nan")

    def by_label(self, overlaps: Sequence[float] | None = None) -> dict[str, float]:
        """The average precision of each label that is wanted anywhere."""
        rows = self._rows(self.overlaps if overlaps is None else overlaps)
        found = {label: each.precision(rows, None) for label, each in self.ranked.items()}
        return {label: float(np.mean(areas)) for label, areas in found.items() if areas}

    def tallies(self, shown: Mapping[str, Sequence[float]] = SHOWN) -> dict[str, Tally]:
        """The metrics by name, as counts of examples."""
        return {name: Tally(self._each, partial(self._of_drawn, tuple(overlaps))) for name, overlaps in shown.items()}

    @cached_property
    def _each(self) -> Counts:
        """Each example by itself, (N,N): a sum says how often each was drawn."""
        return np.eye(self.count)

    def _of_drawn(self, overlaps: tuple[float, ...], drawn: Counts) -> float:
        return self.score(drawn, overlaps)

    def _rows(self, overlaps: Sequence[float]) -> slice:
        begin = self.overlaps.index(overlaps[0])
        return slice(begin, begin + len(overlaps))


def average_precision(
    found: Sequence[Elements], wanted: Sequence[Elements], labels: Sequence[str], overlap: float = 0.5
) -> float:
    """The mean average precision at one overlap: quick, and without any library."""
    return Precision(found, wanted, labels, (overlap,)).score()


def coco_precision(found: Sequence[Elements], wanted: Sequence[Elements], labels: Sequence[str]) -> dict[str, Any]:
    """map, map50, map75, and `map_by_class` and `map50_by_class`, as pycocotools computes them for boxes."""
    check(found, wanted, labels)
    if any(each.axes != 2 for each in wanted):
        raise SaccadeError("pycocotools measures boxes, which have two axes: take Precision for other elements")
    precision = _evaluated(found, wanted, labels)  # (overlaps, recalls, labels)
    known = [number for number in range(len(labels)) if (precision[:, :, number] > -1).all()]
    overall = {name: _overall(precision[_places(name)][:, :, known]) for name in SHOWN}
    by_class = {
        f"{name}_by_class": {labels[each]: _overall(precision[_places(name)][:, :, each]) for each in known}
        for name in ("map", "map50")
    }
    return {**overall, **by_class}


def coco_json(
    found: Sequence[Elements], labels: Sequence[str], images: Sequence[int | str] | None = None
) -> list[dict[str, Any]]:
    """Found boxes in COCO's form of results: image_id, category_id (from 1, in the order of the labels), bbox (left,
    top, width, height), score. images: the ids of the pictures; by default their numbers from 1.
    """
    numbers = {label: number for number, label in enumerate(labels, 1)}
    keys = images if images is not None else range(1, len(found) + 1)
    return [
        {
            "image_id": key,
            "category_id": numbers[label],
            "bbox": [left, top, right - left, bottom - top],
            "score": score,
        }
        for key, each in zip(keys, found, strict=True)
        for label, (left, top, right, bottom), score in zip(
            each.labels, each.corners.tolist(), scores_of(each).tolist(), strict=True
        )
    ]


def check(found: Sequence[Elements], wanted: Sequence[Elements], labels: Sequence[str]) -> None:
    """Refuses sets that do not belong together, and labels that nobody knows."""
    if len(found) != len(wanted):
        raise SaccadeError(f"there are {len(found):,} sets of found elements for {len(wanted):,} wanted ones")
    if not wanted:
        raise SaccadeError("average precision needs one example at least; there is none")
    unknown = {label for each in (*found, *wanted) for label in each.labels} - {*labels}
    if unknown:
        raise SaccadeError(f"{min(unknown)!r} is none of the labels ({', '.join(labels)})")


def scores_of(found: Elements) -> NDArray[np.float64]:
    """How sure each found element is; refuses those of which nobody said it."""
    if found.scores is None or len(found.scores) != len(found.labels):
        raise SaccadeError("average precision sorts what was found by its scores: each found element needs one")
    return np.asarray(found.scores, np.float64)


def overlaps_of(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of places (n,2k) with others (m,2k): (n,m)."""
    axes = one.shape[1] // 2
    low = np.maximum(one[:, None, :axes], other[None, :, :axes])
    high = np.minimum(one[:, None, axes:], other[None, :, axes:])
    both = (high - low).clip(0).prod(2)
    sizes = [(each[:, axes:] - each[:, :axes]).prod(1) for each in (one, other)]
    found: NDArray[np.float64] = both / np.maximum(sizes[0][:, None] + sizes[1][None] - both, TINY)
    return found


def _ranked(
    found: Sequence[Elements], wanted: Sequence[Elements], labels: Sequence[str], overlaps: Sequence[float]
) -> dict[str, Ranked]:
    """What was found of each label in all examples."""
    numbers = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(wanted), len(labels)), np.int64)
    parts: list[tuple[Any, ...]] = []
    for place, (guessed, real) in enumerate(zip(found, wanted, strict=True)):
        own, there = (np.array([numbers[each] for each in some.labels], np.int64) for some in (guessed, real))
        counts[place] = np.bincount(there, minlength=len(labels))
        scores = scores_of(guessed)
        order = _most(own, scores)
        over = overlaps_of(guessed.corners[order], real.corners)
        over[own[order][:, None] != there] = -1
        parts.append((np.full(len(order), place), own[order], scores[order], _taken(over, overlaps)))
    example, label, score, right = (np.concatenate(each, -1) for each in zip(*parts, strict=True))
    ranked = {}
    for name, number in numbers.items():
        mine = np.flatnonzero(label == number)
        mine = mine[np.argsort(-score[mine], kind="stable")]
        ranked[name] = Ranked(example[mine], [np.flatnonzero(each) for each in right[:, mine]], counts[:, number])
    return ranked


def _most(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The found elements in the order of their scores, at most so many of each label."""
    order = np.argsort(-scores, kind="stable")
    if len(order) <= MOST:
        return order
    kept = [order[labels[order] == each][:MOST] for each in np.unique(labels)]
    return np.concatenate(kept)


def _taken(over: NDArray[np.float64], overlaps: Sequence[float]) -> NDArray[np.bool_]:
    """Which of the found (D) take a wanted element, (overlaps,D): the one that they lie over most and that is free, of
    equals the last.
    """
    least = np.minimum(np.asarray(overlaps), 1 - 1e-10)
    found, rows = np.zeros((len(least), len(over)), bool), np.arange(len(least))
    if not over.size:
        return found
    free = np.ones((len(least), over.shape[1]), bool)
    for each in np.flatnonzero(over.max(1) >= least.min()):
        left = np.where(free, over[each], -1)[:, ::-1]
        best = left.argmax(1)
        found[:, each] = left[rows, best] >= least
        free[rows, free.shape[1] - 1 - best] &= ~found[:, each]
    return found


def _places(name: str) -> slice:
    begin = OVERLAPS.index(SHOWN[name][0])
    return slice(begin, begin + len(SHOWN[name]))


def _overall(precision: NDArray[np.float64]) -> float:
    return float(precision.mean()) if precision.size else float("nan")


def _evaluated(found: Sequence[Elements], wanted: Sequence[Elements], labels: Sequence[str]) -> NDArray[np.float64]:
    """What pycocotools says: the precision at each overlap, recall and label, -1 of a label that is not wanted."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        raise SaccadeError(NEEDED) from None
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does
        truth = COCO()
        truth.dataset = _dataset(wanted, labels)
        truth.createIndex()
        guesses = coco_json(found, labels)
        evaluation = COCOeval(truth, truth.loadRes(guesses) if guesses else COCO(), "bbox")
        evaluation.params.imgIds = list(range(1, len(wanted) + 1))
        evaluation.params.catIds = list(range(1, len(labels) + 1))
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e15]], ["all"]
        evaluation.params.maxDets = [MOST]
        evaluation.evaluate()
        evaluation.accumulate()
    precision: NDArray[np.float64] = evaluation.eval["precision"][:, :, :, 0, 0]
    return precision


def _dataset(wanted: Sequence[Elements], labels: Sequence[str]) -> dict[str, Any]:
    """Wanted boxes in COCO's form."""
    sure = [each._replace(scores=np.ones(len(each.labels))) for each in wanted]
    marks = [
        {**each, "id": number, "iscrowd": 0, "area": each["bbox"][2] * each["bbox"][3]}
        for number, each in enumerate(coco_json(sure, labels), 1)
    ]
    categories = [{"id": number, "name": label} for number, label in enumerate(labels, 1)]
    return {
        "images": [{"id": number} for number in range(1, len(wanted) + 1)],
        "annotations": marks,
        "categories": categories,
    }
