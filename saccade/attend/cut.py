"""A call cut into tiles of queries, each with the keys that it may look at.

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
MOST = 64  # entries of the cache
X = TypeVar("X")
_CACHE: dict[tuple[Any, ...], Any] = {}


class KeySpan(NamedTuple):
    """Neighbouring keys that a tile of queries looks at; `terms`: those of the mask that hide some pairs, by number."""

    keys: range
    terms: tuple[int, ...] = ()


class Tile(NamedTuple):
    """Some queries, the runs of keys that they look at, and the same runs cut where other terms hide something."""

    rows: range
    runs: tuple[range, ...]
    spans: tuple[KeySpan, ...]

    @property
    def width(self) -> int:
        """How many keys they are."""
        return sum(map(len, self.runs))

    @property
    def masked(self) -> bool:
        """Whether the mask hides any of these pairs."""
        return any(span.terms for span in self.spans)


class Cut(NamedTuple):
    """One call: the terms of its mask, and its tiles in order. Every run of keys begins at a multiple of `KEYS`."""

    terms: tuple[Mask, ...]
    grid: Grid
    tiles: list[Tile]

    def grid_of(self, tile: Tile) -> Grid:
        """The call of one tile."""
        return self.grid.take(tile.rows).among(tile.runs)

    def may(self, tile: Tile, span: KeySpan) -> Tensor:
        """Who may look at whom in a span of which the mask hides some pairs, (1, H or 1, rows, keys)."""
        grid = self.grid.take(tile.rows).among((span.keys,))
        may = [self.terms[term].dense(grid) for term in span.terms]
        return functools.reduce(torch.logical_and, may).expand(-1, -1, len(tile.rows), len(span.keys))

    def shape(self, tile: Tile) -> tuple[Any, ...] | None:
        """A key that tiles with the same mask share; None where the mask depends on absolute positions."""
        parts: list[Any] = [len(tile.rows)]
        for keys, terms in tile.spans:
            if any(not self.terms[term].relative() for term in terms):
                return None
            parts.append((len(keys), keys.start - tile.rows.start, terms) if terms else len(keys))
        return tuple(parts)


def cut(mask: Mask, grid: Grid) -> Cut:
    """The tiles of a call with queries and keys, whose examples all begin at the same position."""
    terms = _terms(mask)

    def tiles() -> list[Tile]:
        return list(_tiles(terms, grid, min(QUERIES, key=lambda size: _cost(terms, grid, size))))

    return Cut(terms, grid, _cached("tiles", mask, grid, tiles))


def cost(mask: Mask, grid: Grid) -> float:
    """What the call costs in tiles, estimated from a sample: in pairs of a query and a key, as tiles of 64 cost."""
    terms = _terms(mask)
    return _cached("cost", mask, grid, lambda: min(_cost(terms, grid, size) for size in QUERIES))


def _cached(what: str, mask: Mask, grid: Grid, make: Callable[[], X]) -> X:
    """Makes it once for each mask that cannot change: every layer and every step asks for the same again."""
    key = what, mask, grid.T, grid.S, grid.start
    with suppress(KeyError):
        return _CACHE[key]
    made = make()
    if _is_immutable(mask):
        if len(_CACHE) >= MOST:
            _CACHE.clear()
        _CACHE[key] = made
    return made


def _terms(mask: Mask) -> tuple[Mask, ...]:
    """The masks whose conjunction it is, once each; it alone where they are too many for the bits of an integer."""
    terms = tuple(dict.fromkeys(mask.terms()))
    return terms if len(terms) < 60 else (mask,)


def _is_immutable(mask: Any) -> bool:
    """Whether a mask, or a field of one, holds only numbers and names, and no tensor that somebody could change."""
    if isinstance(mask, Mask):
        return is_dataclass(mask) and all(_is_immutable(getattr(mask, each.name)) for each in fields(mask))
    return mask is None or isinstance(mask, int | str | tuple)


def _tiling(grid: Grid, size: int) -> Tiling:
    """The edges of all tiles; they begin at multiples of their size, as the blocks of masks do."""
    first, end = grid.bounds()
    top = torch.arange(first // size, (end - 1) // size + 1, device="cpu").view(-1, 1) * size
    left = torch.arange(0, grid.S, KEYS, device="cpu").view(1, -1)
    return Tiling(
        grid, top.clamp(min=first), (top + size).clamp(max=end) - 1, left, (left + KEYS).clamp(max=grid.S) - 1
    )


def _tile_codes(terms: tuple[Mask, ...], tiling: Tiling) -> Tensor:
    """A code for each tile, (n,m): NOBODY, or 1 with bit t + 1 set for each term t that hides some of its pairs."""
    kept, codes = (torch.tensor(each, device="cpu") for each in (True, 1))
    for number, term in enumerate(terms):
        state = term.tiles(tiling)
        kept = kept & (state != NOBODY)
        codes = codes + ((state == SOME) << number + 1)
    return (codes * kept).expand(len(tiling.top), tiling.left.shape[1])


def _cost(terms: tuple[Mask, ...], grid: Grid, size: int) -> float:
    tiling = _tiling(grid, size)
    n = len(tiling.top)
    # At uneven distances, which do not fall in step with a pattern; without the first tile, often unlike the others.
    chosen = torch.arange(n, device="cpu") if n <= SAMPLE else torch.linspace(1, n - 1, SAMPLE, device="cpu").long()
    some = tiling._replace(top=tiling.top[chosen], bottom=tiling.bottom[chosen])
    kept = (_tile_codes(terms, some) != NOBODY).sum(1) * KEYS
    pairs = (kept * (some.bottom - some.top + 1)[:, 0]).sum().item() * n / len(chosen)
    return pairs * QUERIES[size]


def _tiles(terms: tuple[Mask, ...], grid: Grid, size: int) -> Iterator[Tile]:
    tiling = _tiling(grid, size)
    step = max(1, STRIP // max(1, tiling.left.shape[1]))
    for first in range(0, len(tiling.top), step):
        strip = tiling._replace(top=tiling.top[first : first + step], bottom=tiling.bottom[first : first + step])
        spans: list[list[KeySpan]] = [[] for _ in strip.top]
        for row, span in _spans(_tile_codes(terms, strip), grid.S, len(terms)):
            spans[row].append(span)
        edges = (torch.cat((strip.top, strip.bottom + 1), 1) - grid.bounds()[0]).tolist()
        for (start, stop), each in zip(edges, spans, strict=True):
            yield Tile(range(start, stop), _joined([span.keys for span in each]), tuple(each))


def _spans(codes: Tensor, S: int, terms: int) -> Iterator[tuple[int, KeySpan]]:
    """Row by row, the runs of keys that are looked at, cut where the terms that hide something change."""
    n, m = codes.shape
    begins = torch.cat((torch.ones(n, 1, dtype=torch.bool, device="cpu"), codes[:, 1:] != codes[:, :-1]), 1).nonzero()
    found = torch.cat((begins, codes[begins[:, 0], begins[:, 1]].unsqueeze(1)), 1).tolist()
    for (row, first, code), (other, after, _) in zip(found, [*found[1:], (n, 0, 0)], strict=True):
        if code != NOBODY:
            last = after if other == row else m
            hiding = tuple(term for term in range(terms) if code >> term + 1 & 1)
            yield row, KeySpan(range(first * KEYS, min(last * KEYS, S)), hiding)


def _joined(runs: list[range]) -> tuple[range, ...]:
    joined: list[range] = []
    for run in runs:
        if joined and joined[-1].stop == run.start:
            joined[-1] = range(joined[-1].start, run.stop)
        else:
            joined.append(run)
    return tuple(joined)
