"""Dropout (Srivastava et al. 2014) whose random numbers are cheap.

On a processor torch draws one random number an element from a serial generator, which costs a small model a sixth of
its time. Here eight elements share one draw of 64 bits, a byte each: p is a multiple of 1/256, and the scale is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """x with a share p of its elements 0 and the others divided by what is left, while training."""
    if not p or not training:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, p)
    made: Tensor = Dropped.apply(x, min(max(round(p * 256), 1), 255))
    return made


def skip(x: Tensor, p: float) -> Tensor:
    """x (B,...) with a share p of its examples 0 and the others divided by what is left (Huang et al. 2016)."""
    keep = torch.rand(len(x), *[1] * (x.dim() - 1), device=x.device) >= p
    return x * (keep.to(x.dtype) / (1 - p))


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """No dropout while the context lasts; afterwards each module is in training mode or not, as before.

    Recurrent layers, which have no dropout here, stay in training mode where there are gradients: cuDNN asks for it.
    """
    trained = [module for model in models for module in model.modules() if module.training]
    trained = [each for each in trained if not (isinstance(each, nn.RNNBase) and torch.is_grad_enabled())]
    for module in trained:
        module.training = False
    try:
        yield
    finally:
        for module in trained:
            module.training = True


class Dropped(torch.autograd.Function):
    """x * keep * 256 / (256 - dropped), with dropped / 256 the share that is 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        """The mask is kept for the backward pass, already scaled."""
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(1 << 63), None)
        keep = (words.view(torch.uint8)[: x.numel()] >= dropped).view(x.shape)
        scale = keep.to(x.dtype).mul_(256 / (256 - dropped))
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None]:
        """The same elements, the same scale."""
        (scale,) = ctx.saved_tensors
        return outer[0] * scale, None
