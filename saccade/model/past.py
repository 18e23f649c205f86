"""What mixers other than attention keep of the past: a cache of one vector a position.

A recurrent state, a running sum or the last inputs of a convolution are all "the last n vectors of each row", so the
cache of attention serves them too: rows of different lengths, beams, joining and rewinding are the same for every
mixer. A window lets it forget what nobody needs any more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.attend.cache import Cache


def append(cache: Cache, x: Tensor) -> None:
    """Adds the vectors (B,T,C) of new positions."""
    cache.append(x.unsqueeze(1), x[..., :0].unsqueeze(1))


def note(cache: Cache, first: Tensor, second: Tensor | None = None) -> None:
    """Adds vectors, perhaps with a second one each, of which only `latest` will be asked. They are the cache's then."""
    beside = first[..., :0] if second is None else second
    cache.note(first.unsqueeze(1), beside.unsqueeze(1))


def latest(cache: Cache, x: Tensor, width: int, *, second: bool = False) -> Tensor:
    """The last vector of each row (B,width), zeros where a row has none yet. x: what goes on from there, (B,...)."""
    newest = cache.newest
    if newest is None:
        return _outside_inference(last(cache, 1, x, width, second=second)[:, 0])
    return _outside_inference((newest.v if second else newest.k)[:, 0, 0])


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


def side_by_side(steps: list[Tensor]) -> Tensor:
    """(B,C) each -> (B,T,C); one alone is not copied."""
    return steps[0].unsqueeze(1) if len(steps) == 1 else torch.stack(steps, 1)


def _outside_inference(x: Tensor) -> Tensor:
    """x; a copy where it was made in inference mode and gradients are on, since autograd refuses such tensors."""
    return x.clone() if torch.is_grad_enabled() and x.is_inference() else x
