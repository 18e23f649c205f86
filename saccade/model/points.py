"""`points(features)`: the points of a set as vectors.

The first numbers of a point may be coordinates. Beside them stand their sines and cosines, so that a model tells near
points apart (Tancik et al. 2020): of waves that go once, twice, four times ... through half the space.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.input import value_of


class points(nn.Module):
    """points (B,N,F) -> (B,N,C), each W [x; sin(2^n pi c); cos(2^n pi c)] + b, with c the coordinates of x and n from 0
    to below `waves`.
    """

    moves: ClassVar[Mapping[str, str]] = {"permutation": "the points in another order"}
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, features: int = 2, coordinates: int = 0, waves: int = 0, *, config: ModelConfig) -> None:
        super().__init__()
        whole = all(isinstance(each, int) and not isinstance(each, bool) for each in (features, coordinates, waves))
        if not whole or features < 1 or not 0 <= coordinates <= features or not 0 <= waves <= 16:
            raise SaccadeError(
                "points: features is a whole number from 1, coordinates one from 0 to features, waves one from 0 to "
                f"16; got {features!r}, {coordinates!r}, {waves!r}"
            )
        if waves and not coordinates:
            raise SaccadeError("points: waves are of coordinates, and these points have none: set x.NAME.coordinates")
        self.features, self.coordinates, self.waves = features, coordinates, waves
        self.out = nn.Linear(features + 2 * coordinates * waves, config.width)

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        x = value_of(values, "points")
        if x.dim() != 3 or x.shape[2] != self.features:
            raise SaccadeError(f"points are (batch, points, {self.features}); got {tuple(x.shape)}")
        x = x.to(self.out.weight.dtype)
        if not self.waves:
            return self.out(x)
        steps = math.pi * 2.0 ** torch.arange(self.waves, device=x.device, dtype=x.dtype)
        angles = (x[..., : self.coordinates, None] * steps).flatten(2)
        return self.out(torch.cat((x, angles.sin(), angles.cos()), 2))

    def spots(self, values: Mapping[str, Tensor]) -> Tensor:
        """The coordinates (B,N,k)."""
        if not self.coordinates:
            raise SaccadeError("these points lie nowhere: set x.NAME.coordinates")
        return value_of(values, "points")[..., : self.coordinates].to(self.out.weight.dtype)

    def counted(self, lengths: Tensor) -> Tensor:
        """A vector for each point."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Noise on `length` points."""
        return {"points": torch.randn(rows, length, self.features, generator=generator, device=device)}
