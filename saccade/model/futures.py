"""`futures(count, steps)`: several ways on for every agent, and how likely each is (Ngiam et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.norm import NORMS


class futures(nn.Module):
    """x (B,N,C) -> (B,N,K(1+SD)): W f(W_1 norm(x)); of each of K futures its score, then S places in D axes."""

    reads, pooled = "last", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, count: int = 20, steps: int = 12, axes: int = 2, *, config: ModelConfig) -> None:
        super().__init__()
        if not all(isinstance(each, int) and each >= 1 for each in (count, steps, axes)):
            raise SaccadeError(f"futures: count, steps and axes are whole numbers from 1; got {count}, {steps}, {axes}")
        self.norm = NORMS[config.norm](config.width, config.epsilon)
        self.inner = nn.Linear(config.width, 2 * config.width)
        self.out = nn.Linear(2 * config.width, count * (1 + steps * axes))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.gelu(self.inner(self.norm(x))))


def parted(said: Tensor, count: int, axes: int) -> tuple[Tensor, Tensor]:
    """The output of the head as log-probabilities (B,N,K) and places (B,N,K,S,D), never in less than float32."""
    said = said if said.dtype == torch.float64 else said.float()
    rows = said.unflatten(2, (count, -1))
    return rows[..., 0].log_softmax(2), rows[..., 1:].unflatten(3, (-1, axes))
