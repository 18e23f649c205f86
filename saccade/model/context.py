"""`Fixed`: a source as one vector, whatever its length (Sutskever et al. 2014, Cho et al. 2014).

The bottleneck that attention was made for: what a decoder knows of a source is the states of its last and its first
token, where the two directions of an encoder end.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.layer import Log
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.trail import Rows


class Fixed(nn.Module):
    """x (B,T,C), context (B,S,C) -> the same vector for every position, (B,T,C). Stands where cross-attention would."""

    watchers: tuple[Log, ...] = ()  # it looks at nothing that could be watched

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(2 * width, width)

    def forward(
        self, x: Tensor, context: Tensor | None = None, *, mask: Mask | None = None, cache: Cache | None = None
    ) -> Tensor:
        if context is None:
            raise SaccadeError("this decoder has a source: pass what `encode` gave")
        rows = Rows(context, mask, "a fixed context")
        states = rows.settle(context)
        ends = states[:, -1] if rows.lengths is None else _at(states, rows.lengths - 1)
        return self.out(torch.cat((ends, states[:, 0]), 1)).unsqueeze(1).expand(-1, x.shape[1], -1)


def _at(x: Tensor, places: Tensor) -> Tensor:
    """One vector of each row of x (B,T,C)."""
    return x[torch.arange(x.shape[0], device=x.device), places.clamp(min=0)]
