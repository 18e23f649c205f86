"""`convolution2d(n)`: a mixer over the cells of a picture: each sees the n x n around it (LeCun et al. 1989)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.cells import Sides, as_map, as_rows

WIDEST = 31  # cells of a kernel's side


class Convolution2d(nn.Module):
    """x (B,T,C) on a grid -> relu(W * x + b), (B,T,C)."""

    asks = ("grid",)  # it takes the grid that its cells lie on
    window = None
    breaks: ClassVar[Mapping[str, str]] = {
        "permutation": "a convolution has a weight for each neighbour",
        "causality": "a convolution sees neighbours on all sides",
    }

    def __init__(self, width: int, n: int = 3) -> None:
        super().__init__()
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= WIDEST or n % 2 == 0:
            raise SaccadeError(f"convolution2d: the side of a kernel is odd, from 1 to {WIDEST}; got {n!r}")
        self.filter = nn.Conv2d(width, width, n, padding=n // 2)
        self.reach = n // 2  # cells that it sees on every side
        nn.init.kaiming_normal_(self.filter.weight, nonlinearity="relu")
        nn.init.zeros_(self.filter.bias)  # type: ignore[arg-type]

    def forward(
        self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None, grid: Sides | None = None
    ) -> Tensor:
        if mask is not None or cache is not None:
            raise SaccadeError("convolution2d reads whole pictures: without padding, and not step by step")
        return as_rows(torch.relu(self.filter(as_map(x, grid))))
