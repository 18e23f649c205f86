"""A block: attention, cross-attention where there is a context, feed-forward, each with a residual and a norm.

post      norm(x + f(x))                              Vaswani et al. 2017
pre       x + f(norm(x))                              GPT-2
deep      norm(alpha x + f(x)), small initial f       Wang et al. 2022
parallel  x + attention(norm(x)) + feed(norm(x))      GPT-J, PaLM
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.position import Position
from saccade.config import ModelConfig
from saccade.model.dropout import dropout
from saccade.model.feed import Experts, FeedForward
from saccade.model.norm import NORMS


class BlockCache(NamedTuple):
    """What one block has seen: its own past, and the context."""

    own: Cache
    context: Cache


class Block(nn.Module):
    """(B,T,C) -> (B,T,C), with a context (B,S,C) if the block has cross-attention."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        mask: Mask | str | None = None,
        position: Position | str | None = None,
        cross: bool = False,
        alpha: float = 1.0,
    ) -> None:
        super().__init__()
        self.order, self.alpha, self.dropout = config.order, alpha, config.dropout

        def norm() -> nn.Module:
            return NORMS[config.norm](config.width, config.epsilon)

        def attention(mask: Mask | str | None, position: Position | str | None) -> Attention:
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
                bias=config.bias if config.attention_bias is None else config.attention_bias,
                dropout=config.dropout if config.attention_dropout is None else config.attention_dropout,
            )

        self.attention = attention(mask, position)
        self.attention_norm = norm()
        self.cross = attention(None, None) if cross else None
        self.cross_norm = norm() if cross else None
        self.feed = _feed(config)
        self.feed_norm = norm()

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
    ) -> Tensor:
        """past: states (B,M,C) before x that it looks at too; seen: what it looks at in place of itself (B,T,C)."""
        own, kept = (None, None) if cache is None else cache
        here = x if seen is None else seen

        def attend(y: Tensor) -> Tensor:
            if past is None and seen is None:
                return self.attention(y, mask=mask, cache=own, segments=segments)
            source = here if past is None else torch.cat((past, here), 1)
            source = source if self.order in ("post", "deep") else self.attention_norm(source)
            start = source.shape[1] - here.shape[1]
            return self.attention(y, source, mask=mask, start=start, segments=segments)

        if self.order == "parallel":
            parts = [attend(self.attention_norm(x)), self.feed(self.feed_norm(x))]
            if self.cross is not None and self.cross_norm is not None:
                parts.append(_across(self.cross, self.cross_norm(x), context, context_mask, kept))
            return sum((self._drop(part) for part in parts), x)
        x = self._part(x, attend, self.attention_norm)
        if self.cross is not None and self.cross_norm is not None:
            cross = self.cross
            x = self._part(x, lambda y: _across(cross, y, context, context_mask, kept), self.cross_norm)
        return self._part(x, self.feed, self.feed_norm)

    def _part(self, x: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        if self.order == "pre":
            return x + self._drop(f(norm(x)))
        return norm((x if self.alpha == 1 else x * self.alpha) + self._drop(f(x)))

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def _across(cross: Attention, x: Tensor, context: Tensor | None, mask: Mask | None, cache: Cache | None) -> Tensor:
    """Cross-attention; rows that share a context (beams) stand side by side and ask it as one."""
    if context is None or context.shape[0] == x.shape[0] or not context.shape[0]:
        return cross(x, context, mask=mask, cache=cache)
    together = x.reshape(context.shape[0], -1, x.shape[-1])
    output = cross(together, context, mask=mask, cache=cache).view_as(x)
    for watcher in cross.watchers:
        watcher.calls[-1] = watcher.calls[-1].apart(x.shape[0] // context.shape[0])
    return output


def _feed(config: ModelConfig) -> nn.Module:
    hidden = 4 * config.width if config.hidden is None else config.hidden

    def make() -> FeedForward:
        return FeedForward(config.width, hidden, config.feed, bias=config.bias, dropout=config.dropout)

    if not config.experts:
        return make()
    return Experts(make, config.width, config.experts, config.chosen, config.capacity)
