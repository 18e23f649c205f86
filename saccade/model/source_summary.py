"""What a decoder reads of a source without attention.

`SourceVector`: the source as one vector, whatever its length (Sutskever et al. 2014, Cho et al. 2014). This is the
bottleneck that attention removes. It goes into each step of a recurrent decoder, or stands where cross-attention would.
`SourceBeside`: the encoder's state at the same position (ByteNet, Kalchbrenner et al. 2016): linear in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade.attend.mask import Mask
from saccade.model.padded import PaddedRows


class SourceVector(nn.Module):
    """x (B,T,C), context (B,S,C) -> the same vector for every position, (B,T,C): made of the states of the source's
    last and first token, where the two directions of an encoder end; mean: of the mean of all, where a state knows its
    neighbours alone.
    """

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, width: int, context_width: int, *, mean: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.out = nn.Linear(context_width if mean else 2 * context_width, width)

    @property
    def context_breaks(self) -> Mapping[str, str]:
        """The symmetries of the source that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        return {} if self.mean else {"permutation": "the source is told by its first and last states"}

    def forward(self, x: Tensor, context: Tensor, *, mask: Mask | None = None, start: int | Tensor = 0) -> Tensor:
        each = _beams(x, context)
        if not each:
            return self.out.bias.expand_as(x)  # a source without tokens counts as one that is all padding
        rows = PaddedRows(context, mask, "a fixed context")
        states = rows.align(context)
        one = rows.mean(states) if self.mean else torch.cat((rows.last(states), rows.first(states)), 1)
        return self.out(one).repeat_interleave(each, 0).unsqueeze(1).expand(-1, x.shape[1], -1)


class SourceBeside(nn.Module):
    """x (B,T,C) at positions from `start` on, context (B,S,C) -> what stands at the same position of the source, or
    nothing before its beginning and behind its end, (B,T,C).
    """

    breaks: ClassVar[Mapping[str, str]] = {
        "permutation": "each place of the source stands beside its own",
        "shift": "each place of the source stands beside its own",
    }
    context_breaks = breaks

    def __init__(self, width: int, context_width: int) -> None:
        super().__init__()
        self.out = nn.Linear(context_width, width)

    def forward(self, x: Tensor, context: Tensor, *, mask: Mask | None = None, start: int | Tensor = 0) -> Tensor:
        each = _beams(x, context)
        if not each:
            return torch.zeros_like(x)
        rows = PaddedRows(context, mask, "a context beside")
        states = self.out(rows.align(context))
        ends = context.shape[1] if rows.lengths is None else rows.lengths.view(-1, 1)
        first = start.view(-1, 1) if isinstance(start, Tensor) else start
        places = (first + torch.arange(x.shape[1], device=x.device)).expand(x.shape[0], -1)
        ends = ends.repeat_interleave(each, 0) if isinstance(ends, Tensor) else ends
        there = ((places >= 0) & (places < ends)).unsqueeze(2)
        source = torch.arange(x.shape[0], device=x.device).unsqueeze(1) // each
        return torch.where(there, states[source, places.clamp(0, context.shape[1] - 1)], 0.0)


def _beams(x: Tensor, context: Tensor) -> int:
    """How many rows of x, side by side, have the same source; 0 where x or the source is empty."""
    return x.shape[0] // context.shape[0] if x.numel() and context.numel() else 0
