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
from saccade.model.trail import Rows, latest, note, row

SEVERAL = 16  # rows, and LARGE: weights of a state, from which torch's cells are the slower step (LOG.md)
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
            return self._on(x, cache)
        if not x.numel():
            return x[..., : self.width]
        rows = Rows(x, mask, self.kind)
        x = rows.settle(x)
        states = _whole(self.forth, x)
        if self.back is not None:
            states = torch.cat((states, rows.turn(_whole(self.back, rows.turn(x)))), 2)
        return rows.back(states)

    def _on(self, x: Tensor, cache: Cache) -> Tensor:
        """The states after x, from what the cache holds, which then holds them too."""
        if self.back is not None:
            raise SaccadeError(f"a {self.kind} that reads both ways needs the whole text: it cannot go on from a cache")
        if not x.numel():
            return x[..., : self.width]
        state = latest(cache, x, self.width)
        if self.kind != "lstm" and x.shape[1] > 1:
            found = _whole(self.forth, x, state.unsqueeze(0).contiguous())
            note(cache, found)
            return found.clone()  # what the cache keeps is not the caller's to change
        cell = latest(cache, x, self.width, second=True) if self.kind == "lstm" else None
        states: list[Tensor] = []
        cells: list[Tensor] = []  # every position's is kept, and torch's kernel gives the last one's alone
        for each in x.unbind(1):
            state, cell = stepped(self.forth, each, state, cell)
            states.append(state)
            if cell is not None:
                cells.append(cell)
        found = row(states)
        note(cache, found, row(cells) if cells else None)
        return found.clone()

    def extra_repr(self) -> str:
        return f"{self.kind}, width={self.width}, both={self.back is not None}"


def _whole(layer: nn.RNNBase, x: Tensor, state: Tensor | None = None) -> Tensor:
    """The states of all positions by torch's kernel; LSTMs of half precision are not to be had of every processor."""
    if x.is_cpu and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            found: Tensor = layer(x.float(), None if state is None else state.float())[0]
        return found
    states: Tensor = layer(x, state)[0]
    return states


def stepped(layer: nn.RNNBase, x: Tensor, state: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """One step of a layer: x (B,I) and its state (B,C), of an LSTM with its cell. Several times quicker than a call."""
    if x.is_cpu and torch.is_autocast_enabled("cpu"):  # as a whole text is read
        with torch.autocast("cpu", enabled=False):
            return stepped(layer, x.float(), state.float(), None if cell is None else cell.float())
    if _several(layer, x):
        return _turned(layer, x, state, cell)
    if cell is None:
        step = torch.gru_cell if isinstance(layer, nn.GRU) else torch.rnn_tanh_cell
        return step(x, state, *_weights(layer)), None
    after, kept = torch.lstm_cell(x, (state, cell), *_weights(layer))
    return after, kept


def _weights(layer: nn.RNNBase) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of its inputs and of its state, and the biases of both."""
    return layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0  # type: ignore[return-value]


def _several(layer: nn.RNNBase, x: Tensor) -> bool:
    """Whether W x^T is the quicker product, as in `model/linear.py`: for beams of some sentences, by two threads."""
    return (
        x.shape[0] >= SEVERAL
        and _weights(layer)[1].numel() >= LARGE[type(layer)]
        and torch.get_num_threads() > 1
        and x.is_cpu
        and x.dtype is torch.float32
        and not torch.is_grad_enabled()
    )


def _turned(layer: nn.RNNBase, x: Tensor, state: Tensor, cell: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The same step with W x^T for its products; what follows goes number by number and leaves them lying so."""
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
    both.sigmoid_()  # all at once, by all threads, is quicker than three of the four
    after = new.mul_(i).addcmul_(f, cell)
    return after.tanh().mul_(o), after
