"""What is measured beside a run that reads several inputs: the commonest output to each last input (a question without
its picture), and the metrics of each kind of example by itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from saccade.data.corpus import Corpus
from saccade.data.fresh import Examples
from saccade.field.field import Column, Target
from saccade.field.result import Result
from saccade.field.tally import intervals
from saccade.task.task import Task


def commonest(task: Task, learned: Callable[[], Examples], corpus: Corpus, count: int) -> list[Result] | None:
    """For each of `count` rows, the output that stands most often beside its last input among the training rows; the
    commonest of all beside one that they do not have. None: of one input, or of outputs that do not come again, or
    where the corpus left rows out.
    """
    if len(task.x) < 2 or len(corpus) != count or task.target.told(corpus.column(task.name).take([0])) is None:
        return None
    train, asked = learned(), list(task.x)[-1]
    every, by_input = Counter[int](), defaultdict[Hashable, Counter[int]](Counter)
    outputs, first = _keys(train.column(task.name)), dict[Hashable, int]()
    for number, (given, wanted) in enumerate(zip(_keys(train.column(asked)), outputs, strict=True)):
        example = first.setdefault(wanted, number)
        every[example] += 1
        by_input[given][example] += 1
    chosen = [by_input.get(each, every).most_common(1)[0][0] for each in _keys(corpus.column(asked))]
    return task.target.told(train.column(task.name).take(chosen))


def by_kind(
    target: Target,
    kinds: Sequence[str | None],
    raws: Sequence[Any],
    results: Sequence[Result],
    usual: Sequence[Result] | None,
) -> dict[str, Any]:
    """Under `kinds`, for each kind of example how many there are, their metrics with intervals, and the metrics of the
    commonest outputs; nothing where the data know of no kinds.
    """
    found: dict[str, Any] = {}
    for kind in sorted({each for each in kinds if each is not None}):
        numbers = [number for number, each in enumerate(kinds) if each == kind]
        wanted, said = [raws[n] for n in numbers], [results[n] for n in numbers]
        every = target.tallies(said, wanted)
        tallies = {name: every[name] for name in target.meaningful(wanted)}
        baseline = {} if usual is None else {"baseline": scores(target, [usual[n] for n in numbers], wanted)}
        metrics = {name: each.value for name, each in tallies.items()}
        found[kind] = {"examples": len(numbers), **metrics, "interval": intervals(tallies), **baseline}
    return {"kinds": found} if found else {}


def scores(target: Target, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, float]:
    """The metrics of results that mean something for these outputs."""
    every = target.tallies(results, raws)
    return {name: every[name].value for name in target.meaningful(raws)}


def _keys(column: Column) -> list[Hashable]:
    """Of every example something that is equal for equal ones."""
    taken = column.take(np.arange(len(column.lengths())))
    rows = zip(*taken.values(), strict=True)
    return [tuple(np.asarray(each).tobytes() for each in row) for row in rows]
