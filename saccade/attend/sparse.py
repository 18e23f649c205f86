"""Masks that leave out most pairs: dilated windows, blocks, BigBird's links between blocks, windows of a picture.

Child et al. 2019 (blocks), Beltagy et al. 2020 (dilated), Zaheer et al. 2020 (bigbird), Liu et al. 2021 (windows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from saccade.attend.algebra import Mask
from saccade.attend.grid import Grid
from saccade.attend.numbers import count, square
from saccade.attend.tile import Tiling, judge
from saccade.attend.tile import count as counted
from saccade.error import SaccadeError

STRIP = 1 << 20  # pairs of blocks whose lots are drawn at once
KEPT = 32  # drawings that are kept
_DRAWN: dict[tuple[int, ...], Tensor] = {}


@dataclass(frozen=True, eq=False, repr=False)
class dilated(Mask):
    """|i - j| < n step and i - j a multiple of step: n positions to each side, oneself among them, with gaps
    (Longformer's dilated sliding window). `dilated(n, 1)` is `window(n)`.
    """

    n: int
    step: int

    def __post_init__(self) -> None:
        count("dilated", "n", self.n, least=1)
        count("dilated", "step", self.step, least=1)

    def dense(self, grid: Grid) -> Tensor:
        away = grid.i - grid.j
        return (away.abs() < self.n * self.step) & (away % self.step == 0)

    def relative(self) -> bool:
        return True

    def back(self) -> int | None:
        return (self.n - 1) * self.step + 1

    def tiles(self, tiling: Tiling) -> Tensor:
        far = (self.n - 1) * self.step
        low, high = tiling.low.clamp(min=-far), tiling.high.clamp(max=far)
        never = high // self.step * self.step < low  # no multiple between them
        return judge(never, (low == tiling.low) & (high == tiling.high) & (self.step == 1))


@dataclass(frozen=True, eq=False, repr=False)
class blocks(Mask):
    """Positions in blocks of `size`; a block sees itself, `before` blocks before it and `after` blocks after it.

    With `layout`, a square table of 0 and 1, block a sees block b where layout[a][b] is 1.
    """

    size: int
    before: int = 0
    after: int = 0
    layout: Sequence[Sequence[int]] | None = None
    table: ClassVar[Tensor]  # the layout as a tensor

    def __post_init__(self) -> None:
        count("blocks", "size", self.size, least=1)
        count("blocks", "before", self.before, least=0)
        count("blocks", "after", self.after, least=0)
        if self.layout is not None:
            if self.before or self.after:
                raise SaccadeError("blocks: a layout says all; before and after do not go with it")
            object.__setattr__(self, "layout", square(self.layout))
            object.__setattr__(self, "table", torch.tensor(self.layout, device="cpu"))

    def dense(self, grid: Grid) -> Tensor:
        a, b = grid.i // self.size, grid.j // self.size
        if self.layout is None:
            return (b >= a - self.before) & (b <= a + self.after)
        self._covers(grid)
        return self.table.to(grid.device)[a, b]

    def tiles(self, tiling: Tiling) -> Tensor:
        top, bottom, left, right = (each // self.size for each in tiling[1:])
        if self.layout is None:
            never = (right < top - self.before) | (left > bottom + self.after)
            return judge(never, (left >= bottom - self.before) & (right <= top + self.after))
        self._covers(tiling.grid)
        return counted(self.table, (top[:, 0], bottom[:, 0]), (left[0], right[0]))

    def _covers(self, grid: Grid) -> None:
        positions = self.table.shape[0] * self.size
        if grid.end() > positions:
            raise SaccadeError(f"blocks: the layout covers {positions} positions; this call has {grid.end()}")


@dataclass(frozen=True, eq=False, repr=False)
class bigbird(Mask):
    """Window + global + random blocks (Zaheer et al. 2020).

    A block of `block` positions sees the `window` blocks around it (an odd number), the first `globals` blocks see all
    and are seen by all, and each block is linked with `random` blocks drawn among those before its window. Differs from
    the paper: links are symmetric and depend on (seed, position) alone, not on the sequence's length, so that
    `causal & bigbird(...)` decodes with a cache as it trained.
    """

    block: int = 64
    window: int = 3
    globals: int = 1
    random: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("block", 1), ("window", 1), ("globals", 0), ("random", 0), ("seed", 0)):
            count("bigbird", name, getattr(self, name), least=least)
        if self.window % 2 == 0:
            raise SaccadeError(
                f"bigbird: window counts the block itself and as many on each side; {self.window} is even"
            )

    def dense(self, grid: Grid) -> Tensor:
        (top, bottom), (left, right) = grid.bounds(), grid.span()
        a, b = (
            torch.arange(first // self.block, (end - 1) // self.block + 1, device="cpu")
            for first, end in ((top, bottom), (left, right))
        )
        table = self.linked(a, b).to(grid.device)
        return table[grid.i // self.block - top // self.block, grid.j // self.block - left // self.block]

    def tiles(self, tiling: Tiling) -> Tensor:
        top, bottom, left, right = (each.flatten() // self.block for each in tiling[1:])
        first, a = int(top.min()), torch.arange(int(top.min()), int(bottom.max()) + 1, device="cpu")
        b = torch.arange(int(right.max()) + 1, device="cpu")
        return counted(self.linked(a, b), (top - first, bottom - first), (left, right))

    def links(self, n: int) -> Tensor:
        """Which of n blocks see each other, (n,n)."""
        blocks = torch.arange(n, device="cpu")
        return self.linked(blocks, blocks)

    def linked(self, a: Tensor, b: Tensor) -> Tensor:
        """Which of the blocks a (n,) and b (m,) see each other, (n,m)."""
        a, b = a.view(-1, 1), b.view(1, -1)
        seen = ((a - b).abs() <= self.window // 2) | (a < self.globals) | (b < self.globals)
        if self.random and seen.numel():
            drawn = self._drawn(int(max(a.max(), b.max())) + 1)
            for each in drawn.unbind(1):
                seen |= (each[a] == b) | (each[b] == a)
        return seen

    def _drawn(self, n: int) -> Tensor:
        """The blocks that each of n blocks has drawn, (n,random); -1 where there were too few to draw from.

        Drawn for the next power of two and kept: a mask is asked again with every tile, every layer and every step.
        """
        n = 1 << (n - 1).bit_length()
        if torch.compiler.is_compiling():
            return self._draw(n)
        key = (self.window, self.globals, self.random, self.seed, n)
        found = _DRAWN.get(key)
        if found is None:
            if len(_DRAWN) >= KEPT:
                _DRAWN.clear()
            found = _DRAWN[key] = self._draw(n)
        return found

    def _draw(self, n: int) -> Tensor:
        b, none = torch.arange(n, device="cpu").view(1, -1), torch.iinfo(torch.int64).max
        drawn = []
        for a in torch.arange(n, device="cpu").view(-1, 1).split(max(1, STRIP // n)):
            far = (b >= self.globals) & (b < a - self.window // 2)
            lots = _hash(self.seed, a, b).masked_fill(~far, none)
            least, blocks = lots.topk(min(self.random, n), 1, largest=False)
            drawn.append(blocks.masked_fill(least == none, -1))
        return torch.cat(drawn)


@dataclass(frozen=True, eq=False, repr=False)
class windows(Mask):
    """A picture of height x width cells in reading order; a window of size x size cells sees itself (Swin).

    With `shift`, the windows begin `shift` cells further down and to the right. The paper rolls the picture, so that
    what is left over at opposite edges shares a window, and masks the two from each other; here they are windows apart.
    """

    height: int
    width: int
    size: int
    shift: int = 0

    def __post_init__(self) -> None:
        for name, least in (("height", 1), ("width", 1), ("size", 1), ("shift", 0)):
            count("windows", name, getattr(self, name), least=least)
        if self.shift >= self.size:
            raise SaccadeError(f"windows: shift is smaller than the size {self.size}; got {self.shift}")

    def dense(self, grid: Grid) -> Tensor:
        self._covers(grid)
        i, j = grid.i, grid.j
        rows = self._window_of(i // self.width) == self._window_of(j // self.width)
        return rows & (self._window_of(i % self.width) == self._window_of(j % self.width))

    def tiles(self, tiling: Tiling) -> Tensor:
        self._covers(tiling.grid)
        (top, bottom, west, east), (first, last, left, right) = (
            self._corners(tiling.top, tiling.bottom),
            self._corners(tiling.left, tiling.right),
        )
        never = (first > bottom) | (last < top) | (left > east) | (right < west)
        one = (top == bottom) & (first == last) & (west == east) & (left == right)
        return judge(never, one & (top == first) & (west == left))

    def _window_of(self, cells: Tensor) -> Tensor:
        """The number of the window along one side; -1 for what lies before the first."""
        return (cells - self.shift) // self.size

    def _corners(self, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The first and last windows downwards, and from left to right, that the positions first ... last lie in."""
        top, bottom = first // self.width, last // self.width
        wrapped = top != bottom
        west = torch.where(wrapped, 0, first % self.width)
        east = torch.where(wrapped, self.width - 1, last % self.width)
        return self._window_of(top), self._window_of(bottom), self._window_of(west), self._window_of(east)

    def _covers(self, grid: Grid) -> None:
        cells = self.height * self.width
        if grid.end() > cells:
            raise SaccadeError(
                f"windows: a picture of {self.height} x {self.width} has {cells} positions; this call has {grid.end()}"
            )


def _hash(seed: int, a: Tensor, b: Tensor) -> Tensor:
    """Well-mixed positive integers, the same on every machine (the finaliser of MurmurHash3, in 32 bits)."""
    x = (a * 0x9E3779B1 + b * 0x85EBCA77 + seed * 0xC2B2AE3D) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return (x ^ (x >> 16)) * 0x10000 + (b & 0xFFFF)  # the block's number settles equal hashes
