"""A learned factor of what a part of a block adds to its input.

channels(e)  x * w, w (C,) begins at e: LayerScale, for deep stacks (Touvron et al. 2021, CaiT)
one(e)       x * w, w a single number that begins at e: 0 lets a network begin without the part (Zhang et al. 2019,
             SAGAN; Bachlechner et al. 2021, ReZero)
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.numbers import is_number
from saccade.error import SaccadeError


class Scale(nn.Module):
    """x (...,C) -> x * weight."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


def channels(initial: float = 1e-5, *, width: int) -> Scale:
    """A factor for each channel."""
    return Scale(torch.full((width,), _checked("channels", initial)))


def one(initial: float = 0.0, *, width: int) -> Scale:
    """One factor for all."""
    return Scale(torch.tensor(_checked("one", initial)))


def as_scale(text: str | None, width: int) -> nn.Module | None:
    """The factor that a spec describes; None: there is none."""
    return None if text is None else spec.read(text, SCALES, "scale", width=width)


def _checked(name: str, initial: float) -> float:
    if not is_number(initial):
        raise SaccadeError(f"{name}: the factor begins at a number; got {initial!r}")
    return float(initial)


SCALES: dict[str, Callable[..., Scale]] = {"channels": channels, "one": one}
