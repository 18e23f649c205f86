"""Tiles: a call cut into rectangles of queries and keys, of which a mask says who may look: nobody, some or all.

A mask answers from the positions at a tile's edges alone, so a map of tiles costs as much as it has tiles, never T x S.
"Some" is always a correct answer: the mask is then computed densely for that tile.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.attend.grid import Grid

NOBODY, SOME, ALL = 0, 1, 2  # ordered, so that the smaller is what two masks allow together


class Tiling(NamedTuple):
    """n tiles of queries over m tiles of keys, by their first and last positions, on the CPU."""

    grid: Grid
    top: Tensor  # (n,1), of the queries
    bottom: Tensor  # (n,1)
    left: Tensor  # (1,m), of the keys
    right: Tensor  # (1,m)

    @property
    def low(self) -> Tensor:
        """The smallest distance i - j in each tile, (n,m)."""
        return self.top - self.right

    @property
    def high(self) -> Tensor:
        """The largest distance i - j in each tile, (n,m)."""
        return self.bottom - self.left


def judge(never: Tensor, always: Tensor) -> Tensor:
    """Nobody, some or all, from where certainly nobody and where certainly everyone may look."""
    return (always & ~never).to(torch.int8).add_(SOME).masked_fill_(never, NOBODY)


def within(table: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest and the largest entry of a table (B,L) between two positions (n,), both included: (B,n) each."""
    steps = torch.arange(int((last - first).max()) + 1, device="cpu")
    entries = table.cpu()[:, torch.minimum(first.unsqueeze(1) + steps, last.unsqueeze(1))]  # (B,n,widest)
    return entries.amin(-1), entries.amax(-1)


def count(table: Tensor, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]) -> Tensor:
    """Nobody, some or all of the entries of a bool table (R,C) in each rectangle, (n,m).

    rows (n,) and columns (m,): the first and the last of each, both included. By sums over all that lies above and to
    the left (Crow 1984).
    """
    sums = torch.zeros(table.shape[0] + 1, table.shape[1] + 1, dtype=torch.int32, device="cpu")
    sums[1:, 1:] = table.int().cumsum(0, dtype=torch.int32).cumsum(1, dtype=torch.int32)
    (top, bottom), (left, right) = ((first, last + 1) for first, last in (rows, columns))
    strips = sums[bottom] - sums[top]  # (n,C+1)
    found = strips[:, right] - strips[:, left]
    return judge(found == 0, found == (bottom - top).unsqueeze(1) * (right - left))
