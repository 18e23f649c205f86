"""How far elements overlap, along any number of axes: intersection over union, and its generalised form.

    overlap      |a and b| / |a or b|
    generalised  overlap - |hull without (a or b)| / |hull|, from -1 to 1     Rezatofighi et al. 2019

Elements are centre and size along k axes, (...,2k), as shares of the example. The measure of one is the product of its
sizes: a length, an area, a volume.
"""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 1e-9  # of a measure that something is divided by


def ends(spans: Tensor) -> tuple[Tensor, Tensor]:
    """Where elements begin and end, (...,k) each."""
    centre, size = spans.chunk(2, -1)
    return centre - size / 2, centre + size / 2


def spans_of(low: Tensor, high: Tensor) -> Tensor:
    """The inverse of `ends`."""
    return torch.cat(((low + high) / 2, high - low), -1)


def overlap(one: Tensor, other: Tensor) -> Tensor:
    """Intersection over union, (...) of elements that broadcast."""
    common, union, _ = _measures(one, other)
    return common / union.clamp(min=LEAST)


def generalised(one: Tensor, other: Tensor) -> Tensor:
    """Generalised intersection over union: tells how far apart two elements are that do not meet."""
    common, union, hull = _measures(one, other)
    hull = hull.clamp(min=LEAST)
    return common / union.clamp(min=LEAST) - (hull - union) / hull


def _measures(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of the intersection, of the union, and of the smallest element around both."""
    (low, high), (begin, end) = ends(one), ends(other)
    common = (torch.minimum(high, end) - torch.maximum(low, begin)).clamp(min=0).prod(-1)
    hull = (torch.maximum(high, end) - torch.minimum(low, begin)).prod(-1)
    own = [(above - below).prod(-1) for below, above in ((low, high), (begin, end))]
    return common, own[0] + own[1] - common, hull
