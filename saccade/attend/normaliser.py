"""From scores to weights, one row at a time.

A normaliser takes scores (B,H,T,S) and who may look (a bool tensor that broadcasts to them, or None for everyone) and
gives weights. A masked weight is exactly 0 after every one of them, and a row that may look at nothing is all zeros,
with zero gradients.

Bridle 1990 (softmax), Martins and Astudillo 2016 (sparsemax), Bengio et al. 2013 (straight-through).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeGuard

import torch
from torch import Tensor

from saccade import spec
from saccade.attend.numbers import is_number
from saccade.error import SaccadeError

Normaliser = Callable[[Tensor, Tensor | None], Tensor]


class Summing(Protocol):
    """A normaliser that needs no more than sums over the keys. The linear kernel computes these."""

    scale_free: ClassVar[bool]  # whether a factor that all scores of a row share changes nothing

    def of_sums(self, values: Tensor, total: Tensor) -> Tensor:
        """sum_j w_j v_j (B,H,T,E) from sum_j s_j v_j (B,H,T,E) and sum_j s_j (B,H,T,1)."""
        ...


def is_summing(normaliser: object) -> TypeGuard[Summing]:
    """Whether the linear kernel can compute it."""
    return hasattr(normaliser, "of_sums")


@dataclass(frozen=True)
class softmax:
    """exp(beta s_j) / sum_j exp(beta s_j): the soft argmax, with beta the inverse temperature; tends to `hard`."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.beta) and 0 <= self.beta < 1e30):
            raise SaccadeError(f"softmax: beta is a number from 0 to below 1e30; got {self.beta!r}")

    def __call__(self, scores: Tensor, may: Tensor | None) -> Tensor:
        scores = scores if self.beta == 1 else scores * self.beta
        if may is None:
            return torch.softmax(scores, -1)
        nobody = ~may.any(-1, keepdim=True)  # a row of -inf alone would be NaN, forward and backward
        scores = scores.masked_fill(~may, -torch.inf).masked_fill(nobody, 0.0)
        return torch.softmax(scores, -1).masked_fill(nobody, 0.0)


@dataclass(frozen=True)
class sigmoid:
    """1 / (1 + exp(-s_j)): each key on its own, nothing sums to one."""

    def __call__(self, scores: Tensor, may: Tensor | None) -> Tensor:
        return _hide(torch.sigmoid(_hide(scores, may)), may)


@dataclass(frozen=True)
class hard:
    """All weight on the largest score (the first of equal ones).

    The gradient is straight-through: backward, the weights count as softmax(s), since the true gradient is zero
    almost everywhere.
    """

    def __call__(self, scores: Tensor, may: Tensor | None) -> Tensor:
        soft = softmax()(scores, may)
        if scores.shape[-1] == 0:
            return soft
        best = (scores if may is None else scores.masked_fill(~may, -torch.inf)).detach()
        first = (best == best.amax(-1, keepdim=True)).to(torch.uint8).argmax(-1, keepdim=True)
        weights = _hide(torch.zeros_like(soft).scatter(-1, first.expand(*soft.shape[:-1], 1), 1.0), may)
        return weights + (soft - soft.detach())


@dataclass(frozen=True)
class sparsemax:
    """The point of the simplex nearest to the scores: max(s_j - tau, 0) with tau such that the weights sum to one."""

    def __call__(self, scores: Tensor, may: Tensor | None) -> Tensor:
        if scores.shape[-1] == 0:
            return scores
        seen = scores if may is None else scores.masked_fill(~may, -torch.inf)
        top = seen.detach().amax(-1, keepdim=True)
        top = torch.where(top == -torch.inf, 0.0, top)
        # With the largest score at 0, tau >= -1: whatever lies at -2 has no weight.
        z = scores - top if may is None else torch.where(may, scores - top, -2.0)
        ordered = z.detach().sort(-1, descending=True).values
        count = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
        size = (1 + count * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
        support = z.detach() >= ordered.gather(-1, (size - 1).clamp(min=0))
        tau = (torch.where(support, z, 0.0).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
        return _hide((z - tau).clamp(min=0) * support, may)


@dataclass(frozen=True)
class sum_:
    """s_j / sum_j s_j, for scores that are not exponents (feature maps). A sum of 0 gives zeros."""

    scale_free: ClassVar[bool] = True

    def __call__(self, scores: Tensor, may: Tensor | None) -> Tensor:
        scores = _hide(scores, may)
        return self.of_sums(scores, scores.sum(-1, keepdim=True))

    def of_sums(self, values: Tensor, total: Tensor) -> Tensor:
        empty = total == 0
        return (values / total.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)


@dataclass(frozen=True)
class none:
    """s_j itself: composite memory, a plain weighted sum."""

    scale_free: ClassVar[bool] = False

    def __call__(self, scores: Tensor, may: Tensor | None) -> Tensor:
        return _hide(scores, may)

    def of_sums(self, values: Tensor, total: Tensor) -> Tensor:
        return values


def as_normaliser(normaliser: Normaliser | str) -> Normaliser:
    """A normaliser from itself or a spec string."""
    if isinstance(normaliser, str):
        return spec.recall(normaliser, NORMALISERS, "normaliser")
    if isinstance(normaliser, type):
        raise SaccadeError(f"normaliser is an object, not a class: write {normaliser.__name__}()")
    if not callable(normaliser):
        raise SaccadeError(f"normaliser is a spec string or a function, not {type(normaliser).__name__}")
    return normaliser


def _hide(x: Tensor, may: Tensor | None) -> Tensor:
    return x if may is None else x.masked_fill(~may, 0.0)


NORMALISERS: dict[str, Callable[..., Normaliser]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "hard": hard,
    "sparsemax": sparsemax,
    "sum": sum_,
    "none": none,
}
