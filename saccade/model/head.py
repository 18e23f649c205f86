"""What a model says in the end: a head turns states (B,T,C) into the answer.

vocabulary     scores of the next token                    (B,T,V)
masked         scores of the masked token (BERT)           (B,T,V)
next_sentence  whether B follows A, from the pooled state  (B,2)
label(n)       one of n labels, from the pooled state      (B,n)
numbers(n)     n numbers, from the pooled state            (B,n)
span           where an answer begins and ends             (B,T,2)

`reads` names the states that a head is shown (see `hidden`), `pooled` says whether one vector of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout
from saccade.model.feed import PLAIN
from saccade.model.linear import linear
from saccade.model.norm import NORMS
from saccade.model.tokens import vocab_of


class vocabulary(nn.Module):
    """x W^T (+ b): W is the embedding's own table where the model ties them."""

    reads, pooled = "last", False

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.factor = config.width**-0.5 if config.scale_output else 1.0
        self.weight = normal(vocab_of(config), config.width)
        self.bias = nn.Parameter(torch.zeros(config.vocab)) if config.output_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return linear(x if self.factor == 1 else x * self.factor, self.weight, self.bias)


class masked(nn.Module):
    """A small network before the vocabulary, which always has a bias (BERT, RoBERTa).

    With `follows`, also a projection (B,C) -> (B,2) that answers whether B follows A, from the pooled state.
    """

    reads, pooled = "last", False

    def __init__(self, follows: bool = False, *, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.norm = NORMS[config.norm](config.width, config.epsilon)
        self.activation = PLAIN.get(config.feed, F.gelu)
        self.weight = normal(vocab_of(config), config.width)
        self.bias = nn.Parameter(torch.zeros(config.vocab))
        self.follows = nn.Linear(config.width, 2) if follows else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.norm(self.activation(self.dense(x))), self.weight, self.bias)


def pretraining(*, config: ModelConfig) -> masked:
    """`masked`, with BERT's second question beside it."""
    return masked(True, config=config)


class label(nn.Module):
    """One of n labels."""

    reads, pooled = "last", True

    def __init__(self, n: int = 2, *, config: ModelConfig) -> None:
        super().__init__()
        self.dropout, self.out = config.dropout, nn.Linear(config.width, n)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(dropout(x, self.dropout, self.training))


def numbers(n: int = 1, *, config: ModelConfig) -> label:
    """n numbers, each W x + b as the scores of labels are."""
    return label(n, config=config)


def next_sentence(*, config: ModelConfig) -> label:
    """Two labels: it follows, or it does not."""
    return label(2, config=config)


class span(nn.Module):
    """The scores of being the first and the last token of an answer."""

    reads, pooled = "last", False

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.out = nn.Linear(config.width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x)


def make_head(text: str, config: ModelConfig) -> nn.Module:
    """A head from its spec, as wide as the stack whose states it reads."""
    name, _ = spec.arguments(text, HEADS, "head")
    last = config.decoder > 0 and getattr(HEADS.get(name), "reads", "last") != "encoder"
    made = spec.read(text, HEADS, "head", config=config.stack(decoder=last))
    if made.pooled and not config.pooler:
        raise SaccadeError(f"the head {text!r} reads a pooled state: give the model pooler = true")
    return made


HEADS: dict[str, Callable[..., nn.Module]] = {
    "vocabulary": vocabulary,
    "masked": masked,
    "pretraining": pretraining,
    "next_sentence": next_sentence,
    "label": label,
    "numbers": numbers,
    "span": span,
}
