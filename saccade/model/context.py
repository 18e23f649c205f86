"""What a decoder may know of a source without looking: one vector, or the state beside it.

`Fixed`: a source as one vector, whatever its length (Sutskever et al. 2014, Cho et al. 2014): the bottleneck that
attention was made for. `Beside`: the decoder stands on the encoder, place above place (ByteNet, Kalchbrenner et al.
2016), so that the time is linear and nothing is squeezed. Both stand where cross-attention would.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.attend.layer import Log
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.trail import Rows


class Fixed(nn.Module):
    """x (B,T,C), context (B,S,C) -> the same vector for every position, (B,T,C): made of the states of the source's
    last and first token, where the two directions of an encoder end.
    """

    watchers: tuple[Log, ...] = ()  # it looks at nothing that could be watched

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(2 * width, width)

    def forward(
        self, x: Tensor, context: Tensor | None, *, mask: Mask | None = None, start: int | Tensor = 0
    ) -> Tensor:
        if context is None:
            raise SaccadeError("this decoder has a source: pass what `encode` gave")
        if not context.shape[1] or not x.numel():
            return torch.zeros_like(x)
        rows = Rows(context, mask, "a fixed context")
        states = rows.settle(context)
        ends = states[:, -1] if rows.lengths is None else _at(states, rows.lengths - 1)
        vector = self.out(torch.cat((ends, states[:, 0]), 1))
        each = x.shape[0] // max(context.shape[0], 1)  # beams of one source stand side by side
        return vector.repeat_interleave(each, 0).unsqueeze(1).expand(-1, x.shape[1], -1)


class Beside(nn.Module):
    """x (B,T,C) at positions from `start` on, context (B,S,C) -> what stands at the same position of the source, or
    nothing before its beginning and behind its end, (B,T,C).
    """

    watchers: tuple[Log, ...] = ()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(
        self, x: Tensor, context: Tensor | None, *, mask: Mask | None = None, start: int | Tensor = 0
    ) -> Tensor:
        if context is None:
            raise SaccadeError("this decoder has a source: pass what `encode` gave")
        if not context.shape[1] or not x.numel():
            return torch.zeros_like(x)
        rows = Rows(context, mask, "a context beside")
        states = self.out(rows.settle(context))
        ends = context.shape[1] if rows.lengths is None else rows.lengths.view(-1, 1)
        first = start.view(-1, 1) if isinstance(start, Tensor) else start
        each = x.shape[0] // max(context.shape[0], 1)  # beams of one source stand side by side
        places = (first + torch.arange(x.shape[1], device=x.device)).expand(x.shape[0], -1)
        ends = ends.repeat_interleave(each, 0) if isinstance(ends, Tensor) else ends
        there = ((places >= 0) & (places < ends)).unsqueeze(2)
        source = torch.arange(x.shape[0], device=x.device).unsqueeze(1) // max(each, 1)
        return torch.where(there, states[source, places.clamp(0, context.shape[1] - 1)], 0.0)


def _at(x: Tensor, places: Tensor) -> Tensor:
    """One vector of each row of x (B,T,C)."""
    return x[torch.arange(x.shape[0], device=x.device), places.clamp(min=0)]
