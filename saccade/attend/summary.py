"""Attention over summaries: keys and values are summed along the length into a few slots before anybody looks at them.

    k' = E k,    v' = F v        E, F (slots, length), learned: Wang et al. 2020 (Linformer)

Every query then looks at all slots, so that the cost grows linearly with the length, whoever computes it. A slot mixes
all positions: nothing can be hidden from one query and shown to another, so a summary is never causal, has no cache,
and of masks it knows padding alone. Columns of E and F belong to positions, counted from the first real token.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.attend.mask import Mask, conjunction, padding
from saccade.attend.numbers import count
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
            count("linformer", name, value)
        if share not in SHARED:
            raise SaccadeError(f"linformer: share is 'none', 'heads' or 'keys', not {share!r}")
        if initial not in INITIAL:
            raise SaccadeError(f"linformer: initial is 'pooled' or 'normal', not {initial!r}")
        self.slots, self.length, self.share = slots, length, share
        shape = (heads, slots, length) if share == "none" else (slots, length)
        self.key = INITIAL[initial](shape)
        self.value = None if share == "keys" else INITIAL[initial](shape)

    def forward(self, k: Tensor, v: Tensor, mask: Mask | None = None) -> tuple[Tensor, Tensor]:
        if self.share == "none" and k.shape[1] != self.key.shape[0]:
            raise SaccadeError(f"this linformer was built for {self.key.shape[0]} key heads; k has {k.shape[1]}")
        keys, values = (
            self._from_first_real(each.transpose(1, 2).flatten(2), mask) for each in (k, v)
        )  # all heads in a product
        return _heads(self.key, keys, k.shape[1]), _heads(self._values, values, v.shape[1])

    def sooner(self, length: int, wide: int, narrow: int) -> bool:
        """Whether (length, wide) is summed with less work before it is projected to `narrow` than afterwards."""
        return self.share != "none" and self.slots * wide * (length + narrow) < length * narrow * (wide + self.slots)

    def project(self, x: Tensor, key: nn.Linear, value: nn.Linear, mask: Mask | None = None) -> tuple[Tensor, Tensor]:
        """E (x W + b) as (E x) W + (E 1) b, so that `slots` rows are projected and not S: (B,S,C) -> (B,slots,G*D)."""
        shown, ones = self._from_first_real(x, mask), self._from_first_real(x.new_ones(*x.shape[:2], 1), mask)
        keys = _sums(self.key, shown)
        values = keys if self.value is None else _sums(self.value, shown)
        return (
            _projected(key, keys, _sums(self.key, ones)),
            _projected(value, values, _sums(self._values, ones)),
        )

    def extra_repr(self) -> str:
        return f"slots={self.slots}, length={self.length}, share={self.share!r}"

    @property
    def _values(self) -> Tensor:
        return self.key if self.value is None else self.value

    def _from_first_real(self, x: Tensor, mask: Mask | None) -> Tensor:
        """(B,S,C) with the first real token of each row first, and zeros for padding, even where that is NaN."""
        B, S, C = x.shape
        if self.length < S:
            raise SaccadeError(
                f"this linformer was built for {self.length} positions; the sequence has {S}: shorten it, or build the "
                f"model with summary = 'linformer({self.slots}, {S})'"
            )
        hidden = None if mask is None else _padded(mask)
        if hidden is None:
            return x
        lengths = hidden.held(S, x.device).view(-1, 1, 1)
        steps = torch.arange(S, device=x.device).view(1, -1, 1)
        if hidden.side == "left":
            x = x.gather(1, ((steps + S - lengths) % max(S, 1)).expand(B, -1, C))
        return x.masked_fill(steps >= lengths, 0.0)


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
    """Refuses masks and positions that need single keys, which slots have mixed."""
    if position is not None and not position.doors <= {"heads"}:
        raise SaccadeError(
            f"a summary's slots stand at no position, and {type(position).__name__} compares those of queries and "
            f"keys: use rotary, or a position of the input"
        )
    if mask is not None:
        _padded(mask)


def _padded(mask: Mask) -> padding | None:
    """The padding of a mask, None where it hides nothing; refuses any other mask."""
    is_causal, paddings, others = conjunction(mask)
    if is_causal:
        raise SaccadeError(
            "a summary mixes all positions, so that a causal query would see the future: use it in an encoder alone"
        )
    if others or len(paddings) > 1:
        raise SaccadeError(
            f"a summary mixes all positions, of which padding(lengths) alone can be left out; the mask here is {mask!r}"
        )
    return paddings[0] if paddings else None


def _sums(weight: Tensor, x: Tensor) -> Tensor:
    """weight (slots,L) or (G,slots,L), x (...,S,C) -> (...,slots,C)."""
    return weight[..., : x.shape[-2]].to(x.dtype) @ x


def _heads(weight: Tensor, x: Tensor, heads: int) -> Tensor:
    """The same head by head: x (B,S,G*D) -> (B,G,slots,D)."""
    if weight.dim() == 3:
        return _sums(weight, x.unflatten(2, (heads, -1)).transpose(1, 2))
    return _sums(weight, x).unflatten(2, (heads, -1)).transpose(1, 2)


def _projected(linear: nn.Linear, sums: Tensor, ones: Tensor) -> Tensor:
    """W sums + ones * b: E (x W + b) has the bias as often as E sums up ones."""
    found = F.linear(sums, linear.weight)
    return found if linear.bias is None else found + ones * linear.bias


INITIAL: dict[str, Callable[[tuple[int, ...]], nn.Parameter]] = {"pooled": _pooled, "normal": _normal}
SUMMARIES: dict[str, Callable[..., nn.Module]] = {"linformer": linformer}
