"""What mixers other than attention keep of the past: a cache of one vector a position.

A recurrent state, a running sum or the last inputs of a convolution are all "the last n vectors of each row", so the
cache of attention serves them too: rows of different lengths, beams, joining and rewinding are the same for every
mixer. A window lets it forget what nobody needs any more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask, padding
from saccade.error import SaccadeError


def follow(cache: Cache, x: Tensor) -> None:
    """Adds the vectors (B,T,C) of new positions."""
    cache.append(x.unsqueeze(1), x[..., :0].unsqueeze(1))


def note(cache: Cache, first: Tensor, second: Tensor | None = None) -> None:
    """The same, perhaps with second ones, where who goes on asks for the `latest` alone. They are the cache's then."""
    beside = first[..., :0] if second is None else second
    cache.note(first.unsqueeze(1), beside.unsqueeze(1))


def latest(cache: Cache, x: Tensor, width: int, *, second: bool = False) -> Tensor:
    """The last vector of each row (B,width), zeros where a row has none yet. x: what goes on from there, (B,...)."""
    newest = cache.newest
    if newest is None:
        return _usable(last(cache, 1, x, width, second=second)[:, 0])
    return _usable((newest.v if second else newest.k)[:, 0, 0])


def last(cache: Cache, n: int, x: Tensor, width: int, *, second: bool = False) -> Tensor:
    """The last n vectors of each row (B,n,width), zeros where a row has not come so far. x: what comes next."""
    kept = cache.values if second else cache.keys
    if kept is None or not kept.shape[2]:
        return x.new_zeros(x.shape[0], n, width)
    kept = kept[:, 0]
    if cache.lengths is None and cache.held >= n:
        return kept[:, cache.held - n :]
    ends = cache.start - cache.forgotten
    ends = ends if isinstance(ends, Tensor) else torch.full((kept.shape[0],), ends, device=kept.device)
    places = ends.view(-1, 1) - n + torch.arange(n, device=kept.device)
    there = (places >= 0).unsqueeze(2)
    taken = kept.gather(1, places.clamp(min=0).unsqueeze(2).expand(-1, -1, kept.shape[2]))
    return torch.where(there, taken, 0.0)


def row(steps: list[Tensor]) -> Tensor:
    """(B,C) each -> (B,T,C); one alone is not copied."""
    return steps[0].unsqueeze(1) if len(steps) == 1 else torch.stack(steps, 1)


class Rows:
    """Where the real positions of a padded batch lie, for those who go from one to the next, or take the last."""

    def __init__(self, x: Tensor, mask: Mask | None, whose: str) -> None:
        if mask is not None and not isinstance(mask, padding):
            raise SaccadeError(f"{whose} asks where each row begins and ends: of masks it takes padding alone")
        self.T, self.left = x.shape[1], mask is not None and mask.side == "left"
        self.lengths: Tensor | None = None
        if isinstance(mask, padding):
            mask.fits(x.shape[0], 1, self.T, self.T, x.device)
            self.lengths = mask.held(self.T, x.device).expand(x.shape[0])
        self._device = x.device

    @property
    def real(self) -> Tensor | None:
        """Which positions hold something, (B,T,1), with the padding on the right."""
        return None if self.lengths is None else (self._steps < self.lengths.view(-1, 1)).unsqueeze(2)

    @property
    def held(self) -> Tensor | None:
        """The same as they were padded, (B,T)."""
        return None if self.real is None else self.back(self.real).squeeze(2)

    def settle(self, x: Tensor) -> Tensor:
        """x (B,T,C) with the padding on the right, and zeros there: what is broken must not reach a gradient either."""
        x = self._moved(x, -1) if self.left else x
        return x if self.real is None else x.masked_fill(~self.real, 0.0)

    def first(self, x: Tensor) -> Tensor:
        """The first real vector of each row of x (B,T,C), settled."""
        return x[:, 0]

    def last(self, x: Tensor) -> Tensor:
        """The last one."""
        if self.lengths is None:
            return x[:, -1]
        return x[torch.arange(x.shape[0], device=x.device), (self.lengths - 1).clamp(min=0)]

    def mean(self, x: Tensor) -> Tensor:
        """The mean of all real ones."""
        return x.mean(1) if self.lengths is None else x.sum(1) / self.lengths.clamp(min=1).unsqueeze(1)

    def back(self, x: Tensor) -> Tensor:
        """x as it was padded."""
        return self._moved(x, 1) if self.left else x

    def turn(self, x: Tensor) -> Tensor:
        """Each row from its last real position to its first, the padding still behind; twice is as before."""
        if self.lengths is None:
            return x.flip(1)
        ends, steps = self.lengths.view(-1, 1), self._steps
        return _picked(x, torch.where(steps < ends, ends - 1 - steps, steps))

    @property
    def _steps(self) -> Tensor:
        return torch.arange(self.T, device=self._device)

    def _moved(self, x: Tensor, way: int) -> Tensor:
        assert self.lengths is not None
        return _picked(x, (self._steps - way * (self.T - self.lengths).view(-1, 1)) % max(self.T, 1))


def _picked(x: Tensor, places: Tensor) -> Tensor:
    """The vectors of x (B,T,C) at places (B,T)."""
    return x.gather(1, places.unsqueeze(2).expand_as(x))


def _usable(x: Tensor) -> Tensor:
    """x; a copy where it comes from inference mode and gradients may be asked of what follows."""
    return x.clone() if torch.is_grad_enabled() and x.is_inference() else x
