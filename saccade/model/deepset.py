"""Layers of DeepSets: each vector of a set together with what all of them have in common (Zaheer et al. 2017).

deepset(max)    s(W x_i + V max_j x_j + b)      the paper's, whose layers share one number for each channel
deepset(mean)   s(W x_i + V mean_j x_j + b)
deepset(sum)    s(W x_i + V sum_j x_j + b)

Whoever exchanges two vectors of the set exchanges the outputs and changes nothing else: the layer is equivariant. With
a pool behind the last one (mean, max, sum) the whole is invariant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError, nearest
from saccade.model.graph import as_activation
from saccade.model.padded import GATHERS, PaddedRows


class DeepSet(nn.Module):
    """x (B,T,C) -> (B,T,C), each vector with the same gathered one beside it."""

    window = None

    breaks: ClassVar[Mapping[str, str]] = {"causality": "a set knows no order"}

    def __init__(self, width: int, gather: str = "max", activation: str = "none") -> None:
        super().__init__()
        if gather not in GATHERS:
            raise SaccadeError(f"deepset: nothing gathers by {gather!r}; {nearest(str(gather), GATHERS)}")
        self.gather, self.activation = gather, as_activation("deepset", activation)
        self.own = nn.Linear(width, width)
        self.shared = nn.Linear(width, width, bias=False)
        for each in (self.own, self.shared):
            nn.init.xavier_uniform_(each.weight)
        nn.init.zeros_(self.own.bias)

    def forward(self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None) -> Tensor:
        """mask: padding, which nothing is gathered from."""
        if cache is not None:
            raise SaccadeError("deepset reads whole sets, and not step by step")
        rows = PaddedRows(x, mask, "deepset")
        x = rows.align(x)
        common = self.shared(GATHERS[self.gather](rows, x)).unsqueeze(1)
        return rows.restore(self.activation(self.own(x) + common))
