"""A call under the mask `windows` as many small calls, one a window: the cost grows with the number of cells, not with
its square (Liu et al. 2021).

As in the paper, a shifted picture is rolled, so that what is left over at opposite edges shares a window, and a mask
keeps the two apart; a picture that is not made of whole windows is filled up with cells that nobody looks at. `block`
takes this way where a mask is `windows` alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.attend import plain, sdpa
from saccade.attend.algebra import given
from saccade.attend.grid import Grid
from saccade.attend.mask import Mask
from saccade.attend.meaning import Meaning
from saccade.attend.position import offsets
from saccade.attend.sparse import windows

FEWEST = 4  # windows from which small calls are faster than one with a dense mask
KEPT = 64  # layouts that are kept: those of every stage of a model, for some sizes of pictures


class WindowLayout(NamedTuple):
    """Where the cells of a picture go: N windows of n cells each.

    order (N*n,): the cell at each place of each window; cells: the number of a cell of zeros, for places that are
    filled up. back (cells,): the place of each cell. may (N,n,n): which cells of a window see each other; None: all.
    """

    order: Tensor
    back: Tensor
    may: Tensor | None
    filled: bool


def fits(meaning: Meaning, grid: Grid) -> bool:
    """Whether this call is one of windows alone, over a whole picture, with positions that windows have alike."""
    mask = meaning.mask
    if not isinstance(mask, windows) or grid.picked() or grid.ragged or grid.start != 0 or meaning.biased:
        return False
    on_scores = meaning.position is not None and bool({"scores", "values"} & meaning.position.doors)
    alike = not on_scores or isinstance(meaning.position, offsets)
    return alike and grid.T == grid.S == mask.height * mask.width and _count(mask) > 1


def pays(mask: Mask) -> bool:
    """Whether there are enough windows for it to be faster than a dense mask."""
    return isinstance(mask, windows) and _count(mask) >= FEWEST


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float) -> Tensor:
    """q (B,H,T,D), k (B,G,T,D), v (B,G,T,E) -> (B,H,T,E)."""
    mask = meaning.mask
    assert isinstance(mask, windows)
    layout = _layout(mask.height, mask.width, mask.size, mask.shift)
    B, n = q.shape[0], mask.size**2
    inside, bias = _inside(meaning, layout, B, q.device), _bias(meaning, mask.size)
    small = Grid(n, n, 0, q.device, bias=bias)
    q, k, v = (_cut(x, layout, n) for x in (q, k, v))
    kernel = sdpa.whole if sdpa.refuses(inside) is None else plain.attend
    found = kernel(q, k, v, inside, small, dropout)  # (B*N,H,n,E)
    together = found.transpose(1, 2).reshape(B, -1, *found.shape[1::2])  # (B,N*n,H,E)
    return Moved.apply(together, layout.back, layout.order, layout.filled).transpose(1, 2)


class Moved(torch.autograd.Function):
    """x (B,P,H,D) -> (B,R,H,D): the rows `to`. Every row of x goes to one place at most, which `back` names, so that
    the gradient is moved back as the input was moved here; torch's own would add it up, row by row.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, to: Tensor, back: Tensor, filled: bool) -> Tensor:
        ctx.back, ctx.to, ctx.filled = back, to, filled
        return _rows(x, to, filled)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return Moved.apply(gradient, ctx.back, ctx.to, ctx.filled), None, None, None


def _rows(x: Tensor, to: Tensor, filled: bool) -> Tensor:
    """The rows of x (B,P,H,D), and zeros where a place is filled up: where `to` is P."""
    if filled and int(to.max()) == x.shape[1]:
        x = torch.cat((x, x.new_zeros(x.shape[0], 1, *x.shape[2:])), 1)
    return x.index_select(1, to.to(x.device))


def _cut(x: Tensor, layout: WindowLayout, n: int) -> Tensor:
    """x (B,H,T,D) as windows, (B*N,H,n,D)."""
    moved = Moved.apply(x.transpose(1, 2), layout.order, layout.back, layout.filled)  # (B,N*n,H,D)
    return moved.reshape(-1, n, *moved.shape[2:]).transpose(1, 2)


def _inside(meaning: Meaning, layout: WindowLayout, B: int, device: torch.device) -> Meaning:
    """What is computed in each window, with what is added to scores as a bias of the call."""
    mask = None if layout.may is None else given(layout.may.to(device).unsqueeze(1).repeat(B, 1, 1, 1))
    return meaning._replace(mask=mask, position=None, biased=isinstance(meaning.position, offsets))


def _bias(meaning: Meaning, size: int) -> Tensor | None:
    """What the position adds to the scores of a window, (1,H,n,n): the same in all of them."""
    if not isinstance(meaning.position, offsets):
        return None
    device = meaning.position.weight.device
    steps = torch.arange(size, device=device)
    cells = torch.cartesian_prod(steps, steps).unsqueeze(0)
    return meaning.position.between(cells, cells)


def _count(mask: windows) -> int:
    """About how many windows there are."""
    return -(-mask.height // mask.size) * -(-mask.width // mask.size)


@lru_cache(KEPT)
def _layout(height: int, width: int, size: int, shift: int) -> WindowLayout:
    rows, columns = (_rolled(side, size, shift) for side in (height, width))
    cells = height * width
    number = rows.view(-1, 1) * width + columns  # of the cell at each place of the rolled picture
    number = number.masked_fill((rows.view(-1, 1) < 0) | (columns < 0), cells)
    order = _windowed(number, size)
    of_rows, of_columns = (_window_numbers(each, size, shift) for each in (rows, columns))
    window = of_rows.view(-1, 1) * (width + 2) + of_columns
    window = window.masked_fill(number == cells, -1)
    window = _windowed(window, size).view(-1, size**2)
    may = window.unsqueeze(2) == window.unsqueeze(1)
    back = torch.empty(cells, dtype=torch.long)
    real = order < cells
    back[order[real]] = torch.arange(len(order))[real]
    return WindowLayout(order, back, None if bool(may.all()) else may, not bool(real.all()))


def _rolled(side: int, size: int, shift: int) -> Tensor:
    """The cells along one side in whole windows, the first `shift` of them behind the others; -1 where a window is
    filled up. What is left over at the two ends shares a window where it fits into one.
    """
    first, others = torch.arange(side).split([min(shift, side), side - min(shift, side)])
    free = -len(others) % size  # places that the others leave in their last window
    others = others if len(first) <= free else _filled(others, size)
    return _filled(torch.cat((others, first)), size)


def _filled(cells: Tensor, size: int) -> Tensor:
    """The cells, and -1 up to a whole number of windows."""
    return torch.cat((cells, torch.full((-len(cells) % size,), -1)))


def _window_numbers(cells: Tensor, size: int, shift: int) -> Tensor:
    """The number of the window of each cell along one side, as the mask counts them, from 0."""
    return torch.div(cells - shift, size, rounding_mode="floor") + 1


def _windowed(x: Tensor, size: int) -> Tensor:
    """(rows, columns) -> all windows one behind another, each row by row."""
    rows, columns = x.shape
    return x.view(rows // size, size, columns // size, size).transpose(1, 2).flatten()
