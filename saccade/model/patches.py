"""`patches(n)`: a picture as a grid of squares, each through one product (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.cells import Sides, squarish
from saccade.model.input import value_of


class patches(nn.Module):
    """pixels (B,channels,H,W) -> (B,T,C): T = (H / n)(W / n) squares of n x n pixels, row by row, each W x + b."""

    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the squares of the picture in another order",
        "shift": "the picture further right and down",
    }
    breaks: ClassVar[Mapping[str, str]] = {}
    reach = 0  # cells around it that each sees

    def __init__(self, n: int, channels: int = 1, *, config: ModelConfig) -> None:
        super().__init__()
        if n < 1 or channels < 1:
            raise SaccadeError(f"patches: the side of a square and its channels are from 1; got {n}, {channels}")
        self.n, self.channels, self.strides = n, channels, (n, n)
        self.weight = nn.Parameter(torch.empty(config.width, channels, n, n))
        self.bias = nn.Parameter(torch.zeros(config.width))
        nn.init.xavier_uniform_(self.weight.view(config.width, -1))

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        pixels = value_of(values, "pixels")
        if (
            pixels.dim() != 4
            or pixels.shape[1] != self.channels
            or pixels.shape[2] % self.n
            or pixels.shape[3] % self.n
        ):
            raise SaccadeError(
                f"pixels are (batch, {self.channels}, height, width), multiples of {self.n}; got {tuple(pixels.shape)}"
            )
        return F.conv2d(pixels.to(self.weight.dtype), self.weight, self.bias, stride=self.n).flatten(2).mT

    def sides(self, height: int, width: int) -> Sides:
        """The rows and columns of squares."""
        return height // self.n, width // self.n

    def counted(self, lengths: Tensor) -> Tensor:
        """As they are: pictures are not padded."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Noise, `length` squares."""
        tall, wide = squarish(length)
        shape = rows, self.channels, self.n * tall, self.n * wide
        return {"pixels": torch.randn(shape, generator=generator, device=device)}
