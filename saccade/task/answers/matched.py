"""A set of elements as the answer: one pass, and what each query of the decoder found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from saccade.field.elements.target import ElementsTarget
from saccade.field.result import Result
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answer import Judgement
from saccade.task.answers.one_pass import OnePass
from saccade.task.batch import run
from saccade.task.inputs import Task


class MatchedAnswer(OnePass):
    """The field's elements, in the units of each input; those that are less sure than a threshold are left out."""

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(ElementsTarget, task.target)
        self.name, self.x = next(iter(task.x.items()))

    def answered(self, model: Model, x: dict[str, Input], raws: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        own = [each[self.name] for each in raws] if len(x) > 1 else raws
        threshold = self.y.config.threshold if decode.threshold is None else decode.threshold
        told = self.y.told_of(model, run(model, x, None))
        return self.y.results(told, [self.x.bounds(each) for each in own], threshold)

    def judge(self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig) -> Judgement:
        """Where a metric goes along the scores, it is of all that was found, however unsure."""
        return super().judge(model, rows, self._measured(decode))

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        found, samples = super().quick(model, rows, self._measured(decode))
        shown = self.predict(model, [raw for raw, _ in samples], decode)
        return found, [(raw, each.text) for (raw, _), each in zip(samples, shown, strict=True)]

    def _measured(self, decode: DecodeConfig) -> DecodeConfig:
        return decode.model_copy(update={"threshold": 0.0}) if self.y.ranked else decode
