"""Accumulators: the values of all positions so far, added up and faded (the lecture's way to attention).

composite    m_n = sum_i v_i                                 everything, for ever
forgetting   m_n = sum_i gamma^(n-i) v_i                     gamma given, or learned for each channel
gated        m_n = g_n m_(n-1) + v_n                         g_n = sigmoid(W x_n + b): the input says what to keep
gated, mean  m_n = g_n m_(n-1) + (1 - g_n) v_n               the same as a mean, which cannot grow

v = W x, and the output is a projection of m. Each is linear attention with a decay and one key: Katharopoulos
et al. 2020; with gates: Bradbury et al. 2017 (QRNN), Lei et al. 2018 (SRU), both a mean. Computed for all positions at
once by a parallel scan (Hillis and Steele 1986), or step by step from a cache; in float32 at least, since thousands of
terms are added up, and bfloat16 does not know 0.999.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.padded import PaddedRows
from saccade.model.past import latest, note

GAMMA = 0.9  # where a learned forgetting begins


class Accumulator(nn.Module):
    """x (B,T,C) -> (B,T,C). kind: composite, forgetting (gamma: a number, or None: learned) or gated (mean: see above).

    both: half of the channels remember what comes after them instead, which a decoder cannot.
    """

    window = 2  # itself and the state before it

    def __init__(
        self, kind: str, width: int, *, gamma: float | None = None, mean: bool = False, both: bool = False
    ) -> None:
        super().__init__()
        if gamma is not None and (isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 <= gamma <= 1):
            raise SaccadeError(f"{kind}: gamma is a share from 0 to 1; got {gamma!r}")
        if both and width % 2:
            raise SaccadeError(f"{kind}: a width of {width} cannot be shared by two directions")
        self.kind, self.width, self.gamma, self.mean, self.both = kind, width, gamma, mean, both
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.gate = nn.Linear(width, width) if kind == "gated" else None
        learned = kind == "forgetting" and gamma is None
        self.fade = nn.Parameter(torch.full((width,), math.log(GAMMA / (1 - GAMMA)))) if learned else None
        for projection in (self.value, self.out):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None) -> Tensor:
        rows = PaddedRows(x, mask, self.kind)
        kept, brought = self._terms(rows.align(x))
        if cache is not None:
            states = self._continue(kept, brought, cache)
        elif not self.both:
            states = rows.restore(scan(kept, brought))
        else:
            states = rows.restore(_scan_both_ways(rows, kept, brought))
        return self.out(states.to(self.out.weight.dtype))

    def _terms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What is kept of the memory at each position, and what is added to it, (B,T,C) each."""
        value = _precise(self.value(x))
        if self.gate is not None:
            keep = torch.sigmoid(_precise(self.gate(x)))
            return keep, (1 - keep) * value if self.mean else value
        if self.fade is not None:
            return torch.sigmoid(_precise(self.fade)).expand_as(value), value
        return value.new_full((), 1.0 if self.gamma is None else self.gamma).expand_as(value), value

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": f"{self.kind} adds up what came before"}
        return {**found, "causality": f"{self.kind} reads both ways"} if self.both else found

    def _continue(self, kept: Tensor, brought: Tensor, cache: Cache) -> Tensor:
        """The memory at new positions, going on from the last one that the cache holds."""
        if self.both:
            raise SaccadeError(f"a {self.kind} memory of both ways needs the whole text and cannot go on from a cache")
        first = brought[:, :1] + kept[:, :1] * latest(cache, brought, brought.shape[2]).unsqueeze(1)
        states = scan(kept, torch.cat((first, brought[:, 1:]), 1))
        note(cache, states)
        return states

    def extra_repr(self) -> str:
        return f"{self.kind}, width={self.width}, gamma={self.gamma}, mean={self.mean}, both={self.both}"


def _precise(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _scan_both_ways(rows: PaddedRows, kept: Tensor, brought: Tensor) -> Tensor:
    """`scan` from the beginning for the first half of the channels, from the end for the second; (B,T,C)."""
    (kept_forth, kept_back), (brought_forth, brought_back) = kept.chunk(2, 2), brought.chunk(2, 2)
    forth = scan(kept_forth, brought_forth)
    back = rows.reverse(scan(rows.reverse(kept_back), rows.reverse(brought_back)))
    return torch.cat((forth, back), 2)


def scan(kept: Tensor, brought: Tensor) -> Tensor:
    """m_n = kept_n m_(n-1) + brought_n for all n at once, m_0 = 0; (B,T,C) each. log2(T) passes, nothing divided."""
    step, T = 1, brought.shape[1]
    while step < T:
        earlier, decay = (F.pad(each[:, :-step], (0, 0, step, 0)) for each in (brought, kept))
        brought = brought + kept * earlier
        kept = kept * decay  # 0 before the beginning: nothing comes from there
        step *= 2
    return brought
