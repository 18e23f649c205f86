"""The nearest neighbour as a baseline: the wanted output of that training example whose inputs are the least apart
(Cover and Hart 1967). The fields of X say how far apart two examples are, and Y what it gives as an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from saccade.data.fresh import Examples
from saccade.field.field import Source, Taken
from saccade.field.result import Result
from saccade.model.model import Model
from saccade.task.inputs import Inputs
from saccade.task.task import Task

VALUES = 1 << 24  # numbers (pixels, tokens) that are compared at a time on either side


def neighbour(task: Task, model: Model, rows: Sequence[Sequence[Any]], train: Callable[[], Examples]) -> dict[str, Any]:
    """The scores of the nearest training example's output as the answer, and `what` it is; empty where Y cannot copy
    an output, or no X knows a distance.
    """
    if not task.x or not task.target.copies or not any(each.compares for each in task.x.values()):
        return {}
    read = Inputs(task, model, [task.inputs(row) for row in rows])
    if not read.fit:
        return {}
    known = train()
    numbers = nearest(task, read, known)
    wanted = [row[-1] for row in rows]
    found = task.target.copied(known.column(task.name), numbers, [wanted[each] for each in read.fit])
    copied = dict(zip(read.fit, found, strict=True))
    results = [copied.get(number, Result(None, "", 0.0)) for number in range(len(rows))]
    tallies, shown = task.target.tallies(results, wanted), task.target.meaningful(wanted)
    noun = next(each.noun for each in task.x.values() if each.compares)
    return {"what": f"that of the nearest training {noun}", **{name: tallies[name].value for name in shown}}


def nearest(task: Task, read: Inputs, known: Examples) -> np.ndarray:
    """The number of the nearest training example for each input that fits; of equally near ones, the first."""
    comparing = {name: field for name, field in task.x.items() if field.compares}
    one = [read.taken(name, read.fit[:1]) for name in comparing]
    step = max(1, VALUES // max(1, sum(np.size(each) for taken in one for each in taken.values())))
    blocks = [np.arange(first, min(first + step, len(known))) for first in range(0, len(known), step)]
    found = []
    for begin in range(0, len(read.fit), step):
        asked = {name: read.taken(name, read.fit[begin : begin + step]) for name in comparing}
        apart = [_apart(comparing, asked, known, block) for block in blocks]
        found.append(np.concatenate(apart, 1).argmin(1))
    return np.concatenate(found)


def _apart(
    comparing: Mapping[str, Source], asked: Mapping[str, Taken], known: Examples, block: np.ndarray
) -> np.ndarray:
    """How far inputs are from a block of training examples, summed over those that compare, (n,m)."""
    each = (field.distances(asked[name], known.column(name).take(block)) for name, field in comparing.items())
    return reduce(np.add, each)
