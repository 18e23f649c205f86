"""Heads: what turns the states of a model (B,T,C) into its output.

vocabulary     scores of the next token                    (B,T,V)
masked         scores of the masked token (BERT)           (B,T,V)
next_sentence  whether B follows A, from the pooled state  (B,2)
label(n)       one of n labels, from the pooled state      (B,n)
tags(n)        one of n labels for every token             (B,T,n)
numbers(n)     n numbers, from the pooled state            (B,n)
mixture(k,d)   k Gaussians in d dimensions, from the       (B,k,1+2d)
               pooled state, or each from one of k seeds
span           where an answer begins and ends             (B,T,2)
taught(n)      one of n labels, from two class tokens      (B,n)
ctc            the token, or a blank, at each place of X   (B,S,V)
pairs(n)       n numbers for each pair of positions        (B,S,S,n)
elements(n)    one of n labels for each query, layer by    (L,B,N,n)
               layer
spans(k)       its centre and size along k axes            (L,B,N,2k)
futures(k,s)   k ways on of s steps for every agent        (B,N,k(1+2s))

`reads` names the states that a head is shown (see `hidden`), `pooled` says whether one vector of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout
from saccade.model.feed import PLAIN
from saccade.model.futures import futures
from saccade.model.linear import linear
from saccade.model.norm import NORMS
from saccade.model.pool import SIDE_BY_SIDE
from saccade.model.tokens import vocab_of


class vocabulary(nn.Module):
    """x W^T (+ b): W is the embedding's own table where the model ties them."""

    reads, pooled = "last", False
    breaks: ClassVar[Mapping[str, str]] = {}

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
    breaks: ClassVar[Mapping[str, str]] = {}

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
    """One of n labels. bare: from the state as it is, without a pooler and without a bias (GPT-2, LLaMA)."""

    reads, pooled = "last", True
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 2, bare: bool = False, *, config: ModelConfig) -> None:
        super().__init__()
        self.bare = bare
        self.dropout, self.out = 0.0 if bare else config.dropout, nn.Linear(config.width, n, bias=not bare)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(dropout(x, self.dropout, self.training))


class tags(nn.Module):
    """One of n labels for every token."""

    reads, pooled = "last", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 2, *, config: ModelConfig) -> None:
        super().__init__()
        self.dropout, self.out = config.dropout, nn.Linear(config.width, n)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(dropout(x, self.dropout, self.training))


class taught(nn.Module):
    """One of n labels from two class tokens: the mean of the scores of each, one of which learned from a teacher
    (Touvron et al. 2021, DeiT).
    """

    reads, pooled = "last", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 2, *, config: ModelConfig) -> None:
        super().__init__()
        if config.class_tokens != 2:
            raise SaccadeError("the head 'taught' reads two class tokens: give the model class_tokens = 2")
        self.out, self.teacher = nn.Linear(config.width, n), nn.Linear(config.width, n)

    def forward(self, x: Tensor) -> Tensor:
        return (self.out(x[:, 0]) + self.teacher(x[:, 1])) / 2


class ctc(nn.Module):
    """Scores of a token, or of the blank between two, for every state of the encoder (Graves et al. 2006)."""

    reads, pooled = "encoder", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.dropout, self.out = config.dropout, nn.Linear(config.width, vocab_of(config))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(dropout(x, self.dropout, self.training))


class pair_numbers(nn.Module):
    """n numbers for each pair of positions: W f(W_1 norm(z)). symmetric: ij and ji have the same, their mean."""

    reads, pooled = "pairs", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 1, symmetric: bool = True, *, config: ModelConfig) -> None:
        super().__init__()
        if not config.pair:
            raise SaccadeError("the head 'pairs' reads vectors of pairs: give the model some, as in model.pair = 32")
        self.symmetric = symmetric
        self.norm = NORMS[config.norm](config.pair, config.epsilon)
        self.inner, self.out = nn.Linear(config.pair, 2 * config.pair), nn.Linear(2 * config.pair, n)

    def forward(self, z: Tensor) -> Tensor:
        y = self.out(F.gelu(self.inner(self.norm(z))))
        return (y + y.transpose(1, 2)) / 2 if self.symmetric else y


