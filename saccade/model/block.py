"""A block: a mixer, cross-attention where there is a context, feed-forward, each with a residual and a norm.

post      norm(x + f(x))                              Vaswani et al. 2017
pre       x + f(norm(x))                              GPT-2
deep      norm(alpha x + f(x)), small initial f       Wang et al. 2022
parallel  x + attention(norm(x)) + feed(norm(x))      GPT-J, PaLM
residual  x + f(x)                                      Wu et al. 2016 (GNMT)
half      (x + f(x)) sqrt(1/2)                            Gehring et al. 2017 (ConvS2S)
plain     f(x); after cross-attention tanh(W [f(x); x])       recurrent networks before: Luong et al. 2015

In place of attention a block may have any other mixer: see `mixer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask, padding
from saccade.attend.position import Position
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.context import Beside, Fixed
from saccade.model.dropout import dropout
from saccade.model.feed import Experts, FeedForward
from saccade.model.feeding import Feeding
from saccade.model.mixer import as_mixer, knowing, one_way
from saccade.model.norm import HALF, NORMS
from saccade.model.recurrent import Recurrent

WITHOUT = ("fixed", "into", "beside")  # what a decoder knows of a source where no attention looks at it


class BlockCache(NamedTuple):
    """What one block has seen: its own past, and the context."""

    own: Cache
    context: Cache


class Block(nn.Module):
    """(B,T,C) -> (B,T,C), with a context (B,S,C) if the block has cross-attention."""

    attention: Attention  # where attention mixes
    mixer: nn.Module  # where anything else does
    attention_norm: nn.Module
    feed: Any  # as are the norms, None where the configuration leaves it out
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
        cross: bool = False,
        alpha: float = 1.0,
    ) -> None:
        super().__init__()
        self.order, self.alpha, self.dropout = config.order, alpha, config.dropout
        self.looks = cross  # at a context, in one way or another
        self.mixes = "attention" if mixer == "attention" else "mixer"  # the name of what mixes, and of its norm

        def norm() -> nn.Module:
            return NORMS[config.norm](config.width, config.epsilon)

        def attention(
            mask: Mask | str | None, position: Position | str | None, summary: nn.Module | str | None = None
        ) -> Attention:
            return Attention(
                config.width,
                config.heads,
                kv_heads=config.kv_heads,
                head_width=config.head_width,
                head_norm=(lambda width: NORMS[config.norm](width, config.epsilon)) if config.head_norm else None,
                score=config.score,
                normaliser=config.normaliser,
                mask=mask,
                position=position,
                summary=summary,
                bias=config.bias if config.attention_bias is None else config.attention_bias,
                project=config.project,
                dropout=config.dropout if config.attention_dropout is None else config.attention_dropout,
            )

        attends, plain = self.mixes == "attention", config.order == "plain"
        bare = config.order in ("plain", "residual", "half")
        lowest = cross and config.cross == "lowest"
        feeds = cross and (config.cross == "feeding" or (lowest and number == 0))
        into = cross and config.cross == "into"
        made: nn.Module
        if attends:
            made = attention(mask, position, summary)
        elif feeds:
            made = Feeding(one_way(mixer), config.width, attention(None, None))
        elif lowest or into:
            made = Recurrent(one_way(mixer), config.width, inputs=2 * config.width)
        else:
            made = as_mixer(mixer, width=config.width, causal=causal, number=number)
        cross = cross and not feeds and not lowest and not into
        self.into = _without(config) if into else None
        self.beside = lowest and not feeds
        self.add_module(self.mixes, made)
        self.add_module(f"{self.mixes}_norm", None if bare else norm())
        self.cross = (_without(config) if config.cross in WITHOUT else attention(None, None)) if cross else None
        self.cross_norm = norm() if cross and not bare else None
        self.join = nn.Linear(2 * config.width, config.width) if cross and plain else None
        self.feed = _feed(config)
        self.feed_norm = None if bare or self.feed is None else norm()

    @property
    def mix(self) -> nn.Module:
        """What mixes."""
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
        found: list[Tensor] | None = None,
        embedded: Tensor | None = None,
    ) -> Tensor:
        """past: states (B,M,C) before x that it looks at too; seen: what it looks at in place of itself (B,T,C).

        found: where the lowest layer puts what it found in the context, for those above it. embedded: what x was before
        the first layer, (B,T,C); the context then holds values beside its states, (B,S,2C).
        """
        if self.looks and context is None:
            raise SaccadeError("this block looks at a context: pass what `encode` gave")
        own, kept = (None, None) if cache is None else cache
        here, norm = x if seen is None else seen, getattr(self, f"{self.mixes}_norm")

        def mix(y: Tensor) -> Tensor:
            if self.mixes != "attention":
                if past is not None or seen is not None:  # segments are in what was embedded already
                    raise SaccadeError("only attention looks at earlier segments, or at one stream from another")
                if isinstance(self.mixer, Feeding):
                    y, looked = self.mixer(y, context, mask=mask, context_mask=context_mask, cache=own, kept=kept)
                    if found is not None:
                        found.append(looked)
                    return y
                if self.into is not None:
                    y = torch.cat((y, self.into(y, context, mask=context_mask)), 2)
                y = torch.cat((y, found[0]), 2) if self.beside and found else y
                return self.mixer(y, mask=mask, cache=own)
            if past is None and seen is None:
                return self.attention(y, mask=mask, cache=own, segments=segments)
            source = here if past is None else torch.cat((past, here), 1)
            source = source if norm is None or self.order in ("post", "deep") else norm(source)
            start = source.shape[1] - here.shape[1]
            return self.attention(y, source, mask=mask, start=start, segments=segments)

        def cross(y: Tensor) -> Tensor:
            if isinstance(self.cross, Attention):
                states, values = cast(Tensor, context), None
                if embedded is not None:
                    y, (states, values) = (y + embedded) * HALF, states.chunk(2, 2)
                return _across(self.cross, y, states, values, context_mask, kept)
            return self.cross(y, context, mask=context_mask, start=_begin(own, mask, y))

        def feed(y: Tensor) -> Tensor:
            return self.feed(y, mask) if isinstance(self.feed, Experts) else self.feed(y)

        if self.order == "parallel":
            parts = [mix(norm(x)), *([] if self.feed is None else [feed(self.feed_norm(x))])]
            if self.cross is not None:
                parts.append(cross(self.cross_norm(x)))
            return sum((self._drop(part) for part in parts), x)
        x = self._part(x, mix, norm)
        if self.join is not None:
            x = self._drop(torch.tanh(self.join(torch.cat((cross(x), x), 2))))
        elif self.cross is not None:
            x = self._part(x, cross, self.cross_norm)
        return x if self.feed is None else self._part(x, feed, self.feed_norm)

    def _part(self, x: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module | None) -> Tensor:
        if norm is None:
            y = self._drop(f(x))
            return y if self.order == "plain" else x + y if self.order == "residual" else (x + y) * HALF
        if self.order == "pre":
            return x + self._drop(f(norm(x)))
        return norm((x if self.alpha == 1 else x * self.alpha) + self._drop(f(x)))

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def _without(config: ModelConfig) -> nn.Module:
    if config.cross == "beside":
        return Beside(config.width)
    return Fixed(config.width, mean=knowing(config.mixers(decoder=False)) == "mean")


def _begin(cache: Cache | None, mask: Mask | None, x: Tensor) -> int | Tensor:
    """The position of x[:, 0]; what mixes has read x already. Padding on the left stands before position 0."""
    if cache is not None:
        return cache.start - x.shape[1]
    if not isinstance(mask, padding) or mask.side == "right":
        return 0
    return (mask.held(x.shape[1], x.device) - x.shape[1]).expand(x.shape[0])


def _across(
    cross: Attention, x: Tensor, context: Tensor, values: Tensor | None, mask: Mask | None, cache: Cache | None
) -> Tensor:
    """Cross-attention; rows that share a context (beams) stand side by side and ask it as one."""
    if context.shape[0] == x.shape[0] or not context.shape[0]:
        return cross(x, context, values=values, mask=mask, cache=cache)
    together = x.reshape(context.shape[0], -1, x.shape[-1])
    output = cross(together, context, values=values, mask=mask, cache=cache).reshape(x.shape)
    for watcher in cross.watchers:
        watcher.calls[-1] = watcher.calls[-1].apart(x.shape[0] // context.shape[0])
    return output


def _feed(config: ModelConfig) -> nn.Module | None:
    if config.feed == "none":
        return None
    hidden = 4 * config.width if config.hidden is None else config.hidden

    def make() -> FeedForward:
        return FeedForward(config.width, hidden, config.feed, bias=config.bias, dropout=config.dropout)

    if not config.experts:
        return make()
    return Experts(make, config.width, config.experts, config.chosen, config.capacity)
