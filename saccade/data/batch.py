"""Batches: which examples go together, in an order that depends on the seed, the epoch and the position alone.

`Batches` puts examples of similar size together under a budget, padding counted. `Windows` draws windows of one long
stream, for language models; `cover` walks through all of it. `Stretches` are read in order, for models that remember
(Dai et al. 2019): of one long stream, or of texts of equal length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from saccade.error import SaccadeError

NOISE = 0.05  # lengths grow by up to this share, at random, before sorting: new neighbours each epoch, little padding


class Batches:
    """Examples by size under a budget: rows x the longest of any column never exceed it.

    `lengths` is an array, or one for each column that is padded on its own (source and target); unit: what they count.
    """

    def __init__(
        self,
        lengths: np.ndarray | Sequence[np.ndarray],
        budget: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        unit: str = "tokens",
    ) -> None:
        self.lengths = np.atleast_2d(np.asarray(lengths, np.int64))  # (columns, examples)
        self.budget, self.seed, self.shuffle = budget, seed, shuffle
        if not self.lengths.size:
            raise SaccadeError("there are no examples to make batches of")
        self._longest = self.lengths.max(0)
        worst = int(self._longest.argmax())
        if self._longest[worst] > budget:
            raise SaccadeError(
                f"example {worst} has {self._longest[worst]} {unit} and a batch may have {budget}: "
                "raise train.batch, or lower the limit of the longest example"
            )

    def epoch(self, number: int) -> list[np.ndarray]:
        """The batches of an epoch as arrays of indices; every example is in one of them."""
        if not self.shuffle:
            return self._cut(self._sorted(self.lengths), spent=0)
        random = random_of(self.seed, number)
        noisy = self.lengths * (1 + NOISE * random.random(self.lengths.shape))
        # The first batch is cut short at random, so that the borders between batches move from epoch to epoch.
        batches = self._cut(self._sorted(noisy), spent=int(random.integers(self.budget)))
        return [batches[each] for each in random.permutation(len(batches))]

    def waste(self, batches: Sequence[np.ndarray]) -> float:
        """The share of padding in batches, each column padded to its own longest."""
        padded = sum(int(self.lengths[:, each].max(1).sum()) * len(each) for each in batches)
        return 1 - sum(int(self.lengths[:, each].sum()) for each in batches) / padded

    def _sorted(self, lengths: np.ndarray) -> np.ndarray:
        """A permutation of the examples in which neighbours have similar lengths.

        One column is sorted. With several, the examples are sorted by the first and cut into about sqrt(batches)
        strips; inside a strip they are sorted by the others, upwards and downwards in turn. So source and target are
        padded about equally much.
        """
        permutation = np.argsort(lengths[0], kind="stable")
        if len(lengths) == 1:
            return permutation
        tokens = np.cumsum(self._longest[permutation])
        strips = max(1, int((tokens[-1] / self.budget) ** 0.5))
        strip = tokens * strips // (tokens[-1] + 1)
        others = lengths[1:].sum(0)[permutation]
        others *= np.where(strip % 2, -1, 1)
        return permutation[np.argsort(strip * (2 * np.ptp(others) + 1) + others, kind="stable")]

    def _cut(self, permutation: np.ndarray, spent: int) -> list[np.ndarray]:
        """Batches along a permutation, each with as many rows as the budget allows; the first has `spent` less."""
        longest, batches, start = np.maximum(self._longest[permutation], 1), [], 0
        while start < len(permutation):
            room = max(self.budget - spent, int(longest[start]))
            ahead = longest[start : start + room // int(longest[start])]
            size = np.maximum.accumulate(ahead) * np.arange(1, len(ahead) + 1)
            rows = int(np.searchsorted(size, room, side="right"))
            batches.append(permutation[start : start + rows])
            start, spent = start + rows, 0
        return batches


class Windows:
    """Windows of `length` tokens (and the one after) at random places of a stream of `total` tokens."""

    def __init__(self, total: int, length: int, batch: int, *, seed: int = 0) -> None:
        if total < length + 1:
            raise SaccadeError(
                f"the text has {total} tokens and a window takes {length + 1}: give more text or a shorter window"
            )
        self.total, self.length, self.batch, self.seed = total, length, batch, seed

    def starts(self, position: int) -> np.ndarray:
        """Where the windows of the batch at a position begin, (B,)."""
        return random_of(self.seed, position).integers(self.total - self.length, size=self.batch)


class SegmentBatch(NamedTuple):
    """Windows that continue others: where they begin (B,), in which lane (each has a memory of its own), and whether
    they are the first there, so that the memory is empty.
    """

    starts: np.ndarray
    lane: int
    fresh: bool


class Stretches:
    """Segments in order: row b of a batch begins where row b of the batch before it in its lane ended.

    begins(epoch) says where stretches of `segments` x `length` tokens begin, (groups, lanes, B): one group after the
    other is read to its end. The lanes take turns: with one lane for each batch that a step accumulates, a step
    continues where the last one ended.
    """

    def __init__(self, begins: Callable[[int], np.ndarray], segments: int, length: int) -> None:
        self.begins, self.segments, self.length = begins, segments, length

    def walk(self, epoch: int = 0, position: int = 0) -> Iterator[tuple[int, int, SegmentBatch]]:
        """Epoch, position and windows without end, from any place on."""
        while True:
            begins = self.begins(epoch)
            groups, lanes = begins.shape[:2]
            for place in range(position, groups * self.segments * lanes):
                turn, lane = divmod(place, lanes)
                group, segment = divmod(turn, self.segments)
                yield epoch, place, SegmentBatch(begins[group, lane] + segment * self.length, lane, segment == 0)
            epoch, position = epoch + 1, 0


def side_by_side(total: int, length: int, batch: int, lanes: int, *, seed: int = 0) -> Stretches:
    """One stream as lanes x batch stretches; where the first begins differs from epoch to epoch."""
    rows = lanes * batch
    segments = (total - length) // (rows * length)  # `length` tokens are left over: the first stretch may begin later
    if segments < 1:
        raise SaccadeError(
            f"the text has {total} tokens, and {rows} stretches of {length} take {(rows + 1) * length}: "
            "give more text, a smaller batch or a shorter window"
        )
    each = segments * length

    def begins(epoch: int) -> np.ndarray:
        first = random_of(seed, epoch).integers(total - rows * each)
        return first + each * np.arange(rows).reshape(1, lanes, batch)

    return Stretches(begins, segments, length)


def text_stretches(count: int, size: int, length: int, batch: int, lanes: int, *, seed: int = 0) -> Stretches:
    """Texts of `size` tokens and their end, a stretch each, in another order each epoch; those that would fill only a
    part of the last step are left out of that epoch.
    """
    rows = lanes * batch
    if count < rows:
        raise SaccadeError(f"there are {count} texts and a step takes {rows}: give more of them or a smaller batch")

    def begins(epoch: int) -> np.ndarray:
        permutation = random_of(seed, epoch).permutation(count)[: count // rows * rows]
        return (size + 1) * permutation.reshape(-1, lanes, batch)

    return Stretches(begins, size // length, length)


def cover(total: int, length: int, batch: int) -> Iterator[tuple[np.ndarray, int]]:
    """Windows side by side over a whole stream, as (starts, length): every token but the first is predicted once.

    The last window may be shorter and comes alone.
    """
    if total < 2:
        raise SaccadeError(f"a text of {total} tokens has nothing to predict")
    whole, rest = divmod(total - 1, length)
    starts = np.arange(whole) * length
    for first in range(0, whole, batch):
        yield starts[first : first + batch], length
    if rest:
        yield np.array([whole * length]), rest


def cover_segments(total: int, length: int, batch: int) -> Iterator[tuple[SegmentBatch, int]]:
    """As `cover`, for a model that remembers: `batch` stretches side by side, each from its beginning; then the rest.

    With a batch of 1 that is the whole stream from its first token to its last.
    """
    each = (total - 1) // (length * batch)
    for segment in range(each):
        yield SegmentBatch(length * (each * np.arange(batch) + segment), 0, fresh=not segment), length
    first = batch * each * length
    goes_on = batch == 1 and each > 0  # the rest follows the one stretch, and keeps its memory
    if first < total - 1 or not each:
        for starts, size in cover(total - first, length, 1):
            yield SegmentBatch(first + starts, 0 if goes_on else 1, fresh=not (starts[0] or goes_on)), size


def random_of(*numbers: int) -> np.random.Generator:
    """A generator of random numbers that is seeded by these numbers alone."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(numbers)))
