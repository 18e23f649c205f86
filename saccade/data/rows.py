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
from saccade.data.batch import Batches, SegmentBatch, Windows, cover, cover_segments, side_by_side, text_stretches
from saccade.error import SaccadeError
from saccade.field.field import Column, Field, Taken

Columns = Mapping[str, Column]


class Picked(NamedTuple):
    """The examples of a batch by column. lane: of a batch that continues another, which memory is its own; fresh:
    whether that memory is still empty.
    """

    taken: dict[str, Taken]
    lane: int | None = None
    fresh: bool = False


@dataclass(frozen=True)
class Batching:
    """budget: the size of a batch, in the unit of the fields; accumulate: batches that make one step."""

    budget: int
    accumulate: int = 1
    seed: int = 0


class Rows(Protocol):
    """A way through a corpus. anew: whether it asks for the columns of each epoch, not of the first alone."""

    anew: bool

    def walk(
        self, seen: Callable[[int], Columns], batching: Batching, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Epoch, position and examples without end, from any place on. seen(epoch): the columns in that epoch, whose
        tokens may be taken apart anew.
        """

    def whole(self, columns: Columns, batching: Batching) -> Iterator[Picked]:
        """Every example once."""

    def most(self, columns: Columns, budget: int) -> int:
        """The size of the largest batch of a budget, in its unit."""


class records:
    """Examples by themselves, those of similar size together."""

    anew = True

    def __init__(self, *, fields: Mapping[str, Field]) -> None:
        self.fields, self.unit = fields, unit_of(fields)

    def walk(
        self, seen: Callable[[int], Columns], batching: Batching, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Batches of similar sizes without end."""
        while True:
            columns = seen(epoch)
            batches = Batches(self._sizes(columns), batching.budget, seed=batching.seed, unit=self.unit)
            for place, indices in enumerate(batches.epoch(epoch)[position:], position):
                yield epoch, place, self._picked(columns, indices)
            epoch, position = epoch + 1, 0

    def whole(self, columns: Columns, batching: Batching) -> Iterator[Picked]:
        """Every example once."""
        sizes = self._sizes(columns)
        budget = max(batching.budget, max(int(each.max()) for each in sizes))  # the longest must fit, to be measured
        for indices in Batches(sizes, budget, shuffle=False).epoch(0):
            yield self._picked(columns, indices)

    def most(self, columns: Columns, budget: int) -> int:
        return min(budget, max(int(each.sum()) for each in self._sizes(columns)))

    def _sizes(self, columns: Columns) -> list[np.ndarray]:
        """Sizes of the columns that are measured in the unit of a batch."""
        return [field.sizes(columns[name]) for name, field in self.fields.items() if field.unit == self.unit]

    def _picked(self, columns: Columns, indices: np.ndarray) -> Picked:
        return Picked({name: columns[name].take(indices) for name in self.fields})


class random_windows:
    """Windows of `length` positions, and the one after, at random places of one long stream."""

    anew = False

    def __init__(self, length: int, *, fields: Mapping[str, Field]) -> None:
        self.length, self.column = length, _only(fields)

    def walk(
        self, seen: Callable[[int], Columns], batching: Batching, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Windows without end, as many at a time as make up a batch."""
        column = seen(0)[self.column]
        places = Windows(_stream_length(column), self.length, _rows_of_batch(batching, self.length), seed=batching.seed)
        for place in count(position):
            yield 0, place, self._picked(column, places.starts(place), self.length)

    def whole(self, columns: Columns, batching: Batching) -> Iterator[Picked]:
        """The whole stream, every position but the first once."""
        column = columns[self.column]
        for starts, length in cover(_stream_length(column), self.length, _rows_of_batch(batching, self.length)):
            yield self._picked(column, starts, length)

    def most(self, columns: Columns, budget: int) -> int:
        """As many as are asked for: windows are drawn, and may overlap."""
        return max(budget, self.length)

    def _picked(self, column: Column, starts: np.ndarray, length: int) -> Picked:
        return Picked({self.column: cut(column.array("tokens"), starts, length)})


class segments:
    """Windows in their order, each going on from the one before it in its lane."""

    anew = False

    def __init__(self, length: int, *, fields: Mapping[str, Field]) -> None:
        self.length, self.column = length, _only(fields)

    def walk(
        self, seen: Callable[[int], Columns], batching: Batching, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Segments without end."""
        stream = seen(0)[self.column].array("tokens")
        rows = _rows_of_batch(batching, self.length)
        stretches = side_by_side(len(stream), self.length, rows, batching.accumulate, seed=batching.seed)
        for number, place, segment in stretches.walk(epoch, position):
            yield number, place, self._picked(stream, segment, self.length)

    def whole(self, columns: Columns, batching: Batching) -> Iterator[Picked]:
        """The whole stream, every position but the first once."""
        stream = columns[self.column].array("tokens")
        for segment, length in cover_segments(len(stream), self.length, _rows_of_batch(batching, self.length)):
            yield self._picked(stream, segment, length)

    def most(self, columns: Columns, budget: int) -> int:
        return min(budget, _stream_length(columns[self.column]))

    def _picked(self, stream: np.ndarray, segment: SegmentBatch, length: int) -> Picked:
        return Picked({self.column: cut(stream, segment.starts, length)}, segment.lane, segment.fresh)


class texts:
    """Texts of equal length, each by itself: at once (`whole`), or in segments of `length`."""

    anew = False

    def __init__(self, length: int, whole: bool = True, *, fields: Mapping[str, Field]) -> None:
        self.length, self.at_once, self.column = length, whole, _only(fields)

    def walk(
        self, seen: Callable[[int], Columns], batching: Batching, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Picked]]:
        """Texts without end, as many at a time as make up a batch."""
        column = seen(0)[self.column]
        stream, sizes, rows = column.array("tokens"), column.lengths() - 1, _rows_of_batch(batching, self.length)
        size = self.size(sizes)
        stretches = text_stretches(len(sizes), size, self.length, rows, batching.accumulate, seed=batching.seed)
        for number, place, segment in stretches.walk(epoch, position):
            yield number, place, self._picked(stream, segment)

    def whole(self, columns: Columns, batching: Batching) -> Iterator[Picked]:
        """Every text once."""
        column = columns[self.column]
        size = self.size(column.lengths() - 1)
        yield from self.all(column.array("tokens"), size, _rows_of_batch(batching, self.length))

    def all(self, stream: np.ndarray, size: int, rows: int) -> Iterator[Picked]:
        """All texts of a stream in order, `rows` at a time, each to its end."""
        begins = np.arange(0, len(stream), size + 1)
        for first in range(0, len(begins), rows):
            for place in range(0, size, self.length):
                segment = SegmentBatch(begins[first : first + rows] + place, 0, fresh=not place)
                yield self._picked(stream, segment)

    def size(self, sizes: np.ndarray) -> int:
        """The length of all texts; refuses texts of different lengths, and a window that does not divide them."""
        if not len(sizes):
            raise SaccadeError("there is no text to judge")
        size = int(sizes[0])
        if (sizes != size).any():
            some = f"some have {sizes.min()} tokens, some {sizes.max()}"
            raise SaccadeError(f"texts with questions (y.ask) must have equal lengths; here {some}")
        if size % self.length or (self.at_once and size != self.length):
            fitting = f"{size}" if self.at_once else f"a divisor of {size}"
            raise SaccadeError(f"the texts have {size} tokens and y.window is {self.length}: set it to {fitting}")
        return size

    def most(self, columns: Columns, budget: int) -> int:
        return min(budget, _stream_length(columns[self.column]))

    def _picked(self, stream: np.ndarray, segment: SegmentBatch) -> Picked:
        # The token before a segment: a question may begin in the segment before the one that holds its answer.
        before = np.where(segment.starts > 0, stream[segment.starts - 1].astype(np.int64), -1)
        taken = {**cut(stream, segment.starts, self.length), "before": before}
        return Picked({self.column: taken}, None if self.at_once else segment.lane, segment.fresh)


def cut(stream: np.ndarray, starts: np.ndarray, length: int) -> dict[str, Any]:
    """Windows (B, length + 1) of a stream."""
    places = np.asarray(starts)[:, None] + np.arange(length + 1)
    return {"tokens": stream[places].astype(np.int64)}


def unit_of(fields: Mapping[str, Field]) -> str:
    """What a batch's budget counts: the unit of the first field whose examples differ in size, or of the first."""
    ragged = (each for each in fields.values() if any(array.ragged for array in each.arrays.values()))
    return next(ragged, next(iter(fields.values()))).unit


def rows_of(text: str, fields: Mapping[str, Field]) -> Rows:
    """The way through a corpus that a spec names."""
    made: Rows = spec.read(text, ROWS, "rows", fields=fields)
    return made


def _only(fields: Mapping[str, Field]) -> str:
    (name,) = fields
    return name


def _stream_length(column: Column) -> int:
    return len(column.array("tokens"))


def _rows_of_batch(batching: Batching, length: int) -> int:
    return max(1, batching.budget // length)


ROWS: dict[str, Callable[..., Rows]] = {
    "records": records,
    "windows": random_windows,
    "segments": segments,
    "texts": texts,
}
