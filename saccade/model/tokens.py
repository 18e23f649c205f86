"""`tokens`: a vector a token of a vocabulary, the embedding of texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.input import value_of


class tokens(nn.Module):
    """A vector a token: table[token] (times sqrt(C)). tokens (B,T) -> (B,T,C)."""

    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the tokens in another order",
        "shift": "the tokens behind others",
        "causality": "other tokens behind the first half",
    }
    breaks: ClassVar[Mapping[str, str]] = {}
    weight: Tensor  # (V,C)
    scale: Tensor | None  # (V,), where the table shares a quantised head's integers

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        std = config.width**-0.5 if config.scale_embedding else 0.02
        self.weight = normal(vocab_of(config), config.width, std=std)
        self.register_buffer("scale", None)
        self.factor = math.sqrt(config.width) if config.scale_embedding else 1.0

    @property
    def table(self) -> Tensor:
        """A vector for each token of the vocabulary, (V,C)."""
        return self.weight

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        given = value_of(values, "tokens")
        if given.dim() != 2 or given.dtype not in (torch.int64, torch.int32):
            raise SaccadeError(f"tokens are whole numbers (batch, length); got {given.dtype} {tuple(given.shape)}")
        x = rows_of(self.weight, given, "token", "vocabulary")
        x = x if self.scale is None else x * F.embedding(given, self.scale.unsqueeze(1))
        return x if self.factor == 1 else x * self.factor

    def counted(self, lengths: Tensor) -> Tensor:
        """A vector a token."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Tokens at random."""
        shape = rows, length
        return {"tokens": torch.randint(self.weight.shape[0], shape, generator=generator, device=device)}

    def share(self, weight: Tensor, scale: Tensor) -> None:
        """From now on reads the integers (V,C) of a quantised head, with a scale (V,) for each row."""
        del self.weight
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)


def vocab_of(config: ModelConfig) -> int:
    """The size of the vocabulary; refuses a configuration without one."""
    if not config.vocab:
        raise SaccadeError("a model needs its vocab, the number of tokens; only a recipe may leave it to its data")
    return config.vocab


def rows_of(table: Tensor, numbers: Tensor, what: str, among: str) -> Tensor:
    """The rows of a table; refuses a number that it has no row for."""
    try:
        return F.embedding(numbers, table)
    except IndexError:
        known = table.shape[0]
        raise SaccadeError(f"a {what} lies outside the {among} of {known}: {what}s are 0 ... {known - 1}") from None
