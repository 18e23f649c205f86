"""Parting a user's own rows into training and validation, and checking that nothing stands on both sides.

The side of a row depends on the hash of its source alone, of what its field calls its identity (of a text, whatever
its spaces; of a picture, its file or its pixels), so that it is the same in every run, whatever the order of the rows,
and two rows with one source never come apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from saccade.error import SaccadeError, nearest

Row = tuple[Any, ...]
SIDES = ("train", "val")
CHUNK = 1 << 16  # sources looked up at once


def split(
    rows: Iterable[Row], side: str, identity: Callable[[Row], bytes], *, share: float, seed: int = 0
) -> Iterator[Row]:
    """The rows of one side, "train" or "val"; about `share` of what differs by its identity (the source's) is val."""
    if side not in SIDES:
        raise SaccadeError(f"there is no side {side!r} of a split; {nearest(side, SIDES)}")
    if not 0 < share < 1:
        raise SaccadeError(f"a validation share of {share} leaves a side empty: give one between 0 and 1")
    edge = int(share * 2**64)
    return (row for row in rows if (mark(identity(row), seed) < edge) == (side == "val"))


def mark(identity: bytes, seed: int = 0) -> int:
    """What makes a source itself as 64 bits, evenly spread."""
    salt = seed.to_bytes(8, "little", signed=True)
    return int.from_bytes(hashlib.blake2b(identity, digest_size=8, salt=salt).digest())


def leak(train: Iterable[bytes], val: Iterable[bytes]) -> int:
    """How many different validation sources also stand in training; keeps eight bytes of each validation source."""
    held = np.concatenate([np.empty(0, np.uint64), *_marks(val)])
    held = np.unique(held)
    shared = np.zeros(len(held), bool)
    for marks in _marks(train):
        shared |= np.isin(held, marks)
    return int(shared.sum())


def _marks(sources: Iterable[bytes]) -> Iterator[np.ndarray]:
    each = iter(sources)
    while chunk := [mark(source) for source in islice(each, CHUNK)]:
        yield np.array(chunk, np.uint64)
