"""`attention` and `weights` as functions of q, k and v."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from saccade.attend import plain
from saccade.attend.grid import Grid, place
from saccade.attend.kernel import Kernel, as_kernel, run
from saccade.attend.mask import Mask, as_mask
from saccade.attend.meaning import Meaning, agree
from saccade.attend.normaliser import Normaliser, as_normaliser
from saccade.attend.numbers import dtype, share
from saccade.attend.position import Position, as_position
from saccade.attend.score import Score, as_score
from saccade.error import SaccadeError


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Mask | Tensor | str | None = None,
    score: Score | str = "scaled_dot",
    normaliser: Normaliser | str = "softmax",
    position: Position | str | None = None,
    bias: Tensor | None = None,
    kernel: Kernel | ModuleType | str = "auto",
    start: int | Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """normaliser(score(q, k) + bias, mask) v.

    q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E); G divides H, and each key head serves H / G neighbouring query
    heads. mask: a Mask, a spec string or a bool tensor that broadcasts to (B,H,T,S), True where a query may look.
    score, normaliser, position, kernel: a spec string or an object. start: the absolute position of q[0], an int or
    (B,); by default S - T, so that the last query stands at the last key. bias: what this call adds to the scores
    (distances, edges), broadcasts to (B,H,T,S) and is finite: what should be hidden, a mask hides. dropout falls on the
    weights, whenever it is not 0.
    """
    _check_inputs(q, k, v)
    share("dropout", dropout)
    q, k, meaning, grid = _prepared(q, k, mask, _as_parts(score, normaliser, position), start, bias)
    return run(as_kernel(kernel), q, k, v, meaning, grid, dropout)


def weights(
    q: Tensor,
    k: Tensor,
    *,
    mask: Mask | Tensor | str | None = None,
    score: Score | str = "scaled_dot",
    normaliser: Normaliser | str = "softmax",
    position: Position | str | None = None,
    bias: Tensor | None = None,
    start: int | Tensor | None = None,
) -> Tensor:
    """normaliser(score(q, k) + bias, mask), (B,H,T,S), as `plain` computes it. Arguments as for `attention`."""
    _check_inputs(q, k, None)
    q, k, meaning, grid = _prepared(q, k, mask, _as_parts(score, normaliser, position), start, bias)
    return plain.weights(q, k, meaning, grid)


def _prepared(
    q: Tensor,
    k: Tensor,
    mask: Mask | Tensor | str | None,
    parts: tuple[Score, Normaliser, Position | None],
    start: int | Tensor | None,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Meaning, Grid]:
    """q and k turned by the position where it does so, and the meaning and the grid of the call."""
    grid = place(q, k, start)
    grid = grid if bias is None else grid.biased(bias, *q.shape[:2])
    score, normaliser, position = parts
    if position is not None and "heads" in position.doors:
        q = position.on_heads(q, grid.i.flatten(1))
        k = position.on_heads(k, grid.j.flatten(1))
    allowed = None if mask is None else as_mask(mask)
    if allowed is not None:
        B, H, T, _ = q.shape
        allowed.fits(B, H, T, k.shape[2], q.device)
    return q, k, Meaning(score, allowed, normaliser, position, bias is not None), grid


def _as_parts(
    score: Score | str, normaliser: Normaliser | str, position: Position | str | None
) -> tuple[Score, Normaliser, Position | None]:
    placed = as_position(position)
    if placed is not None and "input" in placed.doors:
        raise SaccadeError(f"the position {type(placed).__name__} belongs to the input: apply its on_input to x")
    scored, normalised = as_score(score), as_normaliser(normaliser)
    agree(scored, normalised)
    return scored, normalised, placed


def _check_inputs(q: Tensor, k: Tensor, v: Tensor | None) -> None:
    """Decides quickly that all is well, as nearly always; looks for the right sentence only if it is not."""
    v = k if v is None else v
    try:
        B, H, _, D = q.shape
        Bk, G, S, Dk = k.shape
        Bv, Gv, Sv, _ = v.shape
        shaped = B == Bk == Bv and Dk == D and Gv == G and Sv == S and G and H % G == 0
        if shaped and q.is_floating_point() and q.dtype is k.dtype is v.dtype and q.device == k.device == v.device:
            return
    except (AttributeError, ValueError, TypeError):
        pass
    _refuse_inputs(q, k, v)


def _refuse_inputs(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Says what is wrong with the inputs; returns only where autocast will make their types agree."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise SaccadeError(f"{name} must be a tensor, not {type(x).__name__}")
        if x.dim() != 4:
            raise SaccadeError(f"{name} must have the axes (batch, heads, length, width); got shape {tuple(x.shape)}")
        if not x.is_floating_point():
            raise SaccadeError(f"{name} must be floating point; got {dtype(x)}")
        lowered = torch.is_autocast_enabled(q.device.type) and torch.float64 not in (q.dtype, x.dtype)
        if x.dtype != q.dtype and not lowered:
            raise SaccadeError(f"q is {dtype(q)} and {name} is {dtype(x)}: convert one of them")
        if x.device != q.device:
            raise SaccadeError(f"q is on {q.device} and {name} on {x.device}: move one of them")
        if x.shape[0] != q.shape[0]:
            raise SaccadeError(f"q has a batch of {q.shape[0]} and {name} of {x.shape[0]}")
    if k.shape[3] != q.shape[3]:
        raise SaccadeError(f"q has heads of width {q.shape[3]} and k of {k.shape[3]}; they must agree")
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise SaccadeError(f"{k.shape[1]} key heads do not divide {q.shape[1]} query heads")
    if v.shape[1:3] != k.shape[1:3]:
        raise SaccadeError(
            f"k and v must have the same heads and length; got {tuple(k.shape[1:3])} and {tuple(v.shape[1:3])}"
        )
