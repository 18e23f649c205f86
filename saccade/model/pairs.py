"""Pairs: a vector z_ij for each pair of positions beside the states x_i of an encoder (Jumper et al. 2021, AlphaFold).

    z_ij = what the input says of the pair + outer(x)_ij         before the first layer
    x    = block(x), whose attention adds W norm(z_ij) to its scores
    z    = z + update(norm(z)), update after update              in each layer
    z    = z + outer(x)                                          after the last

outer     W [q_i * k_j; q_i - k_j], from the states                       Lin et al. 2023 (ESMFold)
outgoing, incoming    the product of two edges of a triangle              see `triangle`
starting, ending      attention among the pairs with one end in common    see `triangle`
feed      each pair on its own

A model's `pair` says how wide z is, `pair_updates` which updates there are, in order; without any, pairs stay as the
input brings them and attention alone reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.mask import Mask, padding
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout
from saccade.model.feed import FeedForward
from saccade.model.norm import NORMS
from saccade.model.padded import PaddedRows
from saccade.model.triangle import Norm, TriangleAttention, TriangleMultiplication


class PairStates:
    """The vectors of pairs (B,T,T,P) of one pass: what the input says of them, and afterwards what the layers made of
    them. The caller makes and owns it.
    """

    def __init__(self, vectors: Tensor | None = None) -> None:
        self.vectors = vectors


class OuterProduct(nn.Module):
    """x (B,T,C) -> (B,T,T,P): W [q_j * k_i; q_j - k_i], where q and k are the halves of W_1 norm(x)."""

    def __init__(self, width: int, pair: int, norm: Norm = nn.LayerNorm) -> None:
        super().__init__()
        self.norm, self.inner = norm(width), max(pair // 2, 1)
        self.both = nn.Linear(width, 2 * self.inner)
        self.out = nn.Linear(2 * self.inner, pair)
        for each in (self.both, self.out):
            nn.init.xavier_uniform_(each.weight)
            nn.init.zeros_(each.bias)

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.both(self.norm(x)).split(self.inner, 2)
        q, k = q.unsqueeze(1), k.unsqueeze(2)
        return self.out(torch.cat((q * k, q - k), -1))


class PairLayer(nn.Module):
    """What one layer does with pairs: `bias` for its attention, and the updates after it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

        def norm(width: int) -> nn.Module:
            return NORMS[config.norm](width, config.epsilon)

        self.dropout = config.dropout
        self.norm = norm(config.pair)
        self.toward = nn.Linear(config.pair, config.heads, bias=False)
        nn.init.normal_(self.toward.weight, std=config.pair**-0.5)
        written = "" if config.pair_updates == "none" else config.pair_updates
        self.updates = nn.ModuleList(spec.sequence(written, UPDATES, "pair update", config=config, norm=norm))

    def bias(self, z: Tensor) -> Tensor:
        """What attention adds to its scores, (B,H,T,T)."""
        return self.toward(self.norm(z)).permute(0, 3, 1, 2)

    def forward(self, z: Tensor, x: Tensor, hidden: padding | None = None, real: Tensor | None = None) -> Tensor:
        """z and x after the layer's block; hidden and real: the padding, and which positions are none, (B,T)."""
        for update in self.updates:
            z = z + dropout(update(z, x, hidden, real), self.dropout, self.training)
        return z


class PairStack(nn.Module):
    """The parts of a stack that pairs pass through: `begin`, a `PairLayer` beside each block, `end`."""

    def __init__(self, config: ModelConfig, depth: int) -> None:
        super().__init__()
        self.first = OuterProduct(config.width, config.pair)
        self.layers = nn.ModuleList(PairLayer(config) for _ in range(depth))
        self.last = OuterProduct(config.width, config.pair)

    def begin(self, x: Tensor, given: Tensor | None) -> Tensor:
        """The pairs before the first layer, (B,T,T,P). given: what the input says of them."""
        z: Tensor = self.first(x)
        if given is None:
            return z
        if given.shape != z.shape:
            raise SaccadeError(
                f"the vectors of pairs are {tuple(z.shape)} for states {tuple(x.shape)}; got {tuple(given.shape)}: "
                "leave out class_tokens and registers"
            )
        return z + given

    def end(self, z: Tensor, x: Tensor) -> Tensor:
        """The pairs after the last layer, which know its states too."""
        found: Tensor = z + self.last(x)
        return found


