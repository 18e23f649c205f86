"""`chunked`: `plain`, a few queries at a time, so that memory grows linearly with the length.

Rows of weights are independent of each other, so any score and any normaliser can be computed exactly in slices of
queries; the backward pass computes each slice again (Chen et al. 2016) instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from saccade.attend import plain
from saccade.attend.grid import Grid
from saccade.attend.mask import causal
from saccade.attend.meaning import Meaning
from saccade.attend.score import pairs

BUDGET = 1 << 22  # numbers that one slice may hold at once: 16 MiB in float32


def refuses(meaning: Meaning) -> str | None:
    """None: chunked computes everything."""
    return None


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E)."""
    return sliced(plain.attend, q, k, v, meaning, grid, dropout)


def sliced(
    whole: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0
) -> Tensor:
    """The output of the kernel `whole`, a few queries at a time; under `causal`, each without the keys after them."""
    step = max(1, BUDGET // max(1, q.shape[0] * q.shape[1] * grid.S * pairs(meaning.score)))
    if step >= grid.T:
        return whole(q, k, v, meaning, grid, dropout)
    past = skips_future(meaning, grid)

    def part(q: Tensor, k: Tensor, v: Tensor, first: int) -> Tensor:
        some = grid.take(range(first, first + q.shape[2]))
        if past and (end := some.bounds()[1]) < grid.S:
            k, v, some = k[:, :, :end], v[:, :, :end], some.among((range(end),))
        return whole(q, k, v, meaning, some, dropout)

    slices = zip(q.split(step, 2), range(0, grid.T, step), strict=True)
    return torch.cat([recomputed(part, each, k, v, first) for each, first in slices], 2)


def recomputed(part: Callable[..., Tensor], *inputs: Any) -> Tensor:
    """part(*inputs), which keeps nothing but its inputs and is computed again for the gradient.

    torch's checkpoints do not work inside `torch.func`: there everything is kept.
    """
    if not torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
        return part(*inputs)
    return cast("Tensor", checkpoint(part, *inputs, use_reentrant=False))


def skips_future(meaning: Meaning, grid: Grid) -> bool:
    """Whether `causal` hides from a slice of queries all keys after its last one, so that they can be left out."""
    if meaning.mask is None or grid.columns is not None or grid.ragged:
        return False
    return causal in meaning.mask.terms()
