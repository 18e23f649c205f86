"""Between two stages of an encoder, four neighbouring cells of a picture become one of twice the width.

patches         W norm([x_00; x_10; x_01; x_11])                      Liu et al. 2021 (Swin)
convolution(n)  relu of an n x n convolution that takes every other cell, as convolutional nets shrink their maps
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import spec
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.cells import Sides, as_map, as_rows
from saccade.model.norm import NORMS

MERGED = {
    "permutation": "four neighbours become one",
    "shift": "four cells become one, so that shifts by two of them alone are kept",
}


class PatchMerge(nn.Module):
    """x (B,T,C) on a grid -> (B,T/4,2C), and the smaller grid. A side that is odd is filled up with zeros."""

    breaks: ClassVar[Mapping[str, str]] = MERGED

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.norm = NORMS[config.norm](4 * config.width, config.epsilon)
        self.out = nn.Linear(4 * config.width, 2 * config.width, bias=False)

    def forward(self, x: Tensor, sides: Sides) -> tuple[Tensor, Sides]:
        tall, wide = (-(-side // 2) for side in sides)
        x = x.unflatten(1, sides)
        x = F.pad(x, (0, 0, 0, 2 * wide - sides[1], 0, 2 * tall - sides[0]))
        x = x.view(x.shape[0], tall, 2, wide, 2, x.shape[3])
        four = x.permute(0, 1, 3, 4, 2, 5).reshape(x.shape[0], tall * wide, -1)  # columns before rows, as in the paper
        return self.out(self.norm(four)), (tall, wide)


class ConvolutionMerge(nn.Module):
    """The same by a convolution over n x n cells."""

    breaks: ClassVar[Mapping[str, str]] = MERGED

    def __init__(self, n: int = 3, *, config: ModelConfig) -> None:
        super().__init__()
        if n < 2:
            raise SaccadeError(f"convolution: a merge looks at 2 x 2 cells at least; got {n}")
        self.filter = nn.Conv2d(config.width, 2 * config.width, n, stride=2, padding=(n - 1) // 2)
        nn.init.kaiming_normal_(self.filter.weight, nonlinearity="relu")
        nn.init.zeros_(self.filter.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor, sides: Sides) -> tuple[Tensor, Sides]:
        made = torch.relu(self.filter(as_map(x, sides)))
        return as_rows(made), (made.shape[2], made.shape[3])


def as_merge(text: str, config: ModelConfig) -> nn.Module:
    """The merge after a stage of this configuration."""
    return spec.read(text, MERGES, "merge", config=config)


MERGES: dict[str, Callable[..., nn.Module]] = {"patches": PatchMerge, "convolution": ConvolutionMerge}
