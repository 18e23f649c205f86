"""`PaddedRows`: which positions of a padded batch are real, for modules that step through them or take the last."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from saccade.attend.mask import Mask, padding
from saccade.error import SaccadeError


class PaddedRows:
    """The real positions of x (B,T,C) under a padding mask. `align` moves the padding to the right, `restore` back."""

    def __init__(self, x: Tensor, mask: Mask | None, whose: str) -> None:
        if mask is not None and not isinstance(mask, padding):
            raise SaccadeError(
                f"{whose} needs to know where each row begins and ends: the only mask it takes is padding"
            )
        self.T, self.left = x.shape[1], mask is not None and mask.side == "left"
        self.lengths: Tensor | None = None
        if isinstance(mask, padding):
            mask.fits(x.shape[0], 1, self.T, self.T, x.device)
            self.lengths = mask.held(self.T, x.device).expand(x.shape[0])
        self._device = x.device

    @property
    def real(self) -> Tensor | None:
        """Which positions are real, (B,T,1), in aligned rows; None: all."""
        return None if self.lengths is None else (self._steps < self.lengths.view(-1, 1)).unsqueeze(2)

    @property
    def held(self) -> Tensor | None:
        """Which positions are real, (B,T), in rows as they were padded; None: all."""
        return None if self.real is None else self.restore(self.real).squeeze(2)

    def align(self, x: Tensor) -> Tensor:
        """x (B,T,C) with the padding on the right and zeros in it, so that NaN there reaches no gradient."""
        x = self._rolled(x, -1) if self.left else x
        return x if self.real is None else x.masked_fill(~self.real, 0.0)

    def first(self, x: Tensor) -> Tensor:
        """The first real vector of each aligned row of x (B,T,C)."""
        return x[:, 0]

    def last(self, x: Tensor) -> Tensor:
        """The last real vector of each aligned row, (B,C)."""
        if self.lengths is None:
            return x[:, -1]
        return x[torch.arange(x.shape[0], device=x.device), (self.lengths - 1).clamp(min=0)]

    def mean(self, x: Tensor, first: int = 0) -> Tensor:
        """The mean of the real vectors of each aligned row, from number `first` on, (B,C)."""
        x = x[:, first:]
        return x.mean(1) if self.lengths is None else x.sum(1) / (self.lengths - first).clamp(min=1).unsqueeze(1)

    def sum(self, x: Tensor, first: int = 0) -> Tensor:
        """The sum of the same, (B,C)."""
        return x[:, first:].sum(1)

    def most(self, x: Tensor, first: int = 0) -> Tensor:
        """The largest number of each channel among the same, (B,C); 0 where there are none."""
        x, real = x[:, first:], None if self.real is None else self.real[:, first:]
        if not x.shape[1]:
            return x.sum(1)
        if real is None:
            return x.amax(1)
        return x.masked_fill(~real, -torch.inf).amax(1).masked_fill(~real.any(1), 0.0)

    def restore(self, x: Tensor) -> Tensor:
        """Undoes `align`: x with the padding where it was."""
        return self._rolled(x, 1) if self.left else x

    def reverse(self, x: Tensor) -> Tensor:
        """Each aligned row from its last real position to its first; the padding stays on the right."""
        if self.lengths is None:
            return x.flip(1)
        ends, steps = self.lengths.view(-1, 1), self._steps
        return _gather(x, torch.where(steps < ends, ends - 1 - steps, steps))

    @property
    def _steps(self) -> Tensor:
        return torch.arange(self.T, device=self._device)

    def _rolled(self, x: Tensor, way: int) -> Tensor:
        assert self.lengths is not None
        return _gather(x, (self._steps - way * (self.T - self.lengths).view(-1, 1)) % max(self.T, 1))


def _gather(x: Tensor, places: Tensor) -> Tensor:
    """The vectors of x (B,T,C) at places (B,T)."""
    return x.gather(1, places.unsqueeze(2).expand_as(x))


GATHERS: dict[str, Callable[[PaddedRows, Tensor], Tensor]] = {  # ways from a row of vectors (B,T,C) to one (B,C)
    "mean": PaddedRows.mean,
    "max": PaddedRows.most,
    "sum": PaddedRows.sum,
}
