"""The matcher: which query answers for which wanted element, each for one at most, at the least cost (Kuhn 1955).

    cost = label * c(scores, label) + span * |place - wanted|_1 - overlap * generalised(place, wanted)

c is what the criterion says of a label (see `saccade.field.elements.scores`); Carion et al. 2020. No gradient goes
through it. Its result does not depend on the order of the wanted elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.elements.overlap import generalised


class Weights(NamedTuple):
    """How much each part of the cost, and of the loss, counts."""

    label: float = 2.0
    span: float = 5.0
    overlap: float = 2.0


class Matched(NamedTuple):
    """Pairs of queries and wanted elements: the layer, the example, the query and the element of each, (M,)."""

    layer: Tensor
    row: Tensor
    query: Tensor
    element: Tensor


def match(costs: Tensor, spans: Tensor, wanted: Tensor, counts: Sequence[int], weights: Weights) -> Matched:
    """The cheapest pairs in each layer and example. costs (L,B,N,T): of the labels; spans (L,B,N,2k); wanted (B,T,2k),
    of which each example has so many.
    """
    with torch.no_grad():
        one, other = spans.unsqueeze(3), wanted.unsqueeze(1)  # (L,B,N,1,2k), (B,1,T,2k)
        away = (one - other).abs().sum(-1)
        total = weights.label * costs + weights.span * away - weights.overlap * generalised(one, other)
        found = total.float().cpu().numpy()
    found = np.nan_to_num(found, nan=1e6, posinf=1e6, neginf=-1e6)
    return pairs_of(found, counts, spans.device)


def pairs_of(costs: np.ndarray, counts: Sequence[int], device: torch.device) -> Matched:
    """The cheapest pairs of costs (L,B,N,T), of which example b has counts[b] elements."""
    assign = assignment()
    found: list[np.ndarray] = []
    for layer, rows in enumerate(costs):
        for row, (table, count) in enumerate(zip(rows, counts, strict=True)):
            if count:
                query, element = assign(table[:, :count])
                found.append(np.stack([np.full_like(query, layer), np.full_like(query, row), query, element]))
    every = np.concatenate(found, 1) if found else np.empty((4, 0), np.int64)
    return Matched(*torch.from_numpy(every.astype(np.int64)).to(device))


def assignment():  # type: ignore[no-untyped-def]  # scipy's own function
    """The solver of the assignment problem."""
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise SaccadeError("matching sets of elements needs scipy: pip install 'saccade[boxes]'") from None
    return linear_sum_assignment
