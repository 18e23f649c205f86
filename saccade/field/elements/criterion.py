"""The criterion: the loss of a set, from what each layer tells of its queries and what was wanted.

    label    of every query: its label where it answers for an element, nothing where it does not
    span     |place - wanted|_1 of those that answer
    overlap  1 - generalised(place, wanted) of those that answer

Each is summed over the queries and averaged over the layers (Al-Rfou et al. 2019, Carion et al. 2020: every layer
learns to answer). Denoising queries know which element they came from (Li et al. 2022): nothing is matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.field.elements.denoise import Denoising
from saccade.field.elements.matcher import Matched, Weights, match
from saccade.field.elements.overlap import generalised
from saccade.field.elements.scores import Scores

Sums = dict[str, Tensor]


class Told(NamedTuple):
    """What each layer tells of each query: scores (L,B,N,K), and places (L,B,N,2k)."""

    scores: Tensor
    spans: Tensor

    def queries(self, first: int | None, last: int | None) -> Told:
        """Those of some of the queries."""
        return Told(self.scores[:, :, first:last], self.spans[:, :, first:last])


class Wanted(NamedTuple):
    """The elements of each example: labels (B,T) and places (B,T,2k), of which each has so many."""

    labels: Tensor
    spans: Tensor
    counts: Sequence[int]


def matched(criterion: Scores, weights: Weights, told: Told, wanted: Wanted) -> Matched:
    """Which query of each layer answers for which element."""
    with torch.no_grad():
        costs = criterion.costs(told.scores, wanted.labels)
        return match(costs, told.spans, wanted.spans, wanted.counts, weights)


def set_loss(criterion: Scores, weights: Weights, told: Told, wanted: Wanted) -> Sums:
    """The terms of queries that are matched."""
    layer, row, query, element = matched(criterion, weights, told, wanted)
    labels = wanted.labels.new_full(told.scores.shape[:3], -1)
    labels[layer, row, query] = wanted.labels[row, element]
    label = criterion.loss(told.scores, labels).sum()
    return _terms(label, told.spans[layer, row, query], wanted.spans[row, element], len(told.scores))


def denoising_loss(criterion: Scores, told: Told, wanted: Denoising) -> Sums:
    """The terms of denoising queries."""
    every = wanted.told.expand(told.scores.shape[:3])
    label = (criterion.loss(told.scores, every) * wanted.real).sum()
    known = every >= 0
    return _terms(label, told.spans[known], wanted.wanted.expand(told.spans.shape)[known], len(told.scores))


def _terms(label: Tensor, spans: Tensor, wanted: Tensor, layers: int) -> Sums:
    away = (spans - wanted).abs().sum()
    apart = (1 - generalised(spans, wanted)).sum()
    return {"label": label / layers, "span": away / layers, "overlap": apart / layers}
