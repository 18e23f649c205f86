"""A call cut into tiles of queries, each with the keys that it may look at and nothing of the others.

The mask is asked about tiles by their edges (`tile`); where it answers "some", its dense form of that tile decides, so
the result is the mask's own. What is planned here is small: a few runs of keys for each tile of queries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from saccade.attend.algebra import Mask
from saccade.attend.grid import Grid
from saccade.attend.tile import NOBODY, SOME, Tiling

# Queries of a tile, and what a pair of a query and a key then costs (measured, LOG.md): large tiles compute faster,
# small ones leave out more.
QUERIES = {64: 1.0, 128: 0.82, 256: 0.75}
KEYS = 64
STRIP = 1 << 20  # tiles that a mask is asked about at once
SAMPLE = 32  # tiles of queries that decide on the size
MOST = 64  # calls of which something is kept
X = TypeVar("X")
_KEPT: dict[tuple[Any, ...], Any] = {}


class Piece(NamedTuple):
    """A run of keys that a tile of queries looks at, and which terms of the mask hide some of the pairs, by number."""

    run: range
    terms: tuple[int, ...] = ()


class Tile(NamedTuple):
    """Some queries, the runs of keys that they look at, and the same runs cut where other terms hide something."""

    rows: range
    runs: tuple[range, ...]
    pieces: tuple[Piece, ...]

    @property
    def width(self) -> int:
        """How many keys they are."""
        return sum(map(len, self.runs))

    @property
    def masked(self) -> bool:
        """Whether the mask hides any of these pairs."""
        return any(piece.terms for piece in self.pieces)


class Cut(NamedTuple):
    """One call: the terms of its mask, and its tiles in order. Every run of keys begins at a multiple of `KEYS`."""

    terms: tuple[Mask, ...]
    grid: Grid
    tiles: list[Tile]

    def grid_of(self, tile: Tile) -> Grid:
        """The call of one tile."""
        return self.grid.take(tile.rows).among(tile.runs)

    def may(self, tile: Tile, piece: Piece) -> Tensor:
        """Who may look at whom in a piece that terms of the mask hide some of, (1, H or 1, rows, keys)."""
        grid = self.grid.take(tile.rows).among((piece.run,))
        may = [self.terms[term].dense(grid) for term in piece.terms]
        return functools.reduce(torch.logical_and, may).expand(-1, -1, len(tile.rows), len(piece.run))

    def shape(self, tile: Tile) -> tuple[Any, ...] | None:
        """What the tile's mask depends on, where all that hides something in it asks for differences alone."""
        parts: list[Any] = [len(tile.rows)]
        for run, terms in tile.pieces:
            if any(not self.terms[term].relative() for term in terms):
                return None
            parts.append((len(run), run.start - tile.rows.start, terms) if terms else len(run))
        return tuple(parts)


def cut(mask: Mask, grid: Grid) -> Cut:
    """The tiles of a call whose queries begin at one position, and of which there are some, as there are keys."""
    terms = _terms(mask)

    def tiles() -> list[Tile]:
        return list(_tiles(terms, grid, min(QUERIES, key=lambda size: _cost(terms, grid, size))))

    return Cut(terms, grid, _keep("tiles", mask, grid, tiles))


def cost(mask: Mask, grid: Grid) -> float:
    """What the call costs in tiles: pairs of a query and a key of a tile of 64, as far as a sample tells."""
    terms = _terms(mask)
    return _keep("cost", mask, grid, lambda: min(_cost(terms, grid, size) for size in QUERIES))


def _keep(what: str, mask: Mask, grid: Grid, make: Callable[[], X]) -> X:
    """What is made for a mask that numbers alone describe is kept: every layer and every step asks for it again."""
    key = what, mask, grid.T, grid.S, grid.start
    with suppress(KeyError):
        return _KEPT[key]
    made = make()
    if _literal(mask):
        if len(_KEPT) >= MOST:
            _KEPT.clear()
        _KEPT[key] = made
    return made


def _terms(mask: Mask) -> tuple[Mask, ...]:
    """The masks whose conjunction it is, once each, or it alone where they are too many to be told apart by bits."""
    terms = tuple(dict.fromkeys(mask.terms()))
    return terms if len(terms) < 60 else (mask,)


