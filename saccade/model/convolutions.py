"""`convolutions((32, 64))`: a picture as a grid of features from a few convolutions, each of which halves its sides.

The stem that makes small data work: patches that overlap, and the eyes of a convolutional net before attention (Hassani
et al. 2021, CCT; Xiao et al. 2021). A line of text becomes one row of cells, in reading order, where the height is
halved more often than the width (Shi et al. 2017, CRNN).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise, product
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.cells import Sides, as_rows, squarish
from saccade.model.input import value_of


class convolutions(nn.Module):
    """pixels (B,channels,H,W) -> (B,T,C): for each width, and then for the model's own, relu(norm(pool(W * x + b))).

    The convolutions have kernel x kernel weights; the pool takes the largest of 3 x 3 cells, every other one, so that a
    picture of 28 x 28 is 14 x 14, then 7 x 7. steps: 2 for each convolution that is followed by a pool, 1 for the
    others; (2, 1) for a pool that halves the height alone, the largest of 3 cells in a column; by default 2 for all.
    norm: all features of a picture get mean 0 and spread 1 together, whatever its light (Wu and He 2018, one group).
    """

    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the squares of the picture in another order",
        "shift": "the picture further right and down",
    }

    def __init__(
        self,
        widths: tuple[int, ...] = (),
        channels: int = 1,
        kernel: int = 3,
        steps: tuple[int | tuple[int, int], ...] = (),
        norm: bool = False,
        *,
        config: ModelConfig,
    ) -> None:
        super().__init__()
        sizes = (channels, *widths, config.width)
        if not all(isinstance(each, int) and each >= 1 for each in sizes):
            raise SaccadeError(f"convolutions: widths and channels are whole numbers from 1; got {widths}, {channels}")
        if kernel % 2 == 0 or kernel < 1:
            raise SaccadeError(f"convolutions: the side of a kernel is odd; got {kernel}")
        self.channels, self.kernel, self.steps = (
            channels,
            kernel,
            [_both(each) for each in steps or (2,) * (len(sizes) - 1)],
        )
        if len(self.steps) != len(sizes) - 1 or not set(self.steps) <= {*product((1, 2), repeat=2)}:
            told = f"convolutions: steps has a 1, a 2 or a pair of them, such as (2, 1), for each of {len(sizes) - 1}"
            raise SaccadeError(f"{told}; got {steps}")
        self.filters = nn.ModuleList(nn.Conv2d(a, b, kernel, padding=kernel // 2) for a, b in pairwise(sizes))
        self.norms = nn.ModuleList(nn.GroupNorm(1, each) if norm else nn.Identity() for each in sizes[1:])
        for each in self.filters:
            nn.init.kaiming_normal_(each.weight, nonlinearity="relu")  # type: ignore[arg-type]
            nn.init.zeros_(each.bias)  # type: ignore[arg-type]

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        x = value_of(values, "pixels")
        if x.dim() != 4 or x.shape[1] != self.channels:
            raise SaccadeError(f"pixels are (batch, {self.channels}, height, width); got {tuple(x.shape)}")
        x = x.to(self.filters[0].weight.dtype).contiguous(memory_format=torch.channels_last)  # type: ignore[arg-type]
        for step, each, norm in zip(self.steps, self.filters, self.norms, strict=True):
            x = torch.relu(norm(_pooled(each(x), step)))
        return as_rows(x)

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": "a convolution has a weight for each neighbour"}
        whole = any(isinstance(each, nn.GroupNorm) for each in self.norms)
        return {**found, "shift": "its norm is of the whole picture, with its border"} if whole else found

    @property
    def strides(self) -> Sides:
        """Pixels from one cell to the next, down and to the right."""
        down, right = (math.prod(each) for each in zip(*self.steps, strict=True))
        return down, right

    @property
    def reach(self) -> int:
        """Cells around it that each sees, at most."""
        scale, pixels = 1, 0
        for steps in self.steps:
            pixels += (self.kernel // 2 + (max(steps) == 2)) * scale
            scale *= max(steps)
        return -(-pixels // min(self.strides))

    def sides(self, height: int, width: int) -> Sides:
        """The rows and columns of the grid that a picture becomes."""
        for down, right in self.steps:
            height, width = -(-height // down), -(-width // right)
        return height, width

    def counted(self, lengths: Tensor) -> Tensor:
        """As they are: pictures are not padded."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Noise that becomes `length` cells."""
        tall, wide = squarish(length)
        height, width = (
            side * math.prod(each) for side, each in zip((tall, wide), zip(*self.steps, strict=True), strict=True)
        )
        return {"pixels": torch.randn(rows, self.channels, height, width, generator=generator, device=device)}


def _pooled(x: Tensor, step: tuple[int, ...]) -> Tensor:
    """The largest of 3 cells along each side that is halved."""
    window = [3 if each == 2 else 1 for each in step]
    return x if max(window) == 1 else F.max_pool2d(x, window, step, [each // 2 for each in window])


def _both(step: int | tuple[int, int]) -> tuple[int, ...]:
    """A step down and to the right."""
    return step if isinstance(step, tuple) else (step, step)
