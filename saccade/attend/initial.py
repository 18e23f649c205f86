"""Initial weights."""

from __future__ import annotations

import torch
from torch import nn


def normal(*shape: int, std: float = 0.02) -> nn.Parameter:
    """A parameter drawn from a normal distribution.

    On the meta device there is nothing to draw, and torch would load its symbolic engine, a second's work, to draw it.
    """
    weight = torch.empty(*shape)
    if not weight.is_meta:
        nn.init.normal_(weight, std=std)
    return nn.Parameter(weight)
