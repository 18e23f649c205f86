"""Convolutional mixers: every position sees its neighbours, and the depth of a stack widens the view.

Gated: (A x + a) * sigmoid(B x + b), Dauphin et al. 2017, Gehring et al. 2017 (ConvS2S). Dilated by 1, 2, 4 ... from one
layer to the next, so that the view doubles: Kalchbrenner et al. 2016 (ByteNet).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.padded import PaddedRows
from saccade.model.past import append, last

WIDEST = 1024  # positions of a kernel
NARROW = 8  # kernels up to this width are faster as one product of the inputs side by side than in torch's convolution


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

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": "a convolution has a weight for each neighbour"}
        return found if self.causal else {**found, "causality": "this convolution sees neighbours on both sides"}

    def forward(self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None:
            return self._continue(x, cache)
        if not x.numel():
            return x
        rows = PaddedRows(x, mask, "convolution")
        x = rows.align(x)
        before, after = (self.reach, 0) if self.causal else (self.reach // 2, self.reach // 2)
        return rows.restore(self._gated(F.pad(x, (0, 0, before, after))))

    def _continue(self, x: Tensor, cache: Cache) -> Tensor:
        """The output at new positions, whose earlier inputs come from the cache."""
        if not self.causal:
            raise SaccadeError("a convolution that sees what comes after needs the whole text and takes no cache")
        if not x.numel():
            return x
        before = last(cache, self.reach, x, self.width)
        append(cache, x)
        return self._gated(torch.cat((before, x), 1))

    def _gated(self, x: Tensor) -> Tensor:
        """The gated convolution of inputs that are padded already: (B,reach+T,C) -> (B,T,C)."""
        if self.kernel > NARROW:
            return F.glu(self.filter(x.transpose(1, 2)), 1).transpose(1, 2)
        T = x.shape[1] - self.reach
        inputs, weight = [x.narrow(1, each * self.dilation, T) for each in range(self.kernel)], self.filter.weight
        # Inputs and weights must agree in the order of C and kernel; the smaller of the two is rearranged.
        if x.shape[0] * T <= weight.shape[0]:  # the inputs, in a step
            beside, weight = torch.stack(inputs, 3).flatten(2), weight.flatten(1)
        else:  # the weights, for a whole text
            beside, weight = torch.cat(inputs, 2), weight.transpose(1, 2).flatten(1)
        return F.glu(F.linear(beside, weight, self.filter.bias), 2)  # (B,T,C*kernel) and (2C,C*kernel)

    def extra_repr(self) -> str:
        return f"width={self.width}, kernel={self.kernel}, dilation={self.dilation}, causal={self.causal}"
