"""From tokens to vectors: the token's, its position's and its segment's."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.attend.position import as_position, on_input
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout
from saccade.model.norm import NORMS


class Embed(nn.Module):
    """tokens (B,T) -> (B,T,C): table[token] (times sqrt(C)) + position + segment, then a norm where BERT has one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        std = config.width**-0.5 if config.scale_embedding else 0.02
        self.tokens = nn.Embedding.from_pretrained(normal(config.vocab, config.width, std=std), freeze=False)
        self.position = as_position(config.position, input_width=config.width) if on_input(config.position) else None
        kinds = normal(config.segments, config.width) if config.segments else None
        self.segments = None if kinds is None else nn.Embedding.from_pretrained(kinds, freeze=False)
        self.norm = NORMS[config.norm](config.width, config.epsilon) if config.norm_embedding else None
        self.factor = math.sqrt(config.width) if config.scale_embedding else 1.0
        self.offset, self.dropout = config.offset, config.dropout

    def forward(self, tokens: Tensor, start: int | Tensor = 0, segments: Tensor | None = None) -> Tensor:
        """start: the position of tokens[:, 0], or all positions (B,T)."""
        if tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
            raise SaccadeError(f"tokens are whole numbers (batch, length); got {tokens.dtype} {tuple(tokens.shape)}")
        x = _rows(self.tokens, tokens, "token", "vocabulary")
        x = x if self.factor == 1 else x * self.factor
        if self.position is not None:
            x = self.position.on_input(x, start + self.offset)
        if self.segments is not None:
            x = x + (
                self.segments.weight[0] if segments is None else _rows(self.segments, segments, "segment", "kinds")
            )
        x = x if self.norm is None else self.norm(x)
        return dropout(x, self.dropout, self.training)


def _rows(table: nn.Embedding, numbers: Tensor, what: str, among: str) -> Tensor:
    """The rows of a table; a number that it does not have is told."""
    try:
        return table(numbers)
    except IndexError:
        known = table.num_embeddings
        raise SaccadeError(f"a {what} lies outside the {among} of {known}: {what}s are 0 ... {known - 1}") from None
