"""`Feeding`: a recurrent decoder that looks before it steps (Bahdanau et al. 2015).

    c_t = attention(s_(t-1), source)         what the last state asks the source
    s_t = cell([x_t; c_t], s_(t-1))          the context goes into the step

In a deeper stack every layer may look for itself, or the lowest one for all: its context is then concatenated to the
inputs of the layers above (GNMT, Wu et al. 2016). Each step waits for the one before, so a whole target is a loop.
Luong et al. 2015 look afterwards instead, and all at once: that is a recurrent mixer with cross-attention after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.seen import Seen
from saccade.model.padded import PaddedRows
from saccade.model.past import latest, note, side_by_side
from saccade.model.recurrent import CELLS, stepped


class Feeding(nn.Module):
    """x (B,T,C), context (B,S,C) -> states and contexts, (B,T,C) each.

    kind: rnn, gru or lstm; cross: the attention to the context.
    """

    window = 2  # itself and the state before it
    breaks: ClassVar[Mapping[str, str]] = {"permutation": "a state goes from one position to the next"}
    context_breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, kind: str, width: int, cross: Attention) -> None:
        super().__init__()
        self.kind, self.width, self.cross = kind, width, cross
        self.cell = CELLS[kind](2 * width, width, batch_first=True)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        *,
        mask: Mask | None = None,
        context_mask: Mask | None = None,
        cache: Cache | None = None,
        kept: Cache | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The states, and what was found in the context before each, (B,T,C) each.

        cache: the states of earlier positions; kept: the keys and values of the context, projected once.
        """
        if not x.numel():
            return x, x
        rows = PaddedRows(x, mask, "feeding")
        x, own, kept = rows.align(x), Cache(2) if cache is None else cache, Cache() if kept is None else kept
        beams = x.shape[0] // max(context.shape[0], 1)  # of one source, which stand side by side
        state = latest(own, x, self.width)
        cell = latest(own, x, self.width, second=True) if self.kind == "lstm" else None
        states, cells, contexts = [], [], []
        looked = [len(watcher.calls) for watcher in self.cross.watchers]
        for step in x.unbind(1):
            asked = state.view(context.shape[0], beams, self.width)
            found = self.cross(asked, context, mask=context_mask, cache=kept).reshape(state.shape)
            state, cell = stepped(self.cell, torch.cat((step, found), 1), state, cell)
            states.append(state)
            contexts.append(found)
            if cell is not None:
                cells.append(cell)
        self._merge_watched(looked, beams, rows)
        made, looked_up = torch.stack(states, 1), torch.stack(contexts, 1)
        if cache is not None:
            # Not `made`: the caller may write to that, and what is noted belongs to the cache.
            note(cache, side_by_side(states), side_by_side(cells) if cells else None)
        return rows.restore(made), rows.restore(looked_up)

    def _merge_watched(self, looked: list[int], beams: int, rows: PaddedRows) -> None:
        """Watchers get one call of the layer in place of one for each step, with the padding where it was.

        looked: how many calls each watcher had before these steps.
        """
        for watcher, begin in zip(self.cross.watchers, looked, strict=True):
            calls = [call if beams == 1 else call.apart(beams) for call in watcher.calls[begin:]]
            if calls:
                seen = Seen.in_a_row(calls)
                q = seen.q.transpose(1, 2)  # (B,H,T,D) -> (B,T,H,D)
                q = rows.restore(q.flatten(2)).view(q.shape).transpose(1, 2)
                watcher.calls[begin:] = [seen._replace(q=q)]

    def extra_repr(self) -> str:
        return f"{self.kind}, width={self.width}"
