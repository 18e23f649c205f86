"""The symmetries of a run, on examples of its own data: of its model and its parts, and of what its fields can move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from saccade.error import SaccadeError
from saccade.learn.corpora import supply_of
from saccade.look.shown import Shown, shown
from saccade.model.input import Input
from saccade.model.move import Symmetry, apart
from saccade.model.symmetry import largest, symmetries
from saccade.store.run import Run

TRIED = 40  # rows that are read for each example that is wanted: some are empty, or too long


def symmetries_of(run: Run, count: int = 3, seed: int = 0) -> tuple[list[Symmetry], int]:
    """What the run's model and its parts keep on so many held-out examples, the largest error of any; and of how many.
    Where there are no data, of an input at random: 0 examples.
    """
    if run.quantised is not None:
        raise SaccadeError("the weights are quantised, whose rounding hides what is asked: check the run without it")
    rows = [*_rows(run)]
    examples = [*islice(((row, each) for row in rows if (each := _shown(run, row)) is not None), count)]
    if not examples:
        return symmetries(run.model, seed=seed), 0
    found = [
        symmetries(run.model, each.example.x or None, _target(each), seed + n) for n, (_, each) in enumerate(examples)
    ]
    turned = [[*_turned(run, row, each, np.random.default_rng(seed + n))] for n, (row, each) in enumerate(examples)]
    return largest([*map(list, map(_both, found, turned))]), len(examples)


def words_of(run: Run) -> dict[str, str]:
    """What its fields do with a raw thing, by the symmetry's name."""
    return {name: motion.told for field in run.task.x.values() for name, motion in field.motions.items()}


def _both(found: list[Symmetry], turned: list[Symmetry]) -> list[Symmetry]:
    return found + turned


def _rows(run: Run) -> Iterator[Sequence[Any]]:
    """Held-out rows, where the data are there."""
    if run.recipe is None or run.task.y is None:
        return
    try:
        supply = supply_of(run, run.recipe)
        yield from islice(supply.rows(supply.splits[-1]), TRIED)
    except SaccadeError:
        return


def _shown(run: Run, row: Sequence[Any]) -> Shown | None:
    """What the model is shown of a row; None: it cannot be answered."""
    task = run.task
    written = row[-1] if task.x and task.answer.writes and isinstance(row[-1], str) else None
    try:
        raw = task.glimpse([row]) if not task.x else task.inputs(row)
        example = task.answer.example(run.model, raw, run.decode(), target=written)
        seen = shown(task, example, run.model.config.join)
        seen.fits(run.model)
    except SaccadeError:
        return None
    return seen


def _target(seen: Shown) -> Input | None:
    """What the decoder reads."""
    return None if seen.target is None else Input({"tokens": torch.tensor([seen.target])})


def _turned(run: Run, row: Sequence[Any], seen: Shown, random: np.random.Generator) -> Iterator[Symmetry]:
    """What the fields can do with a raw thing so that the answer stays: rotations of points in space."""
    before = None
    for number, (name, field) in enumerate(run.task.x.items()):
        for symmetry, motion in field.motions.items():
            moved = [*row]
            moved[number] = motion.apply(row[number], random)
            after = _shown(run, moved)
            before = _said(run, seen) if before is None else before
            error = None if after is None else apart(before, _said(run, after))
            yield Symmetry("model", f"{name} to the answer", symmetry, motion.because, error, 1, motion.tolerance)


@torch.no_grad()
def _said(run: Run, seen: Shown) -> torch.Tensor:
    """What the model says, with its head where it has one."""
    return run.model.eval().say(seen.states(run.model))
