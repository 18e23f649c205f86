"""A training that fits into `train.minutes`: a few real steps are timed, and then the number of steps is fixed.

The steps are those of a run in a folder that vanishes, on a copy of the model, so the run itself begins as if there had
been none. What is decided stands in the run's recipe: going on measures nothing.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from rich.console import Console

from saccade.error import SaccadeError
from saccade.learn.loop import Loop
from saccade.learn.prepare import Prepared, Say, prepare
from saccade.learn.progress import MetricsLog, Progress
from saccade.learn.scale import by_data
from saccade.recipe import Recipe, TrainConfig
from saccade.recipes.read import at_size
from saccade.store.run import Run

MARGIN = 0.95  # of the time that is left is planned for: checkpoints take some, and steps differ
VALIDATING = 0.25  # of it may go into validations
TIMED = 0.03  # of it goes into measuring, about
FEWEST = 3  # steps that are timed in any case; the first does not count
ENOUGH = 0.5  # of the steps of a size: if there is no time for so many, a smaller size is better

clock: Callable[[], float] = time.perf_counter


class Pace(NamedTuple):
    """Seconds of a step, and of a validation."""

    step: float
    validation: float


class Course(NamedTuple):
    """What the recipe of the run says then."""

    steps: int
    warmup: int
    every: int


def course(train: TrainConfig, pace: Pace, seconds: float) -> Course:
    """As many steps as there is time for, never more than the recipe's, with its warm-up and its validations in
    proportion: steps = (time - validations x their seconds) / seconds of a step.
    """
    seconds *= MARGIN
    usual = math.ceil(train.steps / train.every)
    affordable = usual if not pace.validation else int(VALIDATING * seconds / pace.validation)
    validations = max(1, min(usual, affordable))
    steps = int((seconds - validations * pace.validation) / pace.step)
    if steps < 1:
        raise SaccadeError(
            f"there is no time for one step: it takes {pace.step:.2g} s, a validation {pace.validation:.2g} s, and "
            f"{max(seconds, 0):.2g} s are left: give more minutes"
        )
    if steps >= train.steps:
        return Course(train.steps, train.warmup, train.every * math.ceil(usual / validations))
    return Course(steps, round(train.warmup * steps / train.steps), math.ceil(steps / validations))


def within_minutes(recipe: Recipe, begun: float, say: Say) -> Prepared:
    """The parts of a run that ends `train.minutes` after `begun`: at the size for its data or, where there is no time
    for half of that size's steps, at the next smaller one, down to the smallest.
    """
    minutes, names = recipe.train.minutes, by_data(recipe, say)
    assert minutes is not None
    for name in names:
        prepared = prepare(at_size(recipe, name), say)
        train = _recipe(prepared).train
        with _trial(prepared) as (loop, metrics):
            left = minutes * 60 - (clock() - begun)
            step = _seconds_of_a_step(loop, metrics, TIMED * left)
            if name != names[-1] and MARGIN * left / step < ENOUGH * train.steps:
                slow = f"{step:.2g} s a step are too slow for {train.steps:,} steps"
                say(f"{minutes:g} minutes: {slow}; now the next smaller size")
                continue
            pace = Pace(step, _seconds_of(lambda: loop.validate(metrics)))
            found = course(train, pace, minutes * 60 - (clock() - begun))
        say(f"{minutes:g} minutes: {step:.2g} s a step, so {_share(found.steps, train.steps)} steps")
        return _fixed(prepared, found)
    raise AssertionError("the smallest size is always taken")


def _seconds_of_a_step(loop: Loop, metrics: MetricsLog, seconds: float) -> float:
    """The median over steps that take so many seconds together; the first, which also warms up, is left out."""
    batches, took = loop.batches(), list[float]()
    while len(took) < FEWEST or sum(took) < seconds:
        took.append(_seconds_of(lambda: loop.advance(batches, metrics)))
    return statistics.median(took[1:])


def _seconds_of(work: Callable[[], None]) -> float:
    begin = clock()
    work()
    return clock() - begin


@contextmanager
def _trial(prepared: Prepared) -> Iterator[tuple[Loop, MetricsLog]]:
    """A loop on a copy of the model, and its metrics, in a folder that vanishes; random numbers are then as before."""
    run = prepared.run
    twin = Run(copy.deepcopy(run.model), recipe=run.recipe, files=run.files, task=run.task)
    with TemporaryDirectory() as folder, torch.random.fork_rng(devices=()):
        metrics = MetricsLog(Path(folder), -1)
        try:
            quiet = Progress(Console(quiet=True), _recipe(prepared).train.steps)
            yield Loop(prepared._replace(run=twin), Path(folder), quiet), metrics
        finally:
            metrics.close()


def _fixed(prepared: Prepared, found: Course) -> Prepared:
    """The same parts, whose recipe has these steps and no minutes."""
    recipe = _recipe(prepared)
    train = recipe.train.model_copy(update={**found._asdict(), "minutes": None})
    prepared.run.recipe = recipe.model_copy(update={"train": train})
    return prepared


def _recipe(prepared: Prepared) -> Recipe:
    assert prepared.run.recipe is not None
    return prepared.run.recipe


def _share(steps: int, usual: int) -> str:
    return f"all {usual:,}" if steps == usual else f"{steps:,} of {usual:,}"
