"""The loss of tokens, summed: cross-entropy with label smoothing (Szegedy et al. 2016), in slices.

The scores of a large vocabulary are by far the largest tensor of a small model. Here they live for a slice of rows at a
time, and the gradients are taken in the same pass, so that no scores are kept.

Two passes over the same examples, which differ by what dropout took, may be asked to agree (R-Drop, Liang et al. 2021):

    (CE(p) + CE(q)) / 2 + a (KL(p | q) + KL(q | p)) / 2        half of the paper's loss, whose alpha is 2 a
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
    model: Model,
    states: Tensor,
    targets: Tensor,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
    agree: float = 0.0,
) -> Tensor:
    """Sum over rows of -(1 - e) log p(target) - e mean_v log p(v), by the rows' weights; states (N,C), others (N,).

    With agree, states are those of two passes, one behind the other (2N,C), and the sum goes over N rows.
    """
    head, passes = model.head, states.unflatten(0, (2 if agree else 1, targets.shape[0]))  # (P,N,C)
    half = states.dtype.itemsize < 4 or torch.is_autocast_enabled(states.device.type)
    # `Sliced` computes a matrix product in full precision, and makes gradients that only learning needs.
    if isinstance(head, vocabulary) and torch.is_grad_enabled() and not half:
        passes = passes if head.factor == 1 else passes * head.factor
        total: Tensor = Sliced.apply(passes, head.weight, head.bias, targets, smoothing, weights, agree)
        return total
    rows = max(1, targets.shape[0] if torch.is_grad_enabled() else SLICE // model.config.vocab)
    losses = [
        score_loss(model.answer(x), target, smoothing, agree)
        for x, target in zip(passes.split(rows, 1), targets.split(rows), strict=True)
    ]
    return _weighted(torch.cat(losses), weights).sum()


def place_loss(model: Model, states: Tensor, wanted: Tensor, smoothing: float, agree: float) -> Tensor:
    """The `token_loss` of states (B,T,C) at the places whose wanted token (B,T) is not -1; with agree, of states
    (2B,T,C).
    """
    flat, targets = states.flatten(0, 1), wanted.flatten()
    places = (targets >= 0).nonzero().squeeze(1)
    if len(places) < len(targets):
        both = torch.cat([places, places + len(targets)]) if agree else places
        flat, targets = flat[both], targets[places]
    return token_loss(model, flat, targets, smoothing, agree=agree)


def place_losses(model: Model, states: Tensor, wanted: Tensor) -> Tensor:
    """The nats of each wanted token (B,T), 0 where it is -1, from states (B,T,C); in slices of rows, since all scores
    of a large vocabulary would take too much memory.
    """
    rows = max(1, SLICE // model.config.vocab)
    pairs = zip(states.flatten(0, 1).split(rows), wanted.flatten().split(rows), strict=True)
    parts = [F.cross_entropy(model.answer(x[None])[0].float(), y, reduction="none", ignore_index=-1) for x, y in pairs]
    return torch.cat(parts).view(wanted.shape)


def text_losses(model: Model, states: Tensor, wanted: Tensor) -> Tensor:
    """The nats of each text, and how many tokens are wanted of it, (B,2)."""
    each = place_losses(model, states, wanted).sum(1)
    return torch.stack([each, (wanted >= 0).sum(1).to(each.dtype)], 1)


def score_loss(scores: Tensor, targets: Tensor, smoothing: float = 0.0, agree: float = 0.0) -> Tensor:
    """The loss of each row as the formulas have it, in float32 at least; `Sliced` is held against it.

    scores (P,N,V) of one pass or of two, targets (N,) -> (N,).
    """
    logs = scores.log_softmax(-1, torch.promote_types(scores.dtype, torch.float32))
    said = logs.gather(2, targets.expand(logs.shape[:1] + targets.shape)[..., None]).squeeze(2)
    each = -(1 - smoothing) * said.mean(0) - smoothing * logs.mean((0, 2))
    if not agree:
        return each
    p, q = logs
    return each + agree / 2 * ((p.exp() - q.exp()) * (p - q)).sum(-1)


class Sliced(torch.autograd.Function):
    """The sum of `score_loss(x W^T + b, ...)` by the rows' weights, without ever holding all scores."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        weights: Tensor | None,
        agree: float,
    ) -> Tensor:
        """x (P,N,C). The gradients are made here, while the scores of a slice exist; `backward` only scales them."""
        grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(weight)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        total = x.new_zeros(())
        rows = max(x.shape[2], SLICE // weight.shape[0])  # at least C: each slice reads and writes all of W's gradient
        for begin in range(0, x.shape[1], rows):
            place = slice(begin, begin + rows)
            part, share = x[:, place], None if weights is None else weights[place]
            each, grad = _loss_and_gradient(F.linear(part, weight, bias), targets[place], smoothing, agree)
            total += _weighted(each, share).sum()
            grad = _weighted(grad, None if share is None else share[:, None]).flatten(0, 1)
            grad_x[:, place] = torch.mm(grad, weight).view_as(part)
            grad_weight.addmm_(grad.T, part.flatten(0, 1))
            if grad_bias is not None:
                grad_bias += grad.sum(0)
        ctx.save_for_backward(grad_x, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients made in `forward`, times that of the loss; in place, so that it can be called only once."""
        made = [None if each is None else each.mul_(outer[0]) for each in ctx.saved_tensors]
        return (*made, None, None, None, None)


def _weighted(each: Tensor, weights: Tensor | None) -> Tensor:
    return each if weights is None else each * weights


def _loss_and_gradient(scores: Tensor, targets: Tensor, smoothing: float, agree: float) -> tuple[Tensor, Tensor]:
    """`score_loss` of scores (P,N,V), which are overwritten by its gradient: both need the same exponentials.

    Of a row with target t and smoothing e the gradient is p_v - (1 - e) [v = t] - e / V.
    """
    passes, _, vocab = scores.shape
    place = targets.expand(passes, -1)[..., None]
    scores -= scores.amax(2, keepdim=True)
    each = (smoothing - 1) * scores.gather(2, place).squeeze(2).mean(0)
    if smoothing:
        each -= smoothing / vocab * scores.sum(2).mean(0)
    gap = scores[0] - scores[1] if agree else None
    grad = scores.exp_()
    sums = grad.sum(2, keepdim=True)
    grad /= sums  # p
    sums = sums.squeeze(2).log_()
    each += sums.mean(0)
    if gap is not None:
        gap -= (sums[0] - sums[1])[:, None]  # log p - log q
        apart = (grad[0] * gap).sum(1), -(grad[1] * gap).sum(1)  # KL(p | q), KL(q | p)
        each += agree / 2 * (apart[0] + apart[1])
        grad = _agreement_gradient(grad, gap, apart, agree)
    if smoothing:
        grad -= smoothing / vocab
    grad.scatter_add_(2, place, grad.new_full((), smoothing - 1).expand(place.shape))
    return each, grad if passes == 1 else grad.div_(passes)


def _agreement_gradient(both: Tensor, gap: Tensor, apart: tuple[Tensor, Tensor], agree: float) -> Tensor:
    """p + a (p (log p/q - KL(p | q)) + p - q), and the same with p and q exchanged.

    both: p and q (2,N,V); gap: log p/q (N,V); apart: KL(p | q) and KL(q | p), (N,). The halves of the loss are missing
    here: the caller divides everything by the number of passes.
    """
    p, q = both
    to_p = torch.add((1 + agree - agree * apart[0])[:, None], gap, alpha=agree).mul_(p).sub_(q, alpha=agree)
    to_q = torch.add((1 + agree - agree * apart[1])[:, None], gap, alpha=-agree).mul_(q).sub_(p, alpha=agree)
    return torch.stack([to_p, to_q])
