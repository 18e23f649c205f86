"""How a set says which label an element has, and that a query found nothing: two criteria with the same interface.

focal          each label by itself, p = sigmoid(s); a query that found nothing finds every label unlikely. Its loss is
               that of binary cross-entropy times 0.25 (1 - p)^2, or 0.75 p^2 of what is not there (Lin et al. 2017)
cross_entropy  one of the labels or "nothing", p = softmax(s), in whose mean "nothing" counts a tenth (Carion et al.
               2020)

A criterion says how many scores a query has, what a label costs in the matching, the loss, and the probabilities.
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

SHARE, POWER = 0.25, 2.0  # of what is there, and how much what is known already counts less
NOTHING = 0.1  # the weight of a query that found nothing


class Scores(Protocol):
    """What a criterion of labels is asked."""

    rare: float  # the probability of each label before anything was learned; 0: all alike

    def outputs(self, labels: int) -> int:
        """The scores of a query."""

    def costs(self, scores: Tensor, wanted: Tensor) -> Tensor:
        """What it costs that a query answers for an element: scores (L,B,N,K), wanted (B,T) -> (L,B,N,T)."""

    def loss(self, scores: Tensor, wanted: Tensor) -> Tensor:
        """Of each query, (...): scores (...,K), wanted (...) the number of its label, or -1 for nothing."""

    def probabilities(self, scores: Tensor) -> Tensor:
        """Of each label, (...,labels)."""


class focal:
    """A sigmoid for each label."""

    rare = 0.01

    def outputs(self, labels: int) -> int:
        return labels

    def costs(self, scores: Tensor, wanted: Tensor) -> Tensor:
        p = scores.float().sigmoid()
        there = SHARE * (1 - p) ** POWER * -F.logsigmoid(scores.float())
        absent = (1 - SHARE) * p**POWER * -F.logsigmoid(-scores.float())
        return _taken(there - absent, wanted)

    def loss(self, scores: Tensor, wanted: Tensor) -> Tensor:
        scores = scores.float()
        target = F.one_hot(wanted.clamp(min=0), scores.shape[-1]).to(scores) * (wanted >= 0).unsqueeze(-1)
        p = scores.sigmoid()
        each = F.binary_cross_entropy_with_logits(scores, target, reduction="none")
        missed = p + target - 2 * p * target  # p where it should be 0, 1 - p where it should be 1
        return ((1 - SHARE + (2 * SHARE - 1) * target) * missed.square() * each).sum(-1)

    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.float().sigmoid()


class cross_entropy:
    """A softmax over the labels and "nothing", which comes last."""

    rare = 0.0

    def outputs(self, labels: int) -> int:
        return labels + 1

    def costs(self, scores: Tensor, wanted: Tensor) -> Tensor:
        return _taken(-scores.float().softmax(-1), wanted)

    def loss(self, scores: Tensor, wanted: Tensor) -> Tensor:
        last = scores.shape[-1] - 1
        number = wanted.where(wanted >= 0, last)
        each = F.cross_entropy(scores.float().flatten(0, -2), number.flatten(), reduction="none").view(number.shape)
        return each * (wanted >= 0).to(each).lerp(torch.ones_like(each), NOTHING)

    def probabilities(self, scores: Tensor) -> Tensor:
        return scores.float().softmax(-1)[..., :-1]


def _taken(costs: Tensor, wanted: Tensor) -> Tensor:
    """The costs (L,B,N,K) of the wanted labels (B,T), (L,B,N,T)."""
    L, _, N, _ = costs.shape
    return costs.gather(3, wanted.clamp(min=0)[None, :, None].expand(L, -1, N, -1))


CRITERIA: dict[str, type[Scores]] = {"focal": focal, "cross_entropy": cross_entropy}
