"""`Feeding`: a recurrent decoder that looks before it steps (Bahdanau et al. 2015).

    c_t = attention(s_(t-1), source)         what the last state asks the source
    s_t = cell([x_t; c_t], s_(t-1))          the context goes into the step

In a deeper stack every layer may look for itself, or the lowest for all of them, whose inputs its context then stands
beside (GNMT, Wu et al. 2016). Each step waits for the one before, so a whole target is a loop. Luong et al. 2015 look
afterwards instead, and all at once: that is a recurrent mixer with cross-attention behind it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.seen import Seen
from saccade.model.recurrent import CELLS, stepped
from saccade.model.trail import Rows, latest, note, row


class Feeding(nn.Module):
    """x (B,T,C), context (B,S,C) -> states and contexts, (B,T,C) each.

    kind: rnn, gru or lstm; cross: who looks at the context.
    """

    window = 2  # itself and the state before it

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
        rows = Rows(x, mask, "feeding")
        x, own, kept = rows.settle(x), Cache(2) if cache is None else cache, Cache() if kept is None else kept
        each = x.shape[0] // max(context.shape[0], 1)  # beams of one source stand side by side
        state = latest(own, x, self.width)
        cell = latest(own, x, self.width, second=True) if self.kind == "lstm" else None
        states, cells, contexts = [], [], []
        looked = [len(watcher.calls) for watcher in self.cross.watchers]
        for step in x.unbind(1):
            asked = state.view(context.shape[0], each, self.width)
            found = self.cross(asked, context, mask=context_mask, cache=kept).reshape(state.shape)
            state, cell = stepped(self.cell, torch.cat((step, found), 1), state, cell)
            states.append(state)
            contexts.append(found)
            cells += [] if cell is None else [cell]
        self._tell(looked, each, rows)
        made, looked_up = (torch.stack(each, 1) for each in (states, contexts))
        if cache is not None:
            note(cache, row(states), row(cells) if cells else None)  # made is the caller's
        return rows.back(made), rows.back(looked_up)

    def _tell(self, looked: list[int], each: int, rows: Rows) -> None:
        """To who watches, the steps are one call of the layer, a row each, at the places that they had."""
        for watcher, begin in zip(self.cross.watchers, looked, strict=True):
            calls = [call if each == 1 else call.apart(each) for call in watcher.calls[begin:]]
            if calls:
                seen = Seen.in_a_row(calls)
                q = seen.q.transpose(1, 2)  # (B,H,T,D) -> (B,T,H,D)
                q = rows.back(q.flatten(2)).view(q.shape).transpose(1, 2)
                watcher.calls[begin:] = [seen._replace(q=q)]

    def extra_repr(self) -> str:
        return f"{self.kind}, width={self.width}"
