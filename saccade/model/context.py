"""What a decoder may know of a source: one vector, the state beside it, or, where it looks, embeddings too.

`Fixed`: a source as one vector, whatever its length (Sutskever et al. 2014, Cho et al. 2014): the bottleneck that
attention was made for. It goes into each step of a recurrent decoder, or stands where cross-attention would. `Beside`,
in the same place: the decoder stands on the encoder, place above place (ByteNet, Kalchbrenner et al. 2016), so that the
time is linear and nothing is squeezed. `with_embedding`: what ConvS2S looks at and what it finds there (Gehring et al.
2017): a_ij = softmax_j((d_i + g_i) . z_j), c_i = sum_j a_ij (z_j + e_j), with the embeddings g of the target, e of the
source.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.attend.mask import Mask
from saccade.model.norm import HALF
from saccade.model.trail import Rows


def with_embedding(states: Tensor, embedded: Tensor) -> Tensor:
    """The states (B,S,C) of a source, to be looked at, and beside them what is found there, (B,S,2C)."""
    return torch.cat((states, (states + embedded) * HALF), 2)


class Fixed(nn.Module):
    """x (B,T,C), context (B,S,C) -> the same vector for every position, (B,T,C): made of the states of the source's
    last and first token, where the two directions of an encoder end; mean: of the mean of all, where a state knows its
    neighbours alone.
    """

    def __init__(self, width: int, context_width: int, *, mean: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.out = nn.Linear(context_width if mean else 2 * context_width, width)

    def forward(self, x: Tensor, context: Tensor, *, mask: Mask | None = None, start: int | Tensor = 0) -> Tensor:
        each = _beams(x, context)
        if not each:
            return self.out.bias.expand_as(x)  # a source of no tokens, as one that is all padding
        rows = Rows(context, mask, "a fixed context")
        states = rows.settle(context)
        one = rows.mean(states) if self.mean else torch.cat((rows.last(states), rows.first(states)), 1)
        return self.out(one).repeat_interleave(each, 0).unsqueeze(1).expand(-1, x.shape[1], -1)


class Beside(nn.Module):
    """x (B,T,C) at positions from `start` on, context (B,S,C) -> what stands at the same position of the source, or
    nothing before its beginning and behind its end, (B,T,C).
    """

    def __init__(self, width: int, context_width: int) -> None:
        super().__init__()
        self.out = nn.Linear(context_width, width)

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
