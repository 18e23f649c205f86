"""Leakage: how many held-out examples stand in the training data too; and how many training rows stand there twice.

Of each held-out example, and of each training row, a hash of eight bytes is kept in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from saccade.data.split import mark
from saccade.data.supply import Row, Supply
from saccade.data.tee import tee
from saccade.field.field import Kind

CHUNK = 1 << 16  # things that are looked up at once


def leak_readers(supply: Supply) -> dict[str, Callable[[Iterable[Row]], dict[str, int]]]:
    """For each column that can leak, a function of the training rows that counts, by split, how many different held-out
    examples stand among them. The held-out splits are read now, each once.
    """
    columns = [name for name, kind in supply.kinds.items() if kind.held is not None]
    readers = [partial(_hashes_in, supply, name) for name in columns]
    held = {split: dict(zip(columns, tee(supply.rows(split), readers), strict=True)) for split in supply.splits[1:]}
    return {
        name: partial(_count_held, supply, name, {split: hashes[name] for split, hashes in held.items()})
        for name in columns
    }


def leaks(supply: Supply) -> dict[str, dict[str, int]]:
    """By column and split, how many different held-out examples stand in the training rows too."""
    readers = leak_readers(supply)
    return dict(zip(readers, tee(supply.rows("train"), list(readers.values())), strict=True))


def leak(train: Iterable[bytes], val: Iterable[bytes]) -> int:
    """How many different validation sources, given by their identities, also stand in training."""
    return _shared(train, {"val": _unique(val)})["val"]


def duplicates(supply: Supply, rows: Iterable[Row]) -> int:
    """How many rows are copies of an earlier one, in all of their columns; eight bytes a row are kept in memory."""
    kinds = list(supply.kinds.values())
    hashes = list(_hashes(_joined(kinds, row) for row in rows))
    return sum(map(len, hashes)) - len(np.unique(np.concatenate([np.empty(0, np.uint64), *hashes])))


def _joined(kinds: Sequence[Kind], row: Row) -> bytes:
    """The identity of a whole row: those of its columns, with their lengths, so that no two rows share one."""
    parts = [kind.identity(raw) for kind, raw in zip(kinds, row, strict=True)]
    return b"".join(len(each).to_bytes(8, "little") + each for each in parts)


def _hashes_in(supply: Supply, column: str, rows: Iterable[Row]) -> np.ndarray:
    return _unique(_identities(supply, column, rows))


def _count_held(supply: Supply, column: str, held: dict[str, np.ndarray], rows: Iterable[Row]) -> dict[str, int]:
    return _shared(_identities(supply, column, rows), held)


def _identities(supply: Supply, column: str, rows: Iterable[Row]) -> Iterator[bytes]:
    place, kind = list(supply.kinds).index(column), supply.kinds[column]
    return (kind.identity(each) for each in kind.parts(row[place] for row in rows))


def _unique(identities: Iterable[bytes]) -> np.ndarray:
    return np.unique(np.concatenate([np.empty(0, np.uint64), *_hashes(identities)]))


def _shared(train: Iterable[bytes], held: dict[str, np.ndarray]) -> dict[str, int]:
    """By split, how many of the held-out hashes (N,) occur in training."""
    met = {split: np.zeros(len(hashes), bool) for split, hashes in held.items()}
    for chunk in _hashes(train):
        for split, hashes in held.items():
            met[split] |= np.isin(hashes, chunk)
    return {split: int(each.sum()) for split, each in met.items()}


def _hashes(identities: Iterable[bytes]) -> Iterator[np.ndarray]:
    each = iter(identities)
    while chunk := [mark(identity) for identity in islice(each, CHUNK)]:
        yield np.array(chunk, np.uint64)