def _literal(mask: Any) -> bool:
    """Whether a mask, or what it holds, consists of numbers and names, which nobody can change behind our back."""
    if isinstance(mask, Mask):
        return is_dataclass(mask) and all(_literal(getattr(mask, each.name)) for each in fields(mask))
    return mask is None or isinstance(mask, int | str | tuple)


def _tiling(grid: Grid, size: int) -> Tiling:
    """Tiles begin at multiples of their size among the positions, as the blocks of masks do."""
    first, end = grid.bounds()
    top = torch.arange(first // size, (end - 1) // size + 1, device="cpu").view(-1, 1) * size
    left = torch.arange(0, grid.S, KEYS, device="cpu").view(1, -1)
    return Tiling(
        grid, top.clamp(min=first), (top + size).clamp(max=end) - 1, left, (left + KEYS).clamp(max=grid.S) - 1
    )


def _ask(terms: tuple[Mask, ...], tiling: Tiling) -> Tensor:
    """What is left of each tile, (n,m): NOBODY, or 1 and the numbers of the terms that hide some of it as bits."""
    kept, codes = (torch.tensor(each, device="cpu") for each in (True, 1))
    for number, term in enumerate(terms):
        state = term.tiles(tiling)
        kept = kept & (state != NOBODY)
        codes = codes + ((state == SOME) << number + 1)
    return (codes * kept).expand(len(tiling.top), tiling.left.shape[1])


def _cost(terms: tuple[Mask, ...], grid: Grid, size: int) -> float:
    tiling = _tiling(grid, size)
    n = len(tiling.top)
    # Not at even distances, lest the sample fall into the step of a pattern; the first tile is often unlike the others.
    chosen = torch.arange(n, device="cpu") if n <= SAMPLE else torch.linspace(1, n - 1, SAMPLE, device="cpu").long()
    some = tiling._replace(top=tiling.top[chosen], bottom=tiling.bottom[chosen])
    kept = (_ask(terms, some) != NOBODY).sum(1) * KEYS
    pairs = (kept * (some.bottom - some.top + 1)[:, 0]).sum().item() * n / len(chosen)
    return pairs * QUERIES[size]


def _tiles(terms: tuple[Mask, ...], grid: Grid, size: int) -> Iterator[Tile]:
    tiling = _tiling(grid, size)
    step = max(1, STRIP // max(1, tiling.left.shape[1]))
    for first in range(0, len(tiling.top), step):
        strip = tiling._replace(top=tiling.top[first : first + step], bottom=tiling.bottom[first : first + step])
        pieces: list[list[Piece]] = [[] for _ in strip.top]
        for row, piece in _pieces(_ask(terms, strip), grid.S, len(terms)):
            pieces[row].append(piece)
        edges = (torch.cat((strip.top, strip.bottom + 1), 1) - grid.bounds()[0]).tolist()
        for (start, stop), each in zip(edges, pieces, strict=True):
            yield Tile(range(start, stop), _joined([piece.run for piece in each]), tuple(each))


def _pieces(codes: Tensor, S: int, terms: int) -> Iterator[tuple[int, Piece]]:
    """Row by row, the runs of keys that are looked at, cut where the terms that hide something change."""
    n, m = codes.shape
    begins = torch.cat((torch.ones(n, 1, dtype=torch.bool, device="cpu"), codes[:, 1:] != codes[:, :-1]), 1).nonzero()
    found = torch.cat((begins, codes[begins[:, 0], begins[:, 1]].unsqueeze(1)), 1).tolist()
    for (row, first, code), (other, after, _) in zip(found, [*found[1:], (n, 0, 0)], strict=True):
        if code != NOBODY:
            last = after if other == row else m
            hiding = tuple(term for term in range(terms) if code >> term + 1 & 1)
            yield row, Piece(range(first * KEYS, min(last * KEYS, S)), hiding)


def _joined(runs: list[range]) -> tuple[range, ...]:
    joined: list[range] = []
    for run in runs:
        if joined and joined[-1].stop == run.start:
            joined[-1] = range(joined[-1].start, run.stop)
        else:
            joined.append(run)
    return tuple(joined)
