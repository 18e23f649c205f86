"""An answer that the head gives at once, from a pooled state: the likeliest label, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from saccade.field.field import PooledTarget
from saccade.field.result import Result
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answers.one_pass import OnePass
from saccade.task.batch import run
from saccade.task.inputs import Task


class PooledAnswer(OnePass):
    """The field's result of the head's output, for each input."""

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(PooledTarget, task.y)

    def answered(self, model: Model, x: dict[str, Input], raws: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        return self.y.results(model.say(run(model, x, None)))
