"""Splitting a user's own rows into training and validation.

The side of a row depends only on a hash of its source's identity, as the field defines it (of a text, the words without
regard to spaces; of a picture, its file or its pixels). So it is the same in every run, whatever the order of the rows,
and two rows with the same source are always on the same side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from saccade.error import SaccadeError, nearest

Row = tuple[Any, ...]
SIDES = ("train", "val")


def split(
    rows: Iterable[Row], side: str, identity: Callable[[Row], bytes], *, share: float, seed: int = 0
) -> Iterator[Row]:
    """The rows of one side, "train" or "val"; about `share` of the different identities are val."""
    if side not in SIDES:
        raise SaccadeError(f"there is no side {side!r} of a split; {nearest(side, SIDES)}")
    if not 0 < share < 1:
        raise SaccadeError(f"a validation share of {share} leaves a side empty: give one between 0 and 1")
    return (row for row in rows if held_out(identity(row), share, seed) == (side == "val"))


def held_out(identity: bytes, share: float, seed: int = 0) -> bool:
    """Whether the source with this identity is one of the share that is split off for validation."""
    return mark(identity, seed) < int(share * 2**64)


def mark(identity: bytes, seed: int = 0) -> int:
    """A hash of an identity: 64 bits, evenly spread."""
    salt = seed.to_bytes(8, "little", signed=True)
    return int.from_bytes(hashlib.blake2b(identity, digest_size=8, salt=salt).digest())
