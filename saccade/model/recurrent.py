"""Recurrent mixers: a state goes from one position to the next.

rnn   h' = tanh(W x + U h)                                   Elman 1990
gru   h' = (1 - z) n + z h, with gates z and r               Cho et al. 2014
lstm  c' = f c + i g, h' = o tanh(c')                        Hochreiter and Schmidhuber 1997

Both ways at once (bidirectional): Schuster and Paliwal 1997. torch's own kernels compute them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.mask import Mask
from saccade.error import SaccadeError
from saccade.model.padded import PaddedRows
from saccade.model.past import latest, note, side_by_side

# From so many rows, and so many weights of a state, `_step_transposed` is faster than torch's cells (LOG.md).
SEVERAL = 16
LARGE: dict[type[nn.RNNBase], int] = {nn.RNN: 1 << 18, nn.GRU: 1 << 18, nn.LSTM: 1 << 15}
CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """x (B,T,C) -> (B,T,C). both: half of the width reads from the end to the beginning, which a decoder cannot.

    inputs: the width of x where it brings more than a state (a context beside it). With a cache it goes on from the
    state that each row was left in.
    """

    window = 2  # itself and the state before it

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
            return self._continue(x, cache)
        if not x.numel():
            return x[..., : self.width]
        rows = PaddedRows(x, mask, self.kind)
        x = rows.align(x)
        states = _run_all(self.forth, x)
        if self.back is not None:
            states = torch.cat((states, rows.reverse(_run_all(self.back, rows.reverse(x)))), 2)
        return rows.restore(states)

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": f"{self.kind} goes from one position to the next"}
        return found if self.back is None else {**found, "causality": f"{self.kind} reads both ways"}

    def _continue(self, x: Tensor, cache: Cache) -> Tensor:
        """The states at new positions x, going on from the last one that the cache holds; adds them to it."""
        if self.back is not None:
            raise SaccadeError(f"a {self.kind} that reads both ways needs the whole text and cannot go on from a cache")
        if not x.numel():
            return x[..., : self.width]
        state = latest(cache, x, self.width)
        if self.kind != "lstm" and x.shape[1] > 1:
            found = _run_all(self.forth, x, state.unsqueeze(0).contiguous())
            note(cache, found)
            return found.clone()  # what the cache keeps is not the caller's to change
        cell = latest(cache, x, self.width, second=True) if self.kind == "lstm" else None
        states: list[Tensor] = []
        cells: list[Tensor] = []  # the cache keeps every position's; torch's LSTM would return the last one alone
        for each in x.unbind(1):
            state, cell = stepped(self.forth, each, state, cell)
            states.append(state)
            if cell is not None:
                cells.append(cell)
        found = side_by_side(states)
        note(cache, found, side_by_side(cells) if cells else None)
        return found.clone()

    def extra_repr(self) -> str:
        return f"{self.kind}, width={self.width}, both={self.back is not None}"


def _run_all(layer: nn.RNNBase, x: Tensor, state: Tensor | None = None) -> Tensor:
    """The states of all positions by torch's kernel; in float32, as not every processor has half-precision LSTMs."""
    if x.is_cpu and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            found: Tensor = layer(x.float(), None if state is None else state.float())[0]
        return found
    states: Tensor = layer(x, state)[0]
    return states


def stepped(layer: nn.RNNBase, x: Tensor, state: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """One step from x (B,I), the state (B,C) and an LSTM's cell: several times faster than a call of the layer."""
    if x.is_cpu and torch.is_autocast_enabled("cpu"):  # float32, as in `_run_all`
        with torch.autocast("cpu", enabled=False):
            return stepped(layer, x.float(), state.float(), None if cell is None else cell.float())
    if _transposed_pays(layer, x):
        return _step_transposed(layer, x, state, cell)
    if cell is None:
        step = torch.gru_cell if isinstance(layer, nn.GRU) else torch.rnn_tanh_cell
        return step(x, state, *_weights(layer)), None
    after, kept = torch.lstm_cell(x, (state, cell), *_weights(layer))
    return after, kept


def _weights(layer: nn.RNNBase) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weights of inputs and of the state, and the biases of both."""
    return layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0  # type: ignore[return-value]


def _transposed_pays(layer: nn.RNNBase, x: Tensor) -> bool:
    """Whether W x^T is the faster product, as in `model/linear.py`: for the beams of several sentences."""
    return (
        x.shape[0] >= SEVERAL
        and _weights(layer)[1].numel() >= LARGE[type(layer)]
        and torch.get_num_threads() > 1
        and x.is_cpu
        and x.dtype is torch.float32
        and not torch.is_grad_enabled()
    )


def _step_transposed(layer: nn.RNNBase, x: Tensor, state: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The same step with products W x^T; all that follows is elementwise, so nothing is transposed back in memory."""
    inputs, states, bias, own = _weights(layer)
    given = inputs.mm(x.t())
    if isinstance(layer, nn.GRU):
        r, z, n = (given.t() + bias).chunk(3, 1)
        held, before, past = (states.mm(state.t()).t() + own).chunk(3, 1)
        new = torch.addcmul(n, r.add_(held).sigmoid_(), past).tanh_()
        return torch.lerp(new, state, z.add_(before).sigmoid_()), None
    both = given.addmm_(states, state.t()).t().add_(bias + own)
    if cell is None:
        return both.tanh_(), None
    i, f, g, o = both.chunk(4, 1)
    new = g.tanh()
    both.sigmoid_()  # all four at once, by all threads, is faster than the three that need it
    after = new.mul_(i).addcmul_(f, cell)
    return after.tanh().mul_(o), after
