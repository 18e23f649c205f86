"""x W^T + b for a handful of rows, as a running batch has them.

MKL's product of 5 to 16 rows with a matrix (N,K), as torch stores it, takes up to twice as long as W x^T, the same
product transposed (LOG.md). One row, or many, are best as they are.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

FEW, SEVERAL, MANY = 5, 12, 16  # rows
LARGE = 1 << 20  # entries of a matrix from which fewer than SEVERAL rows pay


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As F.linear; transposed where that is faster and no gradients flow."""
    rows = x.numel() // x.shape[-1] if x.shape[-1] else 0
    if not FEW <= rows <= MANY or (rows < SEVERAL and weight.numel() < LARGE):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() or not x.is_cpu or x.dtype is not torch.float32 or torch.compiler.is_compiling():
        return F.linear(x, weight, bias)
    if weight.dtype is not torch.float32 or not weight.is_contiguous() or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)  # a transposed view, as GPT-2's weights are, is fast as it is
    turned = x.reshape(rows, -1).t().contiguous()
    output = torch.mm(weight, turned) if bias is None else torch.addmm(bias.unsqueeze(1), weight, turned)
    return output.t().contiguous().view(*x.shape[:-1], weight.shape[0])
