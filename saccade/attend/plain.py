"""`plain`: the definition, written to be read, against which every other kernel is tested.

    weights = normaliser(score(q, k) + position + bias, mask)
    output  = weights v + position

It promises that a key or value which a query may not look at never reaches it, even if it is NaN or infinite.
Half-precision inputs are computed in float32.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend.grid import Grid
from saccade.attend.meaning import Meaning
from saccade.error import SaccadeError


def refuses(meaning: Meaning) -> str | None:
    """None: plain computes everything."""
    return None


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E)."""
    k, broken_keys = mend(k)
    v, broken_values = mend(v)
    may = meaning.may(grid)
    weights = weigh(q, k, meaning, grid, may)
    if dropout:
        weights = F.dropout(weights, dropout)
    output = weights @ spread(v, q.shape[1]).to(weights.dtype)
    if meaning.position is not None and meaning.has("values"):
        placed = meaning.position.on_values(weights, grid)
        if placed.shape != output.shape:
            raise SaccadeError(f"the position's values have width {placed.shape[-1]} and v has {output.shape[-1]}")
        output = output + placed
    if broken_keys is not None:  # a broken key spoils all numbers of an output, a broken value its own column
        broken_keys = broken_keys.any(-1, keepdim=True)
    for broken in (broken_keys, broken_values):
        if broken is not None:
            output = output.masked_fill(reached(broken, may, q.shape[1]), torch.nan)
    return output.to(v.dtype)


def weights(q: Tensor, k: Tensor, meaning: Meaning, grid: Grid) -> Tensor:
    """The weights (B,H,T,S); NaN in the rows that may look at a key which is not finite."""
    k, broken = mend(k)
    may = meaning.may(grid)
    weights = weigh(q, k, meaning, grid, may)
    if broken is None:
        return weights
    return weights.masked_fill(reached(broken.any(-1, keepdim=True), may, q.shape[1]), torch.nan)


def weigh(q: Tensor, k: Tensor, meaning: Meaning, grid: Grid, may: Tensor | None) -> Tensor:
    """The weights (B,H,T,S), for keys that are finite or mended."""
    q, k = widen(q), widen(spread(k, q.shape[1]))
    scores = meaning.score(q, k)
    shape = (*q.shape[:3], k.shape[2])
    try:
        scores = scores.expand(shape)
    except (RuntimeError, AttributeError):
        gave = tuple(scores.shape) if isinstance(scores, Tensor) else f"a {type(scores).__name__}"
        raise SaccadeError(f"the score gave {gave}; it must broadcast to (B,H,T,S) = {shape}") from None
    added = meaning.added(q, k, grid)
    return meaning.normaliser(scores if added is None else scores + added, may)


def mend(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """x with zeros for what is not finite, and where that was; zero times NaN would be NaN, forward and backward."""
    if finite(x):
        return x, None
    broken = ~x.isfinite()
    return x.masked_fill(broken, 0.0), broken


def reached(broken: Tensor, may: Tensor | None, heads: int) -> Tensor:
    """Which queries may look at something broken (B,G,S,E): (B,H,T or 1,E)."""
    broken = spread(broken, heads)
    if may is None:
        return broken.any(2, keepdim=True)
    return may.expand(*may.shape[:3], broken.shape[2]).float() @ broken.float() > 0


def spread(x: Tensor, heads: int) -> Tensor:
    """Each of G key heads serves H / G neighbouring query heads: (B,G,S,D) -> (B,H,S,D)."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def widen(x: Tensor) -> Tensor:
    """Half precision becomes float32."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def finite(x: Tensor) -> bool:
    """Whether x is certainly finite, by its sum: one pass, no copy.

    A graph that is being compiled cannot look, and on a GPU a look would wait for the queue: then it is not certain.
    """
    if torch.compiler.is_compiling() or x.device.type != "cpu":
        return False
    return math.isfinite(x.detach().sum().item())


def refuse_second_derivative(kernel: str) -> None:
    """Refuses a second derivative, in the backward pass of a kernel whose first one is written out.

    torch's `once_differentiable` does not do: where `autograd.grad` asks for some inputs alone, it raises nothing and
    the second derivative is silently left out.
    """
    if torch.is_grad_enabled():
        raise SaccadeError(f"{kernel} has first derivatives alone: use 'plain' or 'chunked' for second ones")
