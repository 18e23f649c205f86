"""Recurrent mixers: a state goes from one position to the next.

rnn   h' = tanh(W x + U h)                                   Elman 1990
gru   h' = (1 - z) n + z h, with gates z and r               Cho et al. 2014
lstm  c' = f c + i g, h' = o tanh(c')                        Hochreiter and Schmidhuber 1997

Both ways at once (bidirectional): Schuster and Paliwal 1997. torch's own kernels compute them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.trail import Rows, follow, last

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """x (B,T,C) -> (B,T,C). both: half of the width reads from the end to the beginning, which a decoder cannot.

    inputs: the width of x where it brings more than a state (a context beside it). With a cache it goes on from the
    state that each row was left in.
    """

    window = 1  # of the past it needs the last state alone

    def __init__(self, kind: str, width: int, *, both: bool = False, inputs: int | None = None) -> None:
        super().__init__()
        inputs = width if inputs is None else inputs
        if both and width % 2:
            raise SaccadeError(f"{kind}: a width of {width} cannot be shared by two directions")
        self.kind, self.width = kind, width
        self.forth = CELLS[kind](inputs, width // 2 if both else width, batch_first=True)
        self.back = CELLS[kind](inputs, width // 2, batch_first=True) if both else None

    def forward(self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None) -> Tensor:
        if cache is not None:
            return self._on(x, cache)
        rows = Rows(x, mask, self.kind)
        x = rows.settle(x)
        states, _ = self.forth(x)
        if self.back is not None:
            states = torch.cat((states, rows.turn(self.back(rows.turn(x))[0])), 2)
        return rows.back(states)

    def _on(self, x: Tensor, cache: Cache) -> Tensor:
        """The states after x, from what the cache holds, which then holds them too."""
        if self.back is not None:
            raise SaccadeError(f"a {self.kind} that reads both ways needs the whole text: it cannot go on from a cache")
        like = x[..., : self.width]
        state = last(cache, 1, like).transpose(0, 1).contiguous()  # (1,B,C)
        if self.kind != "lstm":
            states, _ = self.forth(x, state)
            follow(cache, states)
            return states
        cell = last(cache, 1, like, second=True).transpose(0, 1).contiguous()
        found: list[tuple[Tensor, Tensor]] = []
        for step in x.split(1, 1):  # every position's cell is kept, and torch's kernel gives the last one's alone
            _, (state, cell) = self.forth(step, (state, cell))
            found.append((state, cell))
        states, cells = (torch.cat(each).transpose(0, 1) for each in zip(*found, strict=True))
        follow(cache, states, cells)
        return states

    def extra_repr(self) -> str:
        return f"{self.kind}, width={self.width}, both={self.back is not None}"