class elements(nn.Module):
    """The scores of n labels for each query, from the states of every layer. rare: of each label the probability before
    anything was learned; 0: all labels are alike (a softmax). deep: W_2 relu(W_1 relu(W_0 x)), as `spans` has it
    (Fang et al. 2021, YOLOS); else W x + b (Carion et al. 2020).
    """

    reads, pooled = "layers", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, n: int = 2, rare: float = 0.01, deep: bool = False, *, config: ModelConfig) -> None:
        super().__init__()
        if deep:
            self.inner, self.further = nn.Linear(config.width, config.width), nn.Linear(config.width, config.width)
        self.deep, self.out = deep, nn.Linear(config.width, n)
        if rare:
            nn.init.constant_(self.out.bias, math.log(rare / (1 - rare)))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.further(torch.relu(self.inner(x)))) if self.deep else x)


class spans(nn.Module):
    """The centre and the size along k axes, as shares of the example: sigmoid(W_2 relu(W_1 relu(W_0 x))), from the
    states of every layer (Carion et al. 2020).
    """

    reads, pooled = "layers", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, k: int = 2, *, config: ModelConfig) -> None:
        super().__init__()
        self.inner, self.further = nn.Linear(config.width, config.width), nn.Linear(config.width, config.width)
        self.out = nn.Linear(config.width, 2 * k)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.further(torch.relu(self.inner(x))))).sigmoid()


def numbers(n: int = 1, *, config: ModelConfig) -> label:
    """n numbers, each W x + b as the scores of labels are."""
    return label(n, config=config)


class mixture(nn.Module):
    """k Gaussians in d dimensions: of each the logarithm of its weight (up to a constant), its mean, and the logarithms
    of its spreads. From k seeds, each tells one; else the pooled state tells all.
    """

    reads, pooled, several = "last", True, True

    def __init__(self, k: int = 4, d: int = 2, *, config: ModelConfig) -> None:
        super().__init__()
        seeded = config.seeds > 1
        if seeded and config.seeds != k:
            raise SaccadeError(f"a mixture of {k} Gaussians is told by {k} seeds, or by one state: pool = 'seeds({k})'")
        self.shape = k, 1 + 2 * d
        self.out = nn.Linear(config.width, self.shape[1] if seeded else math.prod(self.shape))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x).view(len(x), *self.shape)


def next_sentence(*, config: ModelConfig) -> label:
    """Two labels: it follows, or it does not."""
    return label(2, config=config)


class span(nn.Module):
    """The scores of being the first and the last token of an answer."""

    reads, pooled = "last", False
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.out = nn.Linear(config.width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x)


def make_head(text: str, config: ModelConfig) -> nn.Module:
    """A head from its spec, as wide as the states that it reads."""
    name, _ = spec.arguments(text, HEADS, "head")
    if config.seeds > 1 and not getattr(HEADS.get(name), "several", False):
        raise SaccadeError(
            f"the head {name!r} reads one vector, and pool = {config.pool!r} gives several: write seeds(1)"
        )
    last = config.decoder > 0 and getattr(HEADS.get(name), "reads", "last") != "encoder"
    width = config.states_width if last or not config.decoder else config.encoder_width
    if getattr(HEADS.get(name), "pooled", name in POOLED):
        width *= SIDE_BY_SIDE.get(config.pool, 1)
    own = config.stack(decoder=last)
    return spec.read(text, HEADS, "head", config=own if width == own.width else own.model_copy(update={"width": width}))


HEADS: dict[str, Callable[..., nn.Module]] = {
    "vocabulary": vocabulary,
    "masked": masked,
    "pretraining": pretraining,
    "next_sentence": next_sentence,
    "label": label,
    "tags": tags,
    "numbers": numbers,
    "mixture": mixture,
    "span": span,
    "taught": taught,
    "ctc": ctc,
    "pairs": pair_numbers,
    "elements": elements,
    "spans": spans,
    "futures": futures,
}
POOLED = ("numbers", "next_sentence")  # functions that make a pooled head
