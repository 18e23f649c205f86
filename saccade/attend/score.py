"""How well a key answers a query: q (B,H,T,D) and k (B,H,S,D) give scores that broadcast to (B,H,T,S).

dot, scaled_dot and cosine have no weights and work anywhere; they are products q'.k' times a number, which the fast
kernels use. bilinear, additive, leaky, gate and integral have weights: `Attention` builds them from their names, the
free functions take them as modules.

Luong et al. 2015 (dot, bilinear "general"), Vaswani et al. 2017 (scaled_dot), Graves et al. 2014 (cosine),
Bahdanau et al. 2015 (additive).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import spec
from saccade.attend.feature import feature, unit
from saccade.attend.integral import integral
from saccade.attend.numbers import count, is_number
from saccade.error import SaccadeError

Score = Callable[[Tensor, Tensor], Tensor]


class Product(Protocol):
    """A score that is a plain product: score(q, k) = factor * q' k'^T. The fast kernels compute these."""

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, float]:
        """q', k' and the factor. k may have fewer heads than q."""
        ...


class Featured(Protocol):
    """A score that is a product of features: score(q, k) = phi(q) phi(k)^T. The linear kernel computes these."""

    def queries(self, q: Tensor, *, free: bool = False) -> Tensor:
        """phi(q), (B,H,T,F); free: a row may be multiplied by any number above 0, since a sum will divide by it."""
        ...

    def keys(self, k: Tensor) -> Tensor:
        """phi(k), (B,G,S,F), each by itself."""
        ...

    def count(self, width: int) -> int:
        """F, for heads of this width."""
        ...


@dataclass(frozen=True)
class dot:
    """q.k"""

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, float]:
        return q, k, 1.0

    def __call__(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT


@dataclass(frozen=True)
class scaled_dot:
    """q.k / sqrt(D), or times `scale` where one is given."""

    scale: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None and not (is_number(self.scale) and abs(self.scale) < 1e30):
            raise SaccadeError(f"scaled_dot: scale is a number below 1e30; got {self.scale!r}")

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, float]:
        return q, k, 1 / math.sqrt(max(q.shape[-1], 1)) if self.scale is None else float(self.scale)

    def __call__(self, q: Tensor, k: Tensor) -> Tensor:
        q, k, scale = self.factors(q, k)
        return (q * scale) @ k.mT


@dataclass(frozen=True)
class cosine:
    """q.k / (|q| |k|); a zero vector scores 0. `softmax(beta=...)` sharpens it."""

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, float]:
        return unit(q), unit(k), 1.0

    def __call__(self, q: Tensor, k: Tensor) -> Tensor:
        q, k, _ = self.factors(q, k)
        return q @ k.mT


class Apart(Protocol):
    """A score whose two sides are each computed from one vector: score(q, k) = joined(a(q) + b(k))."""

    def sides(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """a(q) (B,H,T) and b(k) (B,H,S)."""
        ...

    def joined(self, sums: Tensor) -> Tensor:
        """The scores of their sums."""
        ...


class bilinear(nn.Module):
    """q^T W k, a matrix a head ("general")."""

    def __init__(self, width: int, heads: int = 1) -> None:
        super().__init__()
        self.weight = _matrices(heads, width, width)

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor, float]:
        _check_heads("bilinear", self.weight, q)
        return _per_head(q, self.weight), k, 1.0

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        q, k, _ = self.factors(q, k)
        return q @ k.mT


class additive(nn.Module):
    """v^T tanh(W_q q + W_k k + b): a small network aligns query and key (Bahdanau's alignment model), one a head.

    activation: tanh, or leaky, a LeakyReLU of slope 0.2 (Brody et al. 2022, GATv2).
    """

    def __init__(self, width: int, heads: int = 1, hidden: int | None = None, activation: str = "tanh") -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise SaccadeError(f"additive: the activation is {' or '.join(ACTIVATIONS)}; got {activation!r}")
        self.activation = activation
        hidden = width if hidden is None else count("additive", "hidden", hidden)
        self.hidden = hidden
        self.query = _matrices(heads, width, hidden)
        self.key = _matrices(heads, width, hidden)
        self.bias = nn.Parameter(torch.zeros(heads, 1, hidden))
        self.vector = _matrices(heads, hidden, 1)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        _check_heads("additive", self.query, q)
        return self.align(q, self.offer(k))

    def offer(self, k: Tensor) -> Tensor:
        """W_k k (B,H,S,hidden), which does not depend on the query."""
        return _per_head(k, self.key)

    def align(self, q: Tensor, offers: Tensor) -> Tensor:
        """The scores (B,H,T,S) from W_k k."""
        asked = _per_head(q, self.query) + self.bias.to(q.dtype)
        aligned = ACTIVATIONS[self.activation](asked.unsqueeze(3) + offers.unsqueeze(2))  # (B,H,T,S,hidden)
        return _per_head(aligned.flatten(2, 3), self.vector).view(aligned.shape[:-1])


@dataclass(frozen=True)
class offered:
    """An additive score over W_k k in place of k: computed once for a context that a decoder asks at every step."""

    score: additive

    @property
    def hidden(self) -> int:
        """Numbers for each pair, as `pairs` asks."""
        return self.score.hidden

    def __call__(self, q: Tensor, k: Tensor) -> Tensor:
        return self.score.align(q, k)


class leaky(nn.Module):
    """LeakyReLU(a^T q + b^T k): the score of a graph attention network (Velickovic et al. 2018)."""

    def __init__(self, width: int, heads: int = 1, slope: float = 0.2) -> None:
        super().__init__()
        if not (is_number(slope) and 0 <= slope <= 1):
            raise SaccadeError(f"leaky: slope is a number from 0 to 1; got {slope!r}")
        self.slope = float(slope)
        self.query, self.key = _matrices(heads, width, 1), _matrices(heads, width, 1)

    def sides(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """a^T q (B,H,T) and b^T k (B,H,S)."""
        _check_heads("leaky", self.query, q)
        # One column each: as a product of matrices it takes three times as long.
        return (q * self.query.mT.to(q.dtype)).sum(3), (k * self.key.mT.to(k.dtype)).sum(3)

    def joined(self, sums: Tensor) -> Tensor:
        return F.leaky_relu(sums, self.slope)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        asking, offering = self.sides(q, k)
        return self.joined(asking.unsqueeze(3) + offering.unsqueeze(2))


class gate(nn.Module):
    """theta^T k + b: looks at the input alone, whoever asks (the lecture's first attention)."""

    def __init__(self, width: int, heads: int = 1) -> None:
        super().__init__()
        self.weight = _matrices(heads, width, 1)
        self.bias = nn.Parameter(torch.zeros(heads, 1, 1))

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        _check_heads("gate", self.weight, q)
        return (_per_head(k, self.weight) + self.bias.to(k.dtype)).mT  # (B,H,1,S)


def as_score(score: Score | str, *, width: int | None = None, heads: int | None = None) -> Score:
    """A score from itself or a spec string; with the width and number of heads, also one that has weights."""
    if not isinstance(score, str):
        if isinstance(score, type):
            raise SaccadeError(f"score is an object, not a class: write {score.__name__}(...)")
        if not callable(score):
            raise SaccadeError(f"score is a spec string or a function of q and k, not {type(score).__name__}")
        return score
    if width is None or heads is None:
        return spec.recall(score, REFUSING, "score")
    return spec.read(score, SCORES, "score", width=width, heads=heads)


def is_product(score: object) -> TypeGuard[Product]:
    """Whether the fast kernels can compute it."""
    return hasattr(score, "factors")


def is_apart(score: object) -> TypeGuard[Apart]:
    """Whether its two sides can be computed apart."""
    return hasattr(score, "sides") and hasattr(score, "joined")


def is_featured(score: object) -> TypeGuard[Featured]:
    """Whether the linear kernel can compute it."""
    return hasattr(score, "queries") and hasattr(score, "keys") and hasattr(score, "count")


def turns(score: object) -> bool:
    """Whether the score is the same for q and k turned alike, so that rotary positions depend on i - j alone."""
    return isinstance(score, dot | scaled_dot | cosine)


def pairs(score: Score) -> int:
    """How many numbers a score holds for each pair of query and key while it computes."""
    return int(getattr(score, "hidden", 1))


def _refuse(name: str) -> Callable[..., Score]:
    def refuse(*_: object, **__: object) -> Score:
        raise SaccadeError(
            f"the score {name!r} has weights: pass a module, saccade.attend.score.{name}(width, heads), "
            f"or use saccade.Attention, which builds it"
        )

    return refuse


def _matrices(heads: int, rows: int, columns: int) -> nn.Parameter:
    """A matrix a head, each initialised on its own (together, the heads would count as a convolution's kernel)."""
    weight = torch.empty(heads, rows, columns)
    for matrix in weight:
        nn.init.xavier_uniform_(matrix)
    return nn.Parameter(weight)


def _per_head(x: Tensor, matrices: Tensor) -> Tensor:
    """Every head times its matrix: (B,H,T,D), (H or 1,D,E) -> (B,H,T,E).

    One head is a single product. `x @ matrices` would be a small product, and a gradient of W, for each example.
    """
    matrices = matrices.to(x.dtype)
    return x @ (matrices[0] if len(matrices) == 1 else matrices)


def _check_heads(name: str, weight: Tensor, q: Tensor) -> None:
    heads, width = weight.shape[:2]
    if heads not in (1, q.shape[1]) or width != q.shape[-1]:
        raise SaccadeError(
            f"this {name} score was built for {heads} heads of width {width}; q has {q.shape[1]} of width {q.shape[-1]}"
        )


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "leaky": lambda x: F.leaky_relu(x, 0.2)}
WEIGHTLESS: dict[str, Callable[..., Score]] = {
    "dot": dot,
    "scaled_dot": scaled_dot,
    "cosine": cosine,
    "feature": feature,
}
LEARNED: dict[str, Callable[..., Score]] = {
    "bilinear": bilinear,
    "additive": additive,
    "leaky": leaky,
    "gate": gate,
    "integral": integral,
}
SCORES = WEIGHTLESS | LEARNED
REFUSING = WEIGHTLESS | {name: _refuse(name) for name in LEARNED}
