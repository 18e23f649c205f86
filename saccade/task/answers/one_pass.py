"""Answers that a model gives at once: one pass for each input, and no search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from saccade.error import SaccadeError
from saccade.field.result import Result
from saccade.model.dropout import evaluating
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answer import Ask, FieldScored, read_one, refusal, with_notes
from saccade.task.example import Example
from saccade.task.inputs import Inputs, Task

TOGETHER = 64  # inputs that a model reads at a time
ENCODED = 1024  # inputs that are held as arrays at a time


class OnePass(FieldScored):
    """What such answers share; how the outputs of a pass become results is `answered`."""

    writes = False
    task: Task

    @abstractmethod
    def answered(self, model: Model, x: dict[str, Input], raws: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """The results of some inputs: x as the model reads them, raws as they were given."""

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """A result for each input."""
        self.task.target  # noqa: B018  refuses a task without a Y
        portions = (inputs[begin : begin + ENCODED] for begin in range(0, len(inputs), ENCODED))
        return [
            result for portion in portions for result in self.results(model, Inputs(self.task, model, portion), decode)
        ]

    def results(self, model: Model, read: Inputs, decode: DecodeConfig) -> list[Result]:
        """The same for inputs that are encoded already."""
        results: dict[int, Result] = {}
        with torch.inference_mode(), evaluating(model):
            for begin in range(0, len(read.fit), TOGETHER):
                numbers = read.fit[begin : begin + TOGETHER]
                x = {name: each.to(model.device) for name, each in read.collated(numbers).items()}
                said = self.answered(model, x, [read.raws[number] for number in numbers], decode)
                noted = [each._replace(note=each.note or read.remark(n)) for n, each in zip(numbers, said, strict=True)]
                results.update(zip(numbers, noted, strict=True))
        return with_notes(read.notes, results)

    def stream(self, model: Model, raw: Any, decode: DecodeConfig) -> Iterator[str]:
        """The result, which comes all at once."""
        (result,) = self.predict(model, [raw], decode)
        if result.value is None and result.note is not None:
            raise refusal(self.task, result.note)
        yield result.text

    def asks(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Ask]:
        raise SaccadeError(f"{self.task.verb} writes no text")

    def example(
        self, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The input, and nothing written."""
        if target is not None or adds:
            raise SaccadeError("an encoder alone writes nothing: give an input without a target")
        return Example(read_one(self.task, model, raw).collated([0]), [], [], False)
