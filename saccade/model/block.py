"""A block: a mixer, cross-attention where there is a context, feed-forward, each with a residual and a norm.

post      norm(x + f(x))                              Vaswani et al. 2017
pre       x + f(norm(x))                              GPT-2
deep      norm(alpha x + f(x)), small initial f       Wang et al. 2022
parallel  x + attention(norm(x)) + feed(norm(x))      GPT-J, PaLM
residual  x + f(x)                                    Wu et al. 2016 (GNMT)
half      (x + f(x)) sqrt(1/2)                        Gehring et al. 2017 (ConvS2S)
plain     f(x); of cross-attention tanh(W [f(x); x])  Luong et al. 2015, and recurrent networks before it

In place of attention a block may have any other mixer: see `mixer`. What it knows of a source: see `cross`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.edges import Edges
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.position import Position
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.cells import Sides
from saccade.model.cross import BlockInput, Kind, Looking, alone, as_kind
from saccade.model.dropout import dropout, skip
from saccade.model.feed import Experts
from saccade.model.norm import HALF
from saccade.model.parts import EncoderOutput, Parts
from saccade.model.scale import as_scale

BARE = ("plain", "residual", "half")  # orders without norms


class BlockCache(NamedTuple):
    """What one block has seen: its own past, and the context."""

    own: Cache
    context: Cache


class Block(nn.Module):
    """(B,T,C) -> (B,T,C), with a context (B,S,C) if the block knows of a source."""

    attention: Attention  # where attention mixes
    mixer: nn.Module  # where anything else does
    attention_norm: nn.Module
    feed: Any  # a module, or None where the configuration leaves it out; so are cross and the norms
    cross: Any
    cross_norm: Any
    feed_norm: Any

    def __init__(
        self,
        config: ModelConfig,
        *,
        mask: Mask | str | None = None,
        position: Position | str | None = None,
        summary: nn.Module | str | None = None,
        mixer: str = "attention",
        number: int = 0,
        causal: bool = False,
        source: EncoderOutput | None = None,
        alpha: float = 1.0,
        path_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        encoder = source or EncoderOutput(config.width, "first")
        parts = Parts(config, mask, position, summary, mixer, number, causal, encoder)
        self.order, self.alpha, self.dropout = config.order, alpha, config.dropout
        self.scaled, self.path_dropout = config.scale is not None, path_dropout
        self.mixes = parts.mixes  # "attention" or "mixer", the name of the module and of its norm
        self.kind: Kind = alone() if source is None else as_kind(config.cross, number)
        self.looks = source is not None  # at a context, in one way or another
        bare = config.order in BARE
        for name, made in self.kind.modules(parts).items():
            self.add_module(name, made)
            if name != "into":
                self.add_module(f"{name}_norm", None if bare or made is None else parts.norm())
        joins = config.order == "plain" and self.cross is not None
        self.join = nn.Linear(2 * config.width, config.width) if joins else None
        self.feed = parts.feed()
        self.feed_norm = None if bare or self.feed is None else parts.norm()
        named = ((mix, self.mixes), (look, "cross"), (feed, "feed"))
        self.parts = [(part, name) for part, name in named if getattr(self, name) is not None]
        for _, name in self.parts if self.scaled else ():
            self.add_module(f"{name}_scale", as_scale(config.scale, config.width))

    @property
    def mix(self) -> nn.Module:
        """The module in which positions meet: `attention` or `mixer`."""
        return cast(nn.Module, getattr(self, self.mixes))

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Mask | None = None,
        context_mask: Mask | None = None,
        cache: BlockCache | None = None,
        past: Tensor | None = None,
        seen: Tensor | None = None,
        segments: tuple[Tensor, Tensor] | None = None,
        places: Tensor | None = None,
        found: list[Tensor] | None = None,
        embedded: Tensor | None = None,
        grid: Sides | None = None,
        edges: Edges | None = None,
        bias: Tensor | None = None,
        context_bias: Tensor | None = None,
    ) -> Tensor:
        """past: states (B,M,C) before x that it looks at too; seen: what it looks at in place of itself (B,T,C).

        places: where x stands, for positions that turn. found: where the lowest layer puts what it found in the
        context, for those above it. embedded: what x was before the first layer, (B,T,C); the context then holds values
        beside its states, (B,S,2C). grid: the rows and columns of a picture's cells. edges: those of a batch of graphs.
        bias: what is added to the scores of self-attention, (B,H,T,T); context_bias: to those of the look at the
        context, (B,H,T,S).
        """
        if self.looks and context is None:
            raise SaccadeError("this block looks at a context: pass what `encode` gave")
        # Segments are fine with any mixer, since the embedding has added them already.
        if self.mixes != "attention" and (past is not None or seen is not None):
            raise SaccadeError("only attention looks at earlier segments, or at one stream from another")
        own, kept = (None, None) if cache is None else cache
        further = (segments, places, found, embedded, grid, edges, bias, context_bias)
        inputs = BlockInput(x, context, mask, context_mask, own, kept, past, seen, *further)
        return ORDERS[self.order](self, x, inputs)

    def before(self, x: Tensor) -> Tensor:
        """x as attention or the mixer takes it: normed, where the order puts the norm first."""
        norm = getattr(self, f"{self.mixes}_norm")
        return x if norm is None or self.order in ("post", "deep") else norm(x)

    def drop(self, x: Tensor) -> Tensor:
        """x with dropout, while training."""
        return dropout(x, self.dropout, self.training)

    def added(self, x: Tensor, name: str) -> Tensor:
        """The output x of the part called `name` as it is added to its input: with dropout, scaled where the
        configuration says so, and while training left out for some examples where it does.
        """
        x = self.drop(x)
        x = getattr(self, f"{name}_scale")(x) if self.scaled else x
        return skip(x, self.path_dropout) if self.training and self.path_dropout else x


def mix(block: Block, y: Tensor, inputs: BlockInput) -> Tensor:
    """The output of attention or the mixer."""
    return block.kind.mix(block, y, inputs)


def look(block: Block, y: Tensor, inputs: BlockInput) -> Tensor:
    """The output of cross-attention, or of what stands in its place."""
    return cast(Looking, block.kind).look(block, y, inputs)


def feed(block: Block, y: Tensor, inputs: BlockInput) -> Tensor:
    """Each vector on its own; experts also take the padding mask."""
    return block.feed(y, inputs.mask) if isinstance(block.feed, Experts) else block.feed(y)


def post(block: Block, x: Tensor, inputs: BlockInput) -> Tensor:
    """norm(alpha x + f(x))."""
    for part, name in block.parts:
        kept = x if block.alpha == 1 else x * block.alpha
        x = getattr(block, f"{name}_norm")(kept + block.added(part(block, x, inputs), name))
    return x


def pre(block: Block, x: Tensor, inputs: BlockInput) -> Tensor:
    """x + f(norm(x))."""
    for part, name in block.parts:
        x = x + block.added(part(block, getattr(block, f"{name}_norm")(x), inputs), name)
    return x


def parallel(block: Block, x: Tensor, inputs: BlockInput) -> Tensor:
    """x + the sum of all f(norm(x)), cross-attention last."""
    parts = sorted(block.parts, key=lambda each: each[0] is look)
    made = [(part(block, getattr(block, f"{name}_norm")(x), inputs), name) for part, name in parts]
    return sum((block.added(*each) for each in made), x)


def residual(block: Block, x: Tensor, inputs: BlockInput) -> Tensor:
    """x + f(x)."""
    for part, name in block.parts:
        x = x + block.added(part(block, x, inputs), name)
    return x


def half(block: Block, x: Tensor, inputs: BlockInput) -> Tensor:
    """(x + f(x)) sqrt(1/2)."""
    for part, name in block.parts:
        x = (x + block.added(part(block, x, inputs), name)) * HALF
    return x


def plain(block: Block, x: Tensor, inputs: BlockInput) -> Tensor:
    """f(x); what is found in a source joins x by a layer of its own."""
    for part, _ in block.parts:
        y = part(block, x, inputs)
        if part is look:
            assert block.join is not None
            y = torch.tanh(block.join(torch.cat((y, x), 2)))
        x = block.drop(y)
    return x


Part = Callable[[Block, Tensor, BlockInput], Tensor]
ORDERS: dict[str, Part] = {
    "post": post,
    "pre": pre,
    "deep": post,
    "parallel": parallel,
    "residual": residual,
    "half": half,
    "plain": plain,
}
