"""`chunked`: the law, a few queries at a time, so that memory grows linearly with the length.

Rows of weights are independent of each other, so any score and any normaliser can be computed exactly in slices of
queries; the backward pass computes each slice again (Chen et al. 2016) instead of keeping it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from saccade.attend import plain
from saccade.attend.grid import Grid
from saccade.attend.meaning import Meaning
from saccade.attend.score import pairs

BUDGET = 1 << 22  # numbers that one slice may hold at once: 16 MiB in float32


def refuses(meaning: Meaning) -> str | None:
    """chunked computes everything."""
    return None


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E)."""
    B, H, T, _ = q.shape
    step = max(1, BUDGET // max(1, B * H * grid.S * pairs(meaning.score)))
    if step >= T:
        return plain.attend(q, k, v, meaning, grid, dropout)

    def part(q: Tensor, k: Tensor, v: Tensor, first: int) -> Tensor:
        return plain.attend(q, k, v, meaning, grid.take(range(first, first + q.shape[2])), dropout)

    starts = range(0, T, step)
    slices = [(each, first) for each, first in zip(q.split(step, 2), starts, strict=True)]
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(part, each, k, v, first, use_reentrant=False) for each, first in slices], 2)
    return torch.cat([part(each, k, v, first) for each, first in slices], 2)