class PairPass:
    """The pairs of one pass through a stack."""

    def __init__(self, parts: PairStack, x: Tensor, states: PairStates | None, mask: Mask | None) -> None:
        """states: what the input says of pairs, and where those of the last layer go; mask: the padding of x."""
        rows = PaddedRows(x, mask, "the update of pairs")
        self.parts, self.states = parts, states
        self.hidden, self.real = (mask if isinstance(mask, padding) else None), rows.held
        self.vectors = parts.begin(x, None if states is None else states.vectors)

    def bias(self, number: int) -> Tensor:
        """What layer `number` adds to the scores of its attention."""
        return cast(PairLayer, self.parts.layers[number]).bias(self.vectors)

    def update(self, number: int, x: Tensor) -> None:
        """The pairs after layer `number`, whose block has made x."""
        self.vectors = self.parts.layers[number](self.vectors, x, self.hidden, self.real)

    def end(self, x: Tensor) -> None:
        """Hands the pairs over; x: the last states."""
        if self.states is not None:
            self.states.vectors = self.parts.end(self.vectors, x)


class outer(nn.Module):
    """W [q_j * k_i; q_j - k_i], from the states."""

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *, config: ModelConfig, norm: Norm) -> None:
        super().__init__()
        self.product = OuterProduct(config.width, config.pair, norm)
        nn.init.zeros_(self.product.out.weight)

    def forward(self, z: Tensor, x: Tensor, hidden: padding | None, real: Tensor | None) -> Tensor:
        return self.product(x)


class multiplied(nn.Module):
    """`TriangleMultiplication` of normed pairs."""

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, incoming: bool, *, config: ModelConfig, norm: Norm) -> None:
        super().__init__()
        self.norm = norm(config.pair)
        self.triangle = TriangleMultiplication(config.pair, norm, incoming=incoming)

    def forward(self, z: Tensor, x: Tensor, hidden: padding | None, real: Tensor | None) -> Tensor:
        return self.triangle(self.norm(z), real)


class attended(nn.Module):
    """`TriangleAttention` of normed pairs."""

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, heads: int, ending: bool, *, config: ModelConfig, norm: Norm) -> None:
        super().__init__()
        self.norm = norm(config.pair)
        self.triangle = TriangleAttention(config.pair, heads, ending=ending)

    def forward(self, z: Tensor, x: Tensor, hidden: padding | None, real: Tensor | None) -> Tensor:
        return self.triangle(self.norm(z), hidden)


class fed(nn.Module):
    """A feed-forward part of normed pairs."""

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, factor: int, *, config: ModelConfig, norm: Norm) -> None:
        super().__init__()
        if not isinstance(factor, int) or factor < 1:
            raise SaccadeError(f"feed: the inner width is 1 or more times that of a pair; got {factor!r}")
        self.norm, self.feed = norm(config.pair), FeedForward(config.pair, factor * config.pair, "relu")
        nn.init.zeros_(self.feed.down.weight)
        nn.init.zeros_(self.feed.down.bias)

    def forward(self, z: Tensor, x: Tensor, hidden: padding | None, real: Tensor | None) -> Tensor:
        return self.feed(self.norm(z))


def outgoing(*, config: ModelConfig, norm: Norm) -> nn.Module:
    """The product of the edges that leave both ends."""
    return multiplied(False, config=config, norm=norm)


def incoming(*, config: ModelConfig, norm: Norm) -> nn.Module:
    """The product of the edges that reach both ends."""
    return multiplied(True, config=config, norm=norm)


def starting(heads: int = 4, *, config: ModelConfig, norm: Norm) -> nn.Module:
    """Attention among the pairs that begin at the same position."""
    return attended(heads, False, config=config, norm=norm)


def ending(heads: int = 4, *, config: ModelConfig, norm: Norm) -> nn.Module:
    """Attention among the pairs that end at the same position."""
    return attended(heads, True, config=config, norm=norm)


def feed(factor: int = 4, *, config: ModelConfig, norm: Norm) -> nn.Module:
    """Each pair on its own; factor: how many times wider it is inside."""
    return fed(factor, config=config, norm=norm)


UPDATES: dict[str, Callable[..., nn.Module]] = {
    "outer": outer,
    "outgoing": outgoing,
    "incoming": incoming,
    "starting": starting,
    "ending": ending,
    "feed": feed,
}
