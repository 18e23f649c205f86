"""Parting a user's own rows into training and validation, and checking that nothing stands on both sides.

The side of a row depends on the hash of its source text alone, so that it is the same in every run, whatever the order
of the rows, and two rows with one source never come apart. How a source is spaced does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from saccade.error import SaccadeError, nearest

SIDES = ("train", "val")
CHUNK = 1 << 16  # sources looked up at once


def split(rows: Iterable[Sequence[str]], side: str, *, share: float, seed: int = 0) -> Iterator[Sequence[str]]:
    """The rows of one side, "train" or "val"; about `share` of the sources (the first column) are val."""
    if side not in SIDES:
        raise SaccadeError(f"there is no side {side!r} of a split; {nearest(side, SIDES)}")
    if not 0 < share < 1:
        raise SaccadeError(f"a validation share of {share} leaves a side empty: give one between 0 and 1")
    edge = int(share * 2**64)
    return (row for row in rows if (mark(row[0], seed) < edge) == (side == "val"))


def mark(source: str, seed: int = 0) -> int:
    """A source as 64 bits, evenly spread."""
    salt = seed.to_bytes(8, "little", signed=True)
    return int.from_bytes(hashlib.blake2b(" ".join(source.split()).encode(), digest_size=8, salt=salt).digest())


def leak(train: Iterable[str], val: Iterable[str]) -> int:
    """How many different validation sources also stand in training; keeps eight bytes of each validation source."""
    held = np.concatenate([np.empty(0, np.uint64), *_marks(val)])
    held = np.unique(held)
    shared = np.zeros(len(held), bool)
    for marks in _marks(train):
        shared |= np.isin(held, marks)
    return int(shared.sum())


def _marks(sources: Iterable[str]) -> Iterator[np.ndarray]:
    each = iter(sources)
    while chunk := [mark(source) for source in islice(each, CHUNK)]:
        yield np.array(chunk, np.uint64)
