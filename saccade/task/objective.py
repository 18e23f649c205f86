"""Objectives: what is learned beside the likelihood, or from changed examples; `train.objective` names one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from saccade import spec
from saccade.field.field import Term
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.task.batch import Batch
from saccade.task.inputs import Task
from saccade.task.mixup import mixup
from saccade.task.pair import Pair
from saccade.task.reward import reward


class Objective(Protocol):
    """What is learned in training alone."""

    judged: str | None  # the metric by which the best checkpoint is chosen, more of it is better; None: the loss

    @staticmethod
    def fits(pair: Pair, **given: Any) -> None:
        """Refuses a pair that it cannot be used for, and arguments out of range."""

    def change(self, x: Mapping[str, Input], y: Input, draw: np.random.Generator) -> tuple[Mapping[str, Input], Input]:
        """What is learned from in place of these examples. draw: random numbers of (seed, epoch, position)."""

    def terms(self, model: Model, batch: Batch, found: dict[str, Term]) -> dict[str, Term]:
        """The terms of the loss, its own included. found: those of the likelihood."""

    def measure(self, model: Model, rows: Sequence[Sequence[Any]]) -> dict[str, float]:
        """Its metric (`judged`), where it has one, on rows of the validation split."""


def check(text: str, pair: Pair) -> None:
    """Refuses an objective that a pair cannot have, before anything is read."""
    name, given = spec.arguments(text, OBJECTIVES, "objective")
    if name in OBJECTIVES:  # one that the caller gave (`spec.knowing`) has no `fits`
        OBJECTIVES[name].fits(pair, **given)


def objective_of(text: str, task: Task) -> Objective:
    """The objective that a spec names, for a task."""
    made: Objective = spec.read(text, OBJECTIVES, "objective", task=task)
    return made


OBJECTIVES: dict[str, Any] = {"reward": reward, "mixup": mixup}
