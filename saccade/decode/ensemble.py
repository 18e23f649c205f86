"""`Ensemble`: several models that write one sequence together; their probabilities are averaged at every step.

The usual members are trainings that differ in their seed alone (Sutskever et al. 2014). They must share a vocabulary;
all else may differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from saccade.decode.step import Stepper, as_stepper
from saccade.error import SaccadeError
from saccade.model.model import Model


class Ensemble:
    """A stepper whose logits are the logarithm of the mean probability."""

    def __init__(self, models: Iterable[Model | Stepper]) -> None:
        self.steppers = [as_stepper(each) for each in models]
        if not self.steppers:
            raise SaccadeError("an ensemble has one model at least")
        vocabs = sorted({each.vocab for each in self.steppers})
        if len(vocabs) > 1:
            raise SaccadeError(f"the models of an ensemble share one vocabulary; these have {vocabs} tokens")
        self.vocab = vocabs[0]
        limits = [each.limit for each in self.steppers if each.limit is not None]
        self.limit = min(limits) if limits else None

    def start(self, prompts: list[list[int]], sources: list[Any] | None = None) -> tuple[list[Any], Tensor]:
        states, logits = zip(*(each.start(prompts, sources) for each in self.steppers), strict=True)
        return list(states), _mean(logits)

    def check(self, source: Any, number: int = 0) -> Any:
        """Refuses a source that one of the models does not take."""
        first, *_ = [each.check(source, number) for each in self.steppers]
        return first

    def step(self, tokens: Tensor, state: list[Any]) -> Tensor:
        return _mean([each.step(tokens, own) for each, own in zip(self.steppers, state, strict=True)])

    def parts(self, tokens: Tensor, state: list[Any]) -> Iterator[Tensor]:
        yield self.step(tokens, state)[:, -1]

    def reorder(self, state: list[Any], rows: Tensor) -> None:
        for each, own in zip(self.steppers, state, strict=True):
            each.reorder(own, rows)

    def join(self, state: list[Any], other: list[Any]) -> None:
        for each, own, new in zip(self.steppers, state, other, strict=True):
            each.join(own, new)

    def take(self, state: list[Any], rows: Tensor) -> list[Any]:
        return [each.take(own, rows) for each, own in zip(self.steppers, state, strict=True)]

    def forget(self, state: list[Any], tokens: Tensor) -> None:
        for each, own in zip(self.steppers, state, strict=True):
            each.forget(own, tokens)


def _mean(logits: Iterable[Tensor]) -> Tensor:
    """log mean_m softmax(logits_m)."""
    logprobs = torch.stack([(each if each.dtype is torch.float64 else each.float()).log_softmax(-1) for each in logits])
    return logprobs.logsumexp(0) - math.log(len(logprobs))
