"""Sums over features, tile by tile: what the kernel `linear` is made of. Features exist for one tile at a time.

Forward and backward are written out, since autograd would keep the features of all positions; they are computed again
for the gradient instead (Chen et al. 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from saccade.attend import plain
from saccade.attend.feature import exactly
from saccade.attend.score import Featured

Features = Callable[[Tensor], Tensor]
TILE = 128  # positions that compare each other pair by pair (LOG.md)


class SumState(torch.autograd.Function):
    """sum_j phi(k_j)^T v_j: k (B,G,S,D), v (B,G,S,E) -> (B,G,F,E)."""

    @staticmethod
    def forward(ctx: Any, k: Tensor, v: Tensor, score: Featured) -> Tensor:
        ctx.save_for_backward(k, v)
        ctx.score = score
        total = v.new_zeros(*k.shape[:2], score.count(k.shape[-1]), v.shape[-1])
        for tile in tiles(k.shape[2]):
            total += score.keys(k[:, :, tile]).mT @ v[:, :, tile]
        return total

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        plain.refuse_second_derivative("linear")
        (k, v), score = ctx.saved_tensors, ctx.score
        at_k, at_v = torch.empty_like(k), torch.empty_like(v)
        with exactly(k):
            for tile in tiles(k.shape[2]):
                b, back = _with_backward(k[:, :, tile], score.keys)
                at_v[:, :, tile] = b @ given
                at_k[:, :, tile] = back(v[:, :, tile] @ given.mT)
        return at_k, at_v, None


class ReadState(torch.autograd.Function):
    """phi(q) S: q (B,G,T,D), S (B,G,F,E) -> (B,G,T,E)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, state: Tensor, features: Features) -> Tensor:
        ctx.save_for_backward(q, state)
        ctx.features = features
        output = state.new_empty(*q.shape[:3], state.shape[-1])
        for tile in tiles(q.shape[2]):
            output[:, :, tile] = features(q[:, :, tile]) @ state
        return output

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        plain.refuse_second_derivative("linear")
        q, state = ctx.saved_tensors
        at_q, at_state = torch.empty_like(q), torch.zeros_like(state)
        with exactly(q):
            for tile in tiles(q.shape[2]):
                a, back = _with_backward(q[:, :, tile], ctx.features)
                at_state += a.mT @ given[:, :, tile]
                at_q[:, :, tile] = back(given[:, :, tile] @ state.mT)
        return at_q, at_state, None


def run(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor,
    score: Featured,
    features: Features,
    kept: list[Tensor] | None = None,
) -> Tensor:
    """The formula of `ScanState`; adds these keys to `state`. kept: a list that takes the sums before each tile."""
    output = v.new_empty(*q.shape[:4], v.shape[-1])
    for tile in tiles(k.shape[2]):
        a, b, values = features(q[:, :, :, tile].flatten(2, 3)), score.keys(k[:, :, tile]), v[:, :, tile]
        found = _hide_future(a @ b.mT, q.shape[2]) @ values
        found += a @ state
        output[:, :, :, tile] = found.unflatten(2, (q.shape[2], -1))
        if kept is not None:
            kept.append(state.clone())
        state += b.mT @ values
    return output


class ScanState(torch.autograd.Function):
    """phi(q_i) (S + sum_(j <= i) phi(k_j)^T v_j): q (B,G,R,T,D), k (B,G,T,D), v (B,G,T,E), S (B,G,F,E)
    -> (B,G,R,T,E). The sums before each tile are kept for the gradient: F / TILE numbers for each of v's.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, state: Tensor, score: Featured, features: Features
    ) -> Tensor:
        states: list[Tensor] = []
        output = run(q, k, v, state.clone(), score, features, states if any(ctx.needs_input_grad) else None)
        ctx.save_for_backward(q, k, v, *states)
        ctx.score, ctx.features = score, features
        return output

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        plain.refuse_second_derivative("linear")
        (q, k, v, *states), R = ctx.saved_tensors, ctx.saved_tensors[0].shape[2]
        at_q, at_k, at_v = (torch.empty_like(each) for each in (q, k, v))
        at_state = v.new_zeros(*k.shape[:2], ctx.score.count(k.shape[-1]), v.shape[-1])
        with exactly(q):
            for tile in reversed(list(tiles(k.shape[2]))):
                asked, values, state = given[:, :, :, tile].flatten(2, 3), v[:, :, tile], states.pop()
                a, back_q = _with_backward(q[:, :, :, tile].flatten(2, 3), ctx.features)
                b, back_k = _with_backward(k[:, :, tile], ctx.score.keys)
                weights, at_weights = _hide_future(a @ b.mT, R), _hide_future(asked @ values.mT, R)
                at_v[:, :, tile] = weights.mT @ asked + b @ at_state
                at_k[:, :, tile] = back_k((at_weights.mT @ a).add_(values @ at_state.mT))
                at_q[:, :, :, tile] = back_q((at_weights @ b).add_(asked @ state.mT)).unflatten(2, (R, -1))
                at_state += a.mT @ asked
        return at_q, at_k, at_v, at_state, None, None


def _with_backward(x: Tensor, features: Features) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The features of a tile, and a function from their gradient to the gradient of the tile."""
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        mapped = features(x)
    return mapped.detach(), lambda given: torch.autograd.grad(mapped, x, given)[0]


def _hide_future(weights: Tensor, repeats: int) -> Tensor:
    """weights (B,G,R*C,C) of a tile with zeros where a query would see what comes after it."""
    return weights.unflatten(2, (repeats, -1)).tril_().flatten(2, 3)


def tiles(length: int, size: int | None = None) -> Iterator[slice]:
    """The length in slices of so many positions, TILE by default."""
    size = TILE if size is None else size
    return (slice(at, min(at + size, length)) for at in range(0, length, size))
