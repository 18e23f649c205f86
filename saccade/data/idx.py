"""IDX files: arrays of pictures or labels as MNIST has them (LeCun et al. 1998), gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saccade.error import SaccadeError
from saccade.field.field import Kind

TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def array(path: str | Path) -> np.ndarray:
    path = Path(path)
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as problem:
        raise SaccadeError(f"{path} cannot be read: {problem}") from None
    head = content[:4]
    if not _is_head(head):
        raise SaccadeError(f"{path} is no IDX file: its first bytes are {head.hex()}")
    begin = 4 + 4 * head[3]
    if len(content) < begin:
        raise SaccadeError(f"{path} is cut off inside its head")
    shape, kind = struct.unpack(f">{head[3]}I", content[4:begin]), np.dtype(TYPES[head[2]])
    there, promised = len(content) - begin, math.prod(shape) * kind.itemsize
    if there != promised:
        raise SaccadeError(f"{path} is cut off: {promised:,} bytes were promised, {there:,} are there")
    return np.frombuffer(content, kind, offset=begin).reshape(shape)


def pairs(paths: Sequence[str | Path], names: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
    """Pictures and their labels from two files; names: of the labels, their numbers by default."""
    if len(paths) != 2:
        raise SaccadeError(f"IDX files come in pairs, of pictures and of labels; got {len(paths)}")
    pictures, labels = array(paths[0]), array(paths[1])
    if pictures.ndim not in (3, 4) or labels.ndim != 1:
        raise SaccadeError(f"{paths[0]} should hold pictures and {paths[1]} labels: give them in this order")
    if len(pictures) != len(labels):
        raise SaccadeError(f"{paths[0]} has {len(pictures):,} pictures and {paths[1]} {len(labels):,} labels")
    if labels.dtype.kind not in "ui" or labels.min(initial=0) < 0:
        raise SaccadeError(f"{paths[1]}: labels are whole numbers from 0 on")
    called = [str(each) for each in range(int(labels.max(initial=0)) + 1)] if names is None else names
    return ((picture, called[label]) for picture, label in zip(pictures, labels.tolist(), strict=True))


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Whether all files begin as IDX files do."""
    return bool(paths) and all(path.is_file() and _has_head(path) for path in paths)


def _has_head(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(4)
    except (OSError, EOFError, zlib.error):
        return False
    return _is_head(head)


def _is_head(head: bytes) -> bool:
    """Whether four bytes are two zeros, a type of numbers, and a number of axes."""
    return len(head) == 4 and head[:2] == b"\0\0" and head[2] in TYPES and 1 <= head[3] <= 4
