"""Mixup (Zhang et al. 2018): examples are learned from in pairs, each pair blended into one.

    x = l x_i + (1 - l) x_j        the loss is l times that of y_i and 1 - l times that of y_j        l ~ Beta(a, a)

Each example of a batch has an l of its own, where the paper draws one for the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from saccade.error import SaccadeError
from saccade.field.field import Term
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.task.batch import Batch
from saccade.task.inputs import Task
from saccade.task.pair import Pair


class mixup:
    """Each example is blended with another of its batch; the smaller `alpha`, the more of one of both is left."""

    judged = None

    def __init__(self, alpha: float = 0.2, *, task: Task) -> None:
        self.task, self.alpha = task, alpha

    @staticmethod
    def fits(pair: Pair, alpha: Any = 0.2) -> None:
        """Refuses a number out of range, and kinds that cannot be blended."""
        if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not alpha > 0:
            raise SaccadeError(f"mixup(alpha) has an alpha above 0; got {alpha}")
        for part in pair.parts.values():
            if not part.kind.blends:
                raise SaccadeError(
                    f"train.objective = 'mixup' blends two examples into one, and with {part.kind.kind} that cannot "
                    "be done: leave it out"
                )

    def change(self, x: Mapping[str, Input], y: Input, draw: np.random.Generator) -> tuple[Mapping[str, Input], Input]:
        """Each example blended with the one that a random order puts in its place."""
        other = torch.from_numpy(draw.permutation(y.rows))
        share = torch.from_numpy(draw.beta(self.alpha, self.alpha, y.rows)).float()
        blended = {name: self.task.x[name].blended(each, other, share) for name, each in x.items()}
        return blended, self.task.target.blended(y, other, share)

    def terms(self, model: Model, batch: Batch, found: dict[str, Term]) -> dict[str, Term]:
        """Those of the likelihood: Y's own loss knows what was blended."""
        return found

    def measure(self, model: Model, rows: Sequence[Sequence[Any]]) -> dict[str, float]:
        return {}
