"""Convolutional mixers: every position sees its neighbours, and the depth of a stack widens the view.

Gated: (A x + a) * sigmoid(B x + b), Dauphin et al. 2017, Gehring et al. 2017 (ConvS2S). Dilated by 1, 2, 4 ... from one
layer to the next, so that the view doubles: Kalchbrenner et al. 2016 (ByteNet).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.trail import Rows, follow, last

WIDEST = 1024  # positions of a kernel
NARROW = 8  # up to which the inputs of a position, side by side, make one product that beats torch's convolution


class Convolution(nn.Module):
    """x (B,T,C) -> (B,T,C). causal: it sees its own position and those before; else as many on either side.

    With a cache it goes on from the last inputs of each row.
    """

    def __init__(self, width: int, kernel: int = 3, *, dilation: int = 1, causal: bool = False) -> None:
        super().__init__()
        if not isinstance(kernel, int) or isinstance(kernel, bool) or not 1 <= kernel <= WIDEST:
            raise SaccadeError(f"convolution: kernel is a whole number from 1 to {WIDEST}; got {kernel!r}")
        if not causal and kernel % 2 == 0:
            raise SaccadeError(f"convolution: a kernel of {kernel} has no middle; an encoder's is odd")
        self.width, self.kernel, self.dilation, self.causal = width, kernel, dilation, causal
        self.filter = nn.Conv1d(width, 2 * width, kernel, dilation=dilation)

    @property
    def window(self) -> int:
        """Positions that one of them sees, itself among them."""
        return self.reach + 1

    @property
    def reach(self) -> int:
        """How far back the first of its inputs lies."""
        return (self.kernel - 1) * self.dilation

    def forward(self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None:
            return self._on(x, cache)
        if not x.numel():
            return x
        rows = Rows(x, mask, "convolution")
        x = rows.settle(x)
        before, after = (self.reach, 0) if self.causal else (self.reach // 2, self.reach // 2)
        return rows.back(self._gated(F.pad(x, (0, 0, before, after))))

    def _on(self, x: Tensor, cache: Cache) -> Tensor:
        if not self.causal:
            raise SaccadeError("a convolution that sees what comes after needs the whole text: it has no cache")
        if not x.numel():
            return x
        before = last(cache, self.reach, x, self.width)
        follow(cache, x)
        return self._gated(torch.cat((before, x), 1))

    def _gated(self, x: Tensor) -> Tensor:
        """What comes out where all inputs are there: (B,reach+T,C) -> (B,T,C)."""
        if self.kernel > NARROW:
            return F.glu(self.filter(x.transpose(1, 2)), 1).transpose(1, 2)
        T = x.shape[1] - self.reach
        inputs, weight = [x.narrow(1, each * self.dilation, T) for each in range(self.kernel)], self.filter.weight
        if x.shape[0] * T <= weight.shape[0]:  # the smaller one is laid as the other lies: inputs of a step, ...
            beside, weight = torch.stack(inputs, 3).flatten(2), weight.flatten(1)
        else:  # ... the weights where there is a text to read
            beside, weight = torch.cat(inputs, 2), weight.transpose(1, 2).flatten(1)
        return F.glu(F.linear(beside, weight, self.filter.bias), 2)  # (B,T,C*kernel) and (2C,C*kernel)

    def extra_repr(self) -> str:
        return f"width={self.width}, kernel={self.kernel}, dilation={self.dilation}, causal={self.causal}"
