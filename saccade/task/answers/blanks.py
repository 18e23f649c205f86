"""A text whose blanks are filled: one pass, and the likeliest words at each blank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from saccade.field.result import Result
from saccade.field.text.blanks import Blanks
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answers.one_pass import OnePass
from saccade.task.batch import run
from saccade.task.inputs import Task


class FilledAnswer(OnePass):
    """Each text with its blanks filled, each blank by itself; a text without one gets a note instead."""

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(Blanks, task.target)

    def answered(self, model: Model, x: dict[str, Input], raws: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        rows, places = self.y.places(next(iter(x.values()))).T
        scores = model.answer(run(model, x, None).last[rows, places][None])[0]  # (blanks of all rows, V)
        found = []
        for row, raw in enumerate(raws):
            own = scores[rows == row]
            found.append(self.y.results(own, raw) if len(own) else Result(None, "", 0.0, self.y.missing))
        return found
