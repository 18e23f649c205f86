"""What a row is: an example by itself, a window of something longer, or a text that is read in segments.

A way through a corpus picks the examples of one batch after another, from any place on; which they are depends on the
seed, the epoch and the position alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from saccade import spec
from saccade.data.batch import Batches, Piece, Windows, cover, cover_in_order, side_by_side
from saccade.data.batch import texts as stretched
from saccade.error import SaccadeError
from saccade.field.field import Column, Field, Taken

Columns = Mapping[str, Column]


class Picked(NamedTuple):
    """The examples of a batch by column. lane: where it goes on from another, which of the memories is its own; fresh:
    that is empty.
    """

    taken: dict[str, Taken]
    lane: int | None = None
    fresh: bool = False


@dataclass(frozen=True)
class Order:
    """How much a batch takes (of the fields' own unit), how many make a step, and the seed."""

    budget: int
    accumulate: int = 1
    seed: int = 0


class Rows(Protocol):
    """A way through a corpus."""

    def walk(
        self, seen: Callable[[int], Columns], order: Order, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Epoch, position and examples without end, from any place on; seen: the columns as an epoch shows them."""

    def whole(self, columns: Columns, order: Order) -> Iterator[Picked]:
        """Everything once."""


class records:
    """Examples by themselves, those of similar size together."""

    def __init__(self, *, fields: Mapping[str, Field]) -> None:
        self.fields, self.unit = fields, unit_of(fields)

    def walk(
        self, seen: Callable[[int], Columns], order: Order, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Batches of similar sizes without end."""
        while True:
            columns = seen(epoch)
            batches = Batches(self._sizes(columns), order.budget, seed=order.seed, unit=self.unit)
            for place, indices in enumerate(batches.epoch(epoch)[position:], position):
                yield epoch, place, self._picked(columns, indices)
            epoch, position = epoch + 1, 0

    def whole(self, columns: Columns, order: Order) -> Iterator[Picked]:
        """Every example once."""
        sizes = self._sizes(columns)
        budget = max(order.budget, max(int(each.max()) for each in sizes))
        for indices in Batches(sizes, budget, shuffle=False).epoch(0):
            yield self._picked(columns, indices)

    def _sizes(self, columns: Columns) -> list[np.ndarray]:
        """Of the columns that are measured in the unit of a batch."""
        return [field.sizes(columns[name]) for name, field in self.fields.items() if field.unit == self.unit]

    def _picked(self, columns: Columns, indices: np.ndarray) -> Picked:
        return Picked({name: columns[name].take(indices) for name in self.fields})


class windows:
    """Windows of `length` positions, and the one after, at random places of one long stream."""

    def __init__(self, length: int, *, fields: Mapping[str, Field]) -> None:
        self.length, self.column = length, _only(fields)

    def walk(
        self, seen: Callable[[int], Columns], order: Order, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Windows without end, as many at a time as make up a batch."""
        column = seen(0)[self.column]
        order_of = Windows(_total(column), self.length, _together(order, self.length), seed=order.seed)
        for place in count(position):
            yield 0, place, self._picked(column, order_of.starts(place), self.length)

    def whole(self, columns: Columns, order: Order) -> Iterator[Picked]:
        """The whole stream, every position but the first once."""
        column = columns[self.column]
        for starts, length in cover(_total(column), self.length, _together(order, self.length)):
            yield self._picked(column, starts, length)

    def _picked(self, column: Column, starts: np.ndarray, length: int) -> Picked:
        return Picked({self.column: cut(column.array("tokens"), starts, length)})


class segments:
    """Windows in their order, each going on from the one before it in its lane."""

    def __init__(self, length: int, *, fields: Mapping[str, Field]) -> None:
        self.length, self.column = length, _only(fields)

    def walk(
        self, seen: Callable[[int], Columns], order: Order, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Segments without end."""
        stream = seen(0)[self.column].array("tokens")
        rows = _together(order, self.length)
        stretches = side_by_side(len(stream), self.length, rows, order.accumulate, seed=order.seed)
        for number, place, piece in stretches.walk(epoch, position):
            yield number, place, self._picked(stream, piece, self.length)

    def whole(self, columns: Columns, order: Order) -> Iterator[Picked]:
        """The whole stream, every position but the first once."""
        stream = columns[self.column].array("tokens")
        for piece, length in cover_in_order(len(stream), self.length, _together(order, self.length)):
            yield self._picked(stream, piece, length)

    def _picked(self, stream: np.ndarray, piece: Piece, length: int) -> Picked:
        return Picked({self.column: cut(stream, piece.starts, length)}, piece.lane, piece.fresh)


class texts:
    """Texts that are all as long, each for itself: at once (`whole`), or in segments of `length`."""

    def __init__(self, length: int, whole: bool = True, *, fields: Mapping[str, Field]) -> None:
        self.length, self.at_once, self.column = length, whole, _only(fields)

    def walk(
        self, seen: Callable[[int], Columns], order: Order, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Texts without end, as many at a time as make up a batch."""
        column = seen(0)[self.column]
        stream, sizes, rows = column.array("tokens"), column.lengths() - 1, _together(order, self.length)
        size = self.size(sizes)
        stretches = stretched(len(sizes), size, self.length, rows, order.accumulate, seed=order.seed)
        for number, place, piece in stretches.walk(epoch, position):
            yield number, place, self._picked(stream, piece)

    def whole(self, columns: Columns, order: Order) -> Iterator[Picked]:
        """Every text once."""
        column = columns[self.column]
        size = self.size(column.lengths() - 1)
        yield from self.all(column.array("tokens"), size, _together(order, self.length))

    def all(self, stream: np.ndarray, size: int, rows: int) -> Iterator[Picked]:
        """All texts of a stream in order, so many at a time, each to its end."""
        begins = np.arange(0, len(stream), size + 1)
        for first in range(0, len(begins), rows):
            for place in range(0, size, self.length):
                piece = Piece(begins[first : first + rows] + place, 0, fresh=not place)
                yield self._picked(stream, piece)

    def size(self, sizes: np.ndarray) -> int:
        """How long all texts are; refuses what does not fit."""
        if not len(sizes):
            raise SaccadeError("there is no text to judge")
        size = int(sizes[0])
        if (sizes != size).any():
            some = f"some have {sizes.min()} tokens, some {sizes.max()}"
            raise SaccadeError(f"texts with answers are all as long; here {some}")
        if size % self.length or (self.at_once and size != self.length):
            fitting = f"{size}" if self.at_once else f"a divisor of {size}"
            raise SaccadeError(f"the texts have {size} tokens and y.window is {self.length}: set it to {fitting}")
        return size

    def _picked(self, stream: np.ndarray, piece: Piece) -> Picked:
        before = np.where(piece.starts > 0, stream[piece.starts - 1].astype(np.int64), -1)
        taken = {**cut(stream, piece.starts, self.length), "before": before}
        return Picked({self.column: taken}, None if self.at_once else piece.lane, piece.fresh)


def cut(stream: np.ndarray, starts: np.ndarray, length: int) -> dict[str, Any]:
    """Windows (B, length + 1) of a stream."""
    places = np.asarray(starts)[:, None] + np.arange(length + 1)
    return {"tokens": stream[places].astype(np.int64)}


def unit_of(fields: Mapping[str, Field]) -> str:
    """What a batch's budget counts: the unit of the first field whose examples differ in size, or of the first."""
    ragged = (each for each in fields.values() if any(array.ragged for array in each.arrays.values()))
    return next(ragged, next(iter(fields.values()))).unit


def rows_of(text: str, fields: Mapping[str, Field]) -> Rows:
    """A way through a corpus from its spec."""
    made: Rows = spec.read(text, ROWS, "rows", fields=fields)
    return made


def _only(fields: Mapping[str, Field]) -> str:
    (name,) = fields
    return name


def _total(column: Column) -> int:
    return len(column.array("tokens"))


def _together(order: Order, length: int) -> int:
    return max(1, order.budget // length)


ROWS: dict[str, Callable[..., Rows]] = {"records": records, "windows": windows, "segments": segments, "texts": texts}
