"""Norms: `layer` (Ba et al. 2016) and `rms` (Zhang and Sennrich 2019)."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

HALF = 0.5**0.5  # what keeps the variance of a sum of two where no norm does (Gehring et al. 2017)
NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "layer": lambda width, epsilon: nn.LayerNorm(width, eps=epsilon),
    "rms": lambda width, epsilon: nn.RMSNorm(width, eps=epsilon),
}
