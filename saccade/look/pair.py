"""`QueryKeyPair`: how one weight comes about, from one query and one key."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.attend import plain
from saccade.attend.seen import Seen


class QueryKeyPair(NamedTuple):
    """products = query * key, number by number; dot: their sum; score = scale dot; weight = normaliser(score + bias).

    query and key are as they are compared: turned by a rotary position, of length 1 under a cosine. A score that is no
    product of the two has no products, no dot and no scale.
    """

    query: list[float]
    key: list[float]
    products: list[float]
    dot: float | None
    scale: float | None
    score: float
    bias: float  # what the position adds
    may: bool
    weight: float


@torch.no_grad()
def pair_of(seen: Seen, head: int, row: int, column: int) -> QueryKeyPair:
    """Of the first example of a call."""
    chosen = torch.tensor([row], device=seen.q.device)
    grid = seen.grid.take(chosen)
    q = plain.widen(seen.q[:1, :, chosen])
    k = plain.widen(plain.spread(seen.k[:1], q.shape[1]))

    def at(x: Tensor) -> float:
        return float(x.expand(1, q.shape[1], 1, k.shape[2])[0, head, 0, column])

    score, meaning = at(seen.meaning.score(q, k)), seen.meaning
    bias = at(meaning.position.on_scores(q, k, grid)) if meaning.position is not None and meaning.has("scores") else 0.0
    may = meaning.may(grid)
    weight = at(plain.weights(seen.q[:1, :, chosen], seen.k[:1], meaning, grid))
    allowed = may is None or bool(may.expand(-1, q.shape[1], 1, k.shape[2])[0, head, 0, column])
    factors = getattr(meaning.score, "factors", None)
    if factors is None:
        query, key = q[0, head, 0], k[0, head, column]
        return QueryKeyPair(query.tolist(), key.tolist(), [], None, None, score, bias, allowed, weight)
    asked, offered, scale = factors(q, k)
    query, key = asked[0, head, 0], offered[0, head, column]
    products = query * key
    dot = float(products.sum())
    return QueryKeyPair(query.tolist(), key.tolist(), products.tolist(), dot, scale, score, bias, allowed, weight)
