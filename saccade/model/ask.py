"""Vectors that ask a set, and what is made of them: the blocks of the Set Transformer (Lee et al. 2019).

MAB(X, Y)   X looks at Y, then feeds forward            `Asking`
ISAB_m(X)   MAB(X, MAB(I, X)), I m learned vectors      the mixer `induced(m)` with the feed-forward of its block
PMA_k(X)    MAB(S, X), S k learned vectors              the pool `seeds`; several seeds then look at each other

An ISAB costs m T looks and not T T. Residuals and norms are those of the model's blocks: `order = "post"` is the
paper's, `"pre"` norms what goes in, and what comes out once more at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.initial import normal
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.dropout import dropout

SPREAD = 1.0  # of learned vectors that ask: apart from the first, so that they come to ask for different things


class Asking(nn.Module):
    """x (B,T,C), context (B,S,C) -> (B,T,C). parts: makes its modules, as the configuration of the model says."""

    feed: Any
    feed_norm: Any

    def __init__(self, parts: Any, learned: tuple[str, ...] = ("rows",)) -> None:
        """learned: which of both, as rows and columns of a map, are vectors of the model itself."""
        super().__init__()
        if parts.config.order not in ("pre", "post"):
            raise SaccadeError(f"vectors that ask a set have order = 'pre' or 'post'; got {parts.config.order!r}")
        self.first, self.dropout = parts.config.order == "pre", parts.config.dropout
        self.attention, self.attention_norm = parts.looking(), parts.norm()
        self.attention.learned = learned
        self.feed = parts.feed()
        self.feed_norm = None if self.feed is None else parts.norm()

    def forward(self, x: Tensor, context: Tensor, mask: Mask | None = None) -> Tensor:
        """mask: what of the context may be looked at."""
        asked = self.attention_norm(x) if self.first else x
        x = x + dropout(self.attention(asked, context, mask=mask), self.dropout, self.training)
        x = x if self.first else self.attention_norm(x)
        if self.feed is None:
            return x
        fed = dropout(self.feed(self.feed_norm(x) if self.first else x), self.dropout, self.training)
        return x + fed if self.first else self.feed_norm(x + fed)


class Induced(nn.Module):
    """x (B,T,C) -> (B,T,C): x looks at what `points` learned vectors found in x. The block around it adds the rest."""

    window = None
    breaks: ClassVar[Mapping[str, str]] = {"causality": "a set knows no order"}

    def __init__(self, parts: Any, points: int) -> None:
        super().__init__()
        if not isinstance(points, int) or isinstance(points, bool) or points < 1:
            raise SaccadeError(f"induced: points is a whole number from 1; got {points!r}")
        self.points = normal(points, parts.config.width, std=SPREAD)
        self.ask = Asking(parts)
        self.norm = parts.norm() if self.ask.first else None
        self.attention = parts.looking()
        self.attention.learned = ("columns",)

    def forward(self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None) -> Tensor:
        """mask: padding, which nothing looks at."""
        if cache is not None:
            raise SaccadeError("induced reads whole sets, and not step by step")
        found = self.ask(self.points.repeat(len(x), 1, 1), x, mask)
        return self.attention(x, found if self.norm is None else self.norm(found))


class SeedPool(nn.Module):
    """states (B,T,C) -> (B,C), of several seeds (B,k,C)."""

    def __init__(self, parts: Any, seeds: int) -> None:
        super().__init__()
        self.vectors = normal(seeds, parts.config.width, std=SPREAD)
        self.ask = Asking(parts)
        self.among = Asking(parts, ("rows", "columns")) if seeds > 1 else None
        self.norm = parts.norm() if self.ask.first else None

    def forward(self, states: Tensor, mask: Mask | None = None) -> Tensor:
        found = self.ask(self.vectors.repeat(len(states), 1, 1), states, mask)
        found = found if self.among is None else self.among(found, found)
        found = found if self.norm is None else self.norm(found)
        return found if self.among is not None else found.squeeze(1)
