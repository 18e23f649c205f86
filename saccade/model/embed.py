"""From what is read to vectors: those of the values, and of their positions and segments.

`EMBEDS` names what turns an Input's values into vectors, as `HEADS` names what turns states into answers. An entry is a
module made with `config`; it

    forward(values)                       gives the vectors (B,T,C) of the named tensors that it knows
    counted(lengths)                      says how many vectors so many values become, (B,) -> (B,)
    sample(rows, length, ...)             draws values that become `length` vectors, to try a model out
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.attend.mask import padding
from saccade.attend.numbers import dtype
from saccade.attend.position import as_position, learned, on_input
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout
from saccade.model.input import Input, as_input
from saccade.model.norm import NORMS
from saccade.model.patches import patches
from saccade.model.tokens import rows_of, tokens


class Embedded(NamedTuple):
    """Vectors (B,T,C) as a stack takes them, their padding, their places, and the segments (B,T) they belong to."""

    vectors: Tensor
    padding: padding | None = None
    places: Tensor | None = None
    segments: Tensor | None = None


class Embed(nn.Module):
    """An entry of `EMBEDS`, by whose name it is called here, + position + segment, then a norm where BERT has one."""

    def __init__(self, config: ModelConfig, text: str = "tokens") -> None:
        super().__init__()
        self.name, _ = spec.arguments(text, EMBEDS, "embed")
        self.add_module(self.name, spec.read(text, EMBEDS, "embed", config=config))
        self.position = as_position(config.position, input_width=config.width) if on_input(config.position) else None
        kinds = normal(config.segments, config.width) if config.segments else None
        self.segments = None if kinds is None else nn.Embedding.from_pretrained(kinds, freeze=False)
        self.norm = NORMS[config.norm](config.width, config.epsilon) if config.norm_embedding else None
        self.offset, self.dropout = config.offset, config.dropout

    @property
    def part(self) -> Any:
        """What makes vectors of values."""
        return getattr(self, self.name)

    @property
    def table(self) -> Tensor | None:
        """A vector for each token of the vocabulary (V,C), where it has them."""
        return getattr(self.part, "table", None)

    @property
    def room(self) -> int | None:
        """How many positions there are; None: as many as one likes."""
        return self.position.weight.shape[0] - self.offset if isinstance(self.position, learned) else None

    def forward(self, values: Mapping[str, Tensor], start: int | Tensor = 0, mask: padding | None = None) -> Tensor:
        """start: the position of the first vector, or all positions (B,T). mask: where padding stands on the left,
        positions count from the first real vector; what stands before it is at 0 and never looked at.
        """
        x = self.part(values)
        if self.position is not None:
            start = start if mask is None or mask.side == "right" else _counted(x, mask)
            x = self.position.on_input(x, start + self.offset)
        if self.segments is not None:
            x = x + self._segment(values.get("segments"), x)
        x = x if self.norm is None else self.norm(x)
        return dropout(x, self.dropout, self.training)

    def read(self, x: Input | Tensor) -> Embedded:
        """The vectors of an input, and what a stack must know of them."""
        x = as_input(x)
        mask = padding(self.part.counted(x.lengths[0]), x.side) if x.lengths else None
        vectors = self(x.values, 0 if x.places is None else x.places, mask)
        return Embedded(vectors, mask, x.places, x.values.get("segments"))

    def sample(self, rows: int, length: int, **how: Any) -> Input:
        """An input at random of `length` vectors a row."""
        return Input(self.part.sample(rows, length, **how))

    def _segment(self, segments: Tensor | None, x: Tensor) -> Tensor:
        """The vectors of segments (B,T); without any, that of the first."""
        assert self.segments is not None
        if segments is None:
            return self.segments.weight[0]
        belongs(segments, x)
        return rows_of(self.segments.weight, segments, "segment", "kinds")


def embedded_alike(one: ModelConfig, other: ModelConfig) -> bool:
    """Whether two stacks read by one embedding: all that it is made of is the same."""
    keys = ("embed", "vocab", "width", "segments", "scale_embedding", "norm_embedding")
    places = [(each.position, each.offset) if on_input(each.position) else None for each in (one, other)]
    return places[0] == places[1] and all(getattr(one, key) == getattr(other, key) for key in keys)


def belongs(segments: Tensor, x: Tensor) -> None:
    """Refuses segments that are not one a vector of x (B,T,C)."""
    if segments.shape != x.shape[:2] or segments.is_floating_point():
        raise SaccadeError(
            f"segments are whole numbers, one a token; got {dtype(segments)} {tuple(segments.shape)} for tokens "
            f"{tuple(x.shape[:2])}"
        )


def _counted(x: Tensor, mask: padding) -> Tensor:
    """The positions (B,T) of x (B,T,C) behind its padding."""
    pads = x.shape[1] - mask.held(x.shape[1], x.device)
    return (torch.arange(x.shape[1], device=x.device) - pads.view(-1, 1)).clamp(min=0)


EMBEDS: dict[str, Callable[..., nn.Module]] = {"tokens": tokens, "patches": patches}
