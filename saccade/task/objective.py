"""Objectives: what is learned beside the likelihood, named in a recipe (`train.objective`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from saccade import spec
from saccade.field.field import Term
from saccade.model.model import Model
from saccade.task.batch import Batch
from saccade.task.inputs import Task
from saccade.task.pair import Pair
from saccade.task.reward import reward


class Objective(Protocol):
    """A further aim of learning."""

    judged: str  # the metric by which the best checkpoint is chosen; more of it is better

    @staticmethod
    def fits(pair: Pair, **given: Any) -> None:
        """Refuses a pair that it is no aim of, and arguments that mean nothing."""

    def terms(self, model: Model, batch: Batch, found: dict[str, Term]) -> dict[str, Term]:
        """The terms of the loss, with its own."""

    def measure(self, model: Model, rows: Sequence[Sequence[Any]]) -> dict[str, float]:
        """How far it is reached, on rows of the validation split."""


def check(text: str, pair: Pair) -> None:
    """Refuses an objective that a pair cannot have, before anything is read."""
    name, given = spec.arguments(text, OBJECTIVES, "objective")
    if name in OBJECTIVES:  # not one that was brought along
        OBJECTIVES[name].fits(pair, **given)


def objective_of(text: str, task: Task) -> Objective:
    """An objective from its spec, for a task."""
    made: Objective = spec.read(text, OBJECTIVES, "objective", task=task)
    return made


OBJECTIVES: dict[str, Any] = {"reward": reward}
