"""What a decoder may know of a source without looking: one vector, or the state beside it.

`Fixed`: a source as one vector, whatever its length (Sutskever et al. 2014, Cho et al. 2014): the bottleneck that
attention was made for. `Beside`: the decoder stands on the encoder, place above place (ByteNet, Kalchbrenner et al.
2016), so that the time is linear and nothing is squeezed. Both stand where cross-attention would.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.attend.mask import Mask
from saccade.model.trail import Rows


class Fixed(nn.Module):
    """x (B,T,C), context (B,S,C) -> the same vector for every position, (B,T,C): made of the states of the source's
    last and first token, where the two directions of an encoder end.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, context: Tensor, *, mask: Mask | None = None, start: int | Tensor = 0) -> Tensor:
        each = _beams(x, context)
        if not each:
            return torch.zeros_like(x)
        rows = Rows(context, mask, "a fixed context")
        states = rows.settle(context)
        ends = states[:, -1] if rows.lengths is None else _at(states, rows.lengths - 1)
        vector = self.out(torch.cat((ends, states[:, 0]), 1))
        return vector.repeat_interleave(each, 0).unsqueeze(1).expand(-1, x.shape[1], -1)


class Beside(nn.Module):
    """x (B,T,C) at positions from `start` on, context (B,S,C) -> what stands at the same position of the source, or
    nothing before its beginning and behind its end, (B,T,C).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor, *, mask: Mask | None = None, start: int | Tensor = 0) -> Tensor:
        each = _beams(x, context)
        if not each:
            return torch.zeros_like(x)
        rows = Rows(context, mask, "a context beside")
        states = self.out(rows.settle(context))
        ends = context.shape[1] if rows.lengths is None else rows.lengths.view(-1, 1)
        first = start.view(-1, 1) if isinstance(start, Tensor) else start
        places = (first + torch.arange(x.shape[1], device=x.device)).expand(x.shape[0], -1)
        ends = ends.repeat_interleave(each, 0) if isinstance(ends, Tensor) else ends
        there = ((places >= 0) & (places < ends)).unsqueeze(2)
        source = torch.arange(x.shape[0], device=x.device).unsqueeze(1) // each
        return torch.where(there, states[source, places.clamp(0, context.shape[1] - 1)], 0.0)


def _beams(x: Tensor, context: Tensor) -> int:
    """How many rows of x, side by side, have the same source; 0: there is nothing to say, or nothing to know."""
    return x.shape[0] // context.shape[0] if x.numel() and context.numel() else 0


def _at(x: Tensor, places: Tensor) -> Tensor:
    """One vector of each row of x (B,T,C)."""
    return x[torch.arange(x.shape[0], device=x.device), places.clamp(min=0)]
