"""An answer for each place of X, or each pair of places: one pass, and the labels of nodes or the numbers of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from saccade.field.field import PlacesTarget
from saccade.field.result import Result
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answers.one_pass import OnePass
from saccade.task.batch import run
from saccade.task.inputs import Task


class PlacesAnswer(OnePass):
    """The field's result of the head's output at every real place."""

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(PlacesTarget, task.target)

    def answered(self, model: Model, x: dict[str, Input], raws: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        states = run(model, x, None)
        scores, padding = model.say(states), states.padding
        T = scores.shape[1]
        lengths = [T] * len(raws) if padding is None else padding.held(T, scores.device).expand(len(raws)).tolist()
        return self.y.results(self.y.placed(scores, x), lengths)
