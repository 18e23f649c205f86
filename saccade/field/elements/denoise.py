"""Denoising queries: wanted elements at a wrong place and under a wrong label, which the decoder puts right.

They teach it early to tell an element from what lies near it, since nothing is matched (Li et al. 2022, DN-DETR). Each
group holds every element twice: a little wrong, to be put right, and further off, to be told as nothing (Zhang et al.
2022, DINO).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

FLIPPED = 0.2  # of the labels are others, drawn at random
NEAR, FURTHER = 0.4, 1.0  # how far an end moves, in half sizes: up to the first, or from the first to the second


class Denoising(NamedTuple):
    """noised (B,M,2k), shown (B,M) and groups (B,M) are what the decoder is shown: places, labels, who sees whom; told
    (B,M), the label or -1, wanted (B,M,2k) and real (B,M) are what it should tell of them.
    """

    noised: Tensor
    shown: Tensor
    groups: Tensor
    told: Tensor
    wanted: Tensor
    real: Tensor


def denoising(
    labels: Tensor, spans: Tensor, counts: Tensor, groups: int, kinds: int, draw: np.random.Generator
) -> Denoising:
    """Queries for labels (B,T) and spans (B,T,2k), of which each example has counts (B,); kinds: how many labels."""
    T, axes = labels.shape[1], spans.shape[2] // 2
    real = (torch.arange(T) < counts.unsqueeze(1)).repeat(1, 2 * groups)
    told, wanted = labels.repeat(1, 2 * groups), spans.repeat(1, 2 * groups, 1)
    copy = torch.arange(2 * groups).repeat_interleave(T).expand(len(labels), -1)
    far = copy % 2 == 1
    shape = (*told.shape, 2 * axes)
    size = torch.from_numpy(draw.uniform(0.0, 1.0, shape)).to(spans)
    size = torch.where(far.unsqueeze(2), NEAR + (FURTHER - NEAR) * size, NEAR * size)
    sign = torch.from_numpy(draw.integers(0, 2, shape) * 2 - 1).to(spans)
    centre, extent = wanted.split(axes, 2)
    low, high = centre - extent / 2, centre + extent / 2
    half = extent / 2
    low, high = low + sign[..., :axes] * size[..., :axes] * half, high + sign[..., axes:] * size[..., axes:] * half
    low, high = low.clamp(0, 1), high.clamp(0, 1)
    noised = torch.cat(((low + high) / 2, (high - low).clamp(min=1e-3)), 2)
    other = torch.from_numpy(draw.integers(0, kinds, told.shape))
    flipped = torch.from_numpy(draw.random(told.shape) < FLIPPED)
    shown = torch.where(flipped, other, told)
    return Denoising(
        noised.where(real.unsqueeze(2), 0.5),
        shown.where(real, 0),
        (copy // 2 + 1).where(real, -1),
        told.where(real & ~far, -1),
        wanted,
        real,
    )
