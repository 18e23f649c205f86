"""The loss of tokens, summed: cross-entropy with label smoothing (Szegedy et al. 2016), in slices.

The scores of a large vocabulary are by far the largest tensor of a small model. Here they live for a slice of rows at a
time, and the gradients are taken in the same pass, so that no scores are kept.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.model.head import vocabulary
from saccade.model.model import Model

SLICE = 1 << 20  # scores alive at a time


def token_loss(
    model: Model, states: Tensor, targets: Tensor, smoothing: float = 0.0, weights: Tensor | None = None
) -> Tensor:
    """Sum over rows of -(1 - e) log p(target) - e mean_v log p(v), by the rows' weights; states (N,C), others (N,)."""
    head = model.head
    if not isinstance(head, vocabulary) or torch.is_autocast_enabled(states.device.type):
        rows = states.shape[0] if torch.is_grad_enabled() else max(1, SLICE // model.config.vocab)
        losses = [
            F.cross_entropy(model.answer(x[None])[0].float(), target, label_smoothing=smoothing, reduction="none")
            for x, target in zip(states.split(rows), targets.split(rows), strict=True)
        ]
        each = torch.cat(losses)
        return each.sum() if weights is None else (each * weights).sum()
    states = states if head.factor == 1 else states * head.factor
    total: Tensor = Sliced.apply(states, head.weight, head.bias, targets, smoothing, weights)
    return total


class Sliced(torch.autograd.Function):
    """x W^T + b, and the loss of it; equal to `F.cross_entropy(F.linear(x, W, b), ..., reduction="sum")`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        weights: Tensor | None,
    ) -> Tensor:
        """Gradients for a loss of weight 1 are made now, where any are wanted."""
        wanted = any(ctx.needs_input_grad)
        grad_x = torch.empty_like(x) if wanted else None
        grad_weight = torch.zeros_like(weight) if wanted else None
        grad_bias = None if bias is None or not wanted else torch.zeros_like(bias)
        total = x.new_zeros(())
        rows = max(x.shape[1], SLICE // weight.shape[0])  # as many as are wide, lest W's gradient be read too often
        for begin in range(0, x.shape[0], rows):
            part, target = x[begin : begin + rows], targets[begin : begin + rows, None]
            logs = F.linear(part, weight, bias).log_softmax(-1)
            share = None if weights is None else weights[begin : begin + rows, None]
            said = logs.gather(1, target)
            total += -(1 - smoothing) * (said if share is None else said * share).sum()
            if smoothing:
                total += -smoothing * (logs if share is None else logs * share).sum() / logs.shape[1]
            if grad_x is None or grad_weight is None:
                continue
            grad = logs.exp_()  # p - (1 - e) [v = target] - e / V
            if smoothing:
                grad -= smoothing / grad.shape[1]
            grad.scatter_add_(1, target, grad.new_full(target.shape, smoothing - 1))
            grad = grad if share is None else grad.mul_(share)
            torch.mm(grad, weight, out=grad_x[begin : begin + rows])
            grad_weight.addmm_(grad.T, part)
            if grad_bias is not None:
                grad_bias += grad.sum(0)
        ctx.save_for_backward(grad_x, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the forward pass, times that of the loss; the pass can be run backwards once."""
        made = [None if each is None else each.mul_(outer[0]) for each in ctx.saved_tensors]
        return (*made, None, None, None)
