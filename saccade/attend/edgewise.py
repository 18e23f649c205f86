"""`edgewise`: attention along the edges of a graph, in time and memory that grow with the edges and not with all pairs.

It takes masks with `neighbours` in them, alone or joined to others by `&`. A score is computed for the two ends of each
edge alone; the sums are those of `Edges`. Half-precision inputs are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend import plain
from saccade.attend.algebra import given
from saccade.attend.edges import Edges
from saccade.attend.grid import Grid
from saccade.attend.mask import Mask
from saccade.attend.meaning import Meaning, called
from saccade.attend.neighbours import AtEdges, neighbours
from saccade.attend.normaliser import none, sigmoid, softmax, sum_
from saccade.attend.score import is_apart, is_product

SHARE = 8  # pairs for each edge from which it is faster than a table of all pairs
LEAST = 64  # nodes below which a table of all pairs is as fast


def refuses(meaning: Meaning) -> str | None:
    """Why this cannot be computed along edges, or None."""
    terms = () if meaning.mask is None else meaning.mask.terms()
    if not any(isinstance(each, neighbours) for each in terms):
        return "edgewise looks along edges: give the mask 'neighbours', alone or with others by &; or use 'plain'"
    if any(isinstance(each, given) for each in terms):
        return "edgewise takes no bool tensors beside 'neighbours': use 'plain' or 'chunked'"
    if type(meaning.normaliser) not in NORMALISERS:
        return f"edgewise cannot compute {called(meaning.normaliser)}: use 'plain' or 'chunked'"
    if meaning.position is not None and (meaning.has("values") or "scores" in meaning.position.doors):
        return f"edgewise adds no {called(meaning.position)} to pairs: use 'plain' or 'chunked'"
    return None


def pays(q: Tensor, meaning: Meaning, grid: Grid) -> bool:
    """Whether it computes this, and is faster than a kernel of all pairs."""
    if meaning.mask is None or grid.S < LEAST or not whole(grid) or torch.compiler.is_compiling():
        return False
    first = next((each for each in meaning.mask.terms() if isinstance(each, neighbours)), None)
    if first is None or refuses(meaning) is not None:
        return False
    return SHARE * len(first.along) < first.along.rows * grid.T * grid.S


def whole(grid: Grid) -> bool:
    """Whether it is a self-attention over all nodes at once."""
    return bool(not grid.picked() and not grid.ragged and grid.start == 0 and grid.T == grid.S)


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,T,D), v (B,G,T,E) -> (B,H,T,E)."""
    assert meaning.mask is not None
    first = next(each for each in meaning.mask.terms() if isinstance(each, neighbours))
    if not whole(grid) or first.along.nodes != grid.S:
        return plain.attend(q, k, v, meaning, grid, dropout)  # a part of the nodes, or a step: few pairs
    B, H, T, _ = q.shape
    edges = allowed(first, meaning.mask, grid, B)
    k, broken_keys = plain.mend(k)
    v, broken_values = plain.mend(v)
    q, k, values = (by_head(plain.widen(each), H) for each in (q, plain.spread(k, H), plain.spread(v, H)))
    scores = scores_of(meaning, q, k, edges)
    if grid.bias is not None:
        scores = scores + _bias(grid.bias, edges, H).to(scores)
    weights = NORMALISERS[type(meaning.normaliser)](meaning.normaliser, scores, edges)
    weights = F.dropout(weights, dropout) if dropout else weights
    output = edges.mixed(weights.to(values.dtype), values)
    if broken_keys is not None:
        broken_keys = broken_keys.any(-1, keepdim=True)
    for broken in (broken_keys, broken_values):
        if broken is not None:
            seen = by_head(plain.spread(broken, H).to(output.dtype), H)
            output = output.masked_fill(edges.mixed(torch.ones_like(weights), seen) > 0, torch.nan)
    return output.view(H, B, T, -1).transpose(0, 1).to(v.dtype)


def allowed(first: neighbours, mask: Mask, grid: Grid, B: int) -> Edges:
    """The edges of all examples that every term of the mask allows."""
    edges = first.along
    if edges.rows != B:  # one graph for all examples
        steps = torch.arange(B, device=edges.device).view(-1, 1) * edges.nodes
        query, key = ((each + steps).flatten() for each in (edges.query, edges.key))
        edges = Edges(query, key, B, edges.nodes, edges.order.repeat(B), edges.weights.repeat(B))
    others = [each for each in mask.terms() if each is not first]
    if not others:
        return edges
    ends = AtEdges(edges, grid)
    may = torch.ones(len(edges), dtype=torch.bool, device=edges.device)
    for each in others:
        may &= ends.of(each)
    return edges.kept(may)


def scores_of(meaning: Meaning, q: Tensor, k: Tensor, edges: Edges) -> Tensor:
    """The score of each edge, (H,E): of a product without a copy of q and k for every edge; of a score whose two sides
    are computed apart, from these; of any other from the ends of each edge, as examples of one query and one key.
    """
    score = meaning.score
    if is_product(score):
        q, k, factor = score.factors(q.unsqueeze(0), k.unsqueeze(0))
        return edges.products(q[0] * factor, k[0])
    if is_apart(score):
        asking, offering = score.sides(q.unsqueeze(0), k.unsqueeze(0))
        return score.joined(edges.of_queries(asking[0]) + edges.of_keys(offering[0]))
    ends: list[Any] = [each.transpose(0, 1).unsqueeze(2) for each in (edges.of_queries(q), edges.of_keys(k))]
    return score(*ends).expand(len(edges), len(q), 1, 1).flatten(1).mT


def by_head(x: Tensor, heads: int) -> Tensor:
    """(B,H,T,D) -> (H,B T,D)."""
    return x.transpose(0, 1).flatten(1, 2)


def _bias(bias: Tensor, edges: Edges, heads: int) -> Tensor:
    """What the call adds to the scores (B or 1,H or 1,T or 1,S or 1), of each edge: (H or 1,E)."""
    ends = edges.query // edges.nodes, edges.query % edges.nodes, edges.key % edges.nodes
    b, i, j = (each if size > 1 else torch.zeros_like(each) for each, size in zip(ends, _sizes(bias), strict=True))
    return bias[b, :, i, j].mT


def _sizes(bias: Tensor) -> tuple[int, int, int]:
    return bias.shape[0], bias.shape[2], bias.shape[3]


def _sum(normaliser: Any, scores: Tensor, edges: Edges) -> Tensor:
    total = edges.total(scores)
    empty = total == 0
    return (scores / edges.of_queries(total.masked_fill(empty, 1.0))).masked_fill(
        edges.of_queries(empty.float()) > 0, 0.0
    )


NORMALISERS: dict[Any, Callable[[Any, Tensor, Edges], Tensor]] = {
    softmax: lambda normaliser, scores, edges: edges.softmax(scores * normaliser.beta),
    sigmoid: lambda normaliser, scores, edges: torch.sigmoid(scores),
    sum_: _sum,
    none: lambda normaliser, scores, edges: scores,
}
