"""Attention over summaries: keys and values are summed along the length into a few slots before anybody looks at them.

    k' = E k,    v' = F v        E, F (slots, length), learned: Wang et al. 2020 (Linformer)

Every query then looks at all slots, so that the cost grows linearly with the length, whoever computes it. A slot mixes
all positions: nothing can be hidden from one query and shown to another, so a summary is never causal, has no cache,
and of masks it knows padding alone. Columns of E and F belong to positions, counted from the first real token.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.attend.mask import Mask, causal, everyone, padding
from saccade.attend.numbers import bound
from saccade.attend.position import Position
from saccade.error import SaccadeError

SHARED = ("none", "heads", "keys")


class linformer(nn.Module):
    """E k and F v: (B,G,S,D) -> (B,G,slots,D), for up to `length` positions; fewer use the first columns.

    share, as in the paper: "none" has an E and an F for each head, "heads" one of each for all heads, "keys" one matrix
    for keys and values too. To share it between layers, give the same object to several (`share_summary`).

    initial: "pooled" starts with each slot the sum of its own neighbours, a little noise added; "normal" with random
    sums of everything, as the paper's lemma draws them, from which a model hardly learns to find one token (LOG.md).
    """

    def __init__(self, slots: int, length: int, share: str = "heads", initial: str = "pooled", *, heads: int) -> None:
        super().__init__()
        for name, value in (("slots", slots), ("length", length)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SaccadeError(f"linformer: {name} is a whole number from 1; got {value!r}")
        if share not in SHARED:
            raise SaccadeError(f"linformer: share is 'none', 'heads' or 'keys', not {share!r}")
        if initial not in INITIAL:
            raise SaccadeError(f"linformer: initial is 'pooled' or 'normal', not {initial!r}")
        self.slots, self.length, self.share = slots, length, share
        shape = (heads, slots, length) if share == "none" else (slots, length)
        self.key = INITIAL[initial](shape)
        self.value = None if share == "keys" else INITIAL[initial](shape)

    def forward(self, k: Tensor, v: Tensor, mask: Mask | None = None) -> tuple[Tensor, Tensor]:
        if k.shape[2] > self.length:
            raise SaccadeError(
                f"this linformer was built for {self.length} positions; the sequence has {k.shape[2]}: shorten it, or "
                f"build the model with summary = 'linformer({self.slots}, {k.shape[2]})'"
            )
        if self.share == "none" and k.shape[1] != self.key.shape[0]:
            raise SaccadeError(f"this linformer was built for {self.key.shape[0]} key heads; k has {k.shape[1]}")
        hidden = None if mask is None else _padded(mask)
        values = self.key if self.value is None else self.value
        return _summed(self.key, k, hidden), _summed(values, v, hidden)

    def extra_repr(self) -> str:
        return f"slots={self.slots}, length={self.length}, share={self.share!r}"


def _pooled(shape: tuple[int, ...]) -> nn.Parameter:
    """Position j goes to slot j slots / length, times a number that leaves sums about as long as keys are."""
    weight, (slots, length) = normal(*shape), shape[-2:]
    if not weight.is_meta:
        positions = torch.arange(length)
        with torch.no_grad():
            weight[..., positions * slots // length, positions] += min(1.0, (slots / length) ** 0.5)
    return weight


def _normal(shape: tuple[int, ...]) -> nn.Parameter:
    """Variance 1 / slots: E^T E is the identity on average."""
    return normal(*shape, std=shape[-2] ** -0.5)


def as_summary(summary: nn.Module | str | None, *, heads: int) -> nn.Module | None:
    """A summary from itself or a spec string, for so many key heads."""
    if isinstance(summary, str):
        summary = spec.read(summary, SUMMARIES, "summary", heads=heads)
    if summary is not None and not isinstance(summary, nn.Module):
        raise SaccadeError(f"summary is a spec string or a module, not {type(summary).__name__}")
    return summary


def length_of(summary: str) -> int:
    """How many positions the summary of a spec has room for."""
    return int(spec.arguments(summary, SUMMARIES, "summary")[1]["length"])


def allows(mask: Mask | None, position: Position | None) -> None:
    """Refuses what cannot be said of slots that mix all positions."""
    if position is not None and not position.doors <= {"heads"}:
        raise SaccadeError(
            f"a summary's slots stand at no position, and {type(position).__name__} compares those of queries and "
            f"keys: use rotary, or a position of the input"
        )
    if mask is not None:
        _padded(mask)


def _padded(mask: Mask) -> padding | None:
    """The padding of a mask that says nothing else."""
    if causal in mask.terms():
        raise SaccadeError(
            "a summary mixes all positions, so that a causal query would see the future: use it in an encoder alone"
        )
    terms = [term for term in mask.terms() if term is not everyone]
    if any(not isinstance(term, padding) for term in terms) or len(terms) > 1:
        raise SaccadeError(
            f"a summary mixes all positions, of which padding(lengths) alone can be left out; the mask here is {mask!r}"
        )
    return terms[0] if terms and isinstance(terms[0], padding) else None


def _summed(weight: Tensor, x: Tensor, hidden: padding | None) -> Tensor:
    """weight (slots,L) or (G,slots,L), x (B,G,S,D) -> (B,G,slots,D); what is hidden counts as 0, even if it is NaN."""
    B, G, S, D = x.shape
    flat = x.transpose(1, 2).flatten(2)  # (B,S,G*D): all heads in one product
    if hidden is not None:
        lengths = bound("padding", "lengths", hidden.lengths).to(x.device).clamp(0, S).view(-1, 1, 1)
        steps = torch.arange(S, device=x.device).view(1, -1, 1)
        if hidden.side == "left":  # the first real token comes to column 0
            flat = flat.gather(1, ((steps + S - lengths) % max(S, 1)).expand(B, -1, G * D))
        flat = flat.masked_fill(steps >= lengths, 0.0)
    weight = weight[..., :S].to(x.dtype)
    if weight.dim() == 3:
        return weight @ flat.unflatten(2, (G, D)).transpose(1, 2)
    return (weight @ flat).unflatten(2, (G, D)).transpose(1, 2)


INITIAL: dict[str, Callable[[tuple[int, ...]], nn.Parameter]] = {"pooled": _pooled, "normal": _normal}
SUMMARIES: dict[str, Callable[..., nn.Module]] = {"linformer": linformer}
