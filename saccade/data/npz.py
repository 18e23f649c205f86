"""NPZ files: an array of pictures and one of labels or numbers, as `numpy.savez` writes them; pickles are refused.

The pictures are read one after another, so that a file may be larger than the memory. An array `points` (N,most,F) is
one of sets of points, and a third array `lengths` says how many of them each has.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from saccade.error import SaccadeError
from saccade.field.field import Kind

POINTS, LENGTHS = "points", "lengths"  # arrays that are sets of points, and how many points each has
OUTPUTS = ("labels", "label", "y", "targets", "target", "classes", "numbers")  # which array Y is, where several may be
HEADS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
WRITE = "np.savez(file, images=images, labels=labels)"


class Member(NamedTuple):
    """An array in a file, by its head."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


class Examples(NamedTuple):
    """The array of pictures (N,H,W) or (N,H,W,colours), and that of the outputs, (N,) or (N,n); of sets of points also
    how many points each has, where the file says so.
    """

    pictures: Member
    outputs: Member
    lengths: Member | None = None


def fits(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    return bool(paths) and all(path.suffix.lower() == ".npz" and path.is_file() for path in paths)


def holds(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """The kinds of columns that its arrays may be."""
    found = pair(paths[0])
    kinds = OUTPUT_KINDS if _is_one(found.outputs) else ROW_KINDS
    inputs = "points" if found.pictures.name == POINTS else "image"
    return [(inputs, kind) for kind in kinds[found.outputs.dtype.kind]]


def rows(paths: Sequence[str], kinds: Mapping[str, Kind]) -> Iterator[tuple[Any, ...]]:
    """Each picture as an array, with what its output is."""
    output = list(kinds.values())[-1]
    for path in map(Path, paths):
        found = pair(path)
        with _opened(path) as archive:
            with _member(archive, found.outputs.name) as file:
                wanted = npy.read_array(file, allow_pickle=False)
            wanted = wanted[:, 0] if wanted.ndim == 2 and wanted.shape[1] == 1 else wanted
            lengths = [None] * len(wanted) if found.lengths is None else array(path, found.lengths.name).tolist()
            entries = zip(_entries(archive, found.pictures, path), lengths, wanted.tolist(), strict=True)
            for picture, length, each in entries:
                cells = list(map(str, each)) if isinstance(each, list) else str(each)
                yield _entry(picture, length, found.pictures), output.cell(cells, path.parent)


def pair(path: Path) -> Examples:
    """The two arrays of a file; refuses one that has no such two, or more of them."""
    with _opened(path) as archive:
        members = [_head(archive, each, path) for each in archive.namelist()]
    pictures = [each for each in members if len(each.shape) in (3, 4) and each.dtype.kind in "uifb"]
    if len(pictures) != 1:
        there = ", ".join(f"{each.name} {each.shape}" for each in members) or "nothing"
        raise SaccadeError(f"{path} should hold one array of pictures (N,H,W) or (N,H,W,3); it holds {there}: {WRITE}")
    count = pictures[0].shape[0]
    lengths = _lengths_of(pictures[0], members, path)
    outputs = [each for each in members if len(each.shape) in (1, 2) and each.dtype.kind in OUTPUT_KINDS]
    outputs = [each for each in outputs if each is not lengths]
    named = [each for each in outputs if each.name in OUTPUTS] or outputs
    if len(named) != 1 or named[0].shape[0] != count:
        there = ", ".join(f"{each.name} {each.shape}" for each in outputs) or "none"
        raise SaccadeError(f"{path} should hold one array of {count:,} labels or numbers; it holds {there}: {WRITE}")
    return Examples(pictures[0], named[0], lengths)


def _lengths_of(sets: Member, members: Sequence[Member], path: Path) -> Member | None:
    """The array of how many points each set has, where there is one."""
    found = next((each for each in members if each.name == LENGTHS and sets.name == POINTS), None)
    if found is not None and (found.shape != sets.shape[:1] or found.dtype.kind not in "ui"):
        told = f"{path}: lengths are {sets.shape[0]:,} whole numbers, how many points each set has"
        raise SaccadeError(f"{told}; got {found.shape} of {found.dtype}")
    return found


def array(path: Path, name: str) -> np.ndarray:
    """One array of a file, whole."""
    with _opened(path) as archive, _member(archive, name) as file:
        found: np.ndarray = npy.read_array(file, allow_pickle=False)
    return found


def _entry(found: np.ndarray, length: int | None, member: Member) -> np.ndarray:
    """A picture as it is; a set of points as floats, since bytes are pixels, and as long as it is."""
    return found[:length].astype(np.float32) if member.name == POINTS else found


def _is_one(outputs: Member) -> bool:
    """Whether each example has one output."""
    return math.prod(outputs.shape[1:]) == 1


def _entries(archive: zipfile.ZipFile, member: Member, path: Path) -> Iterator[np.ndarray]:
    """The pictures one after another; an array in Fortran's order is read at once."""
    with _member(archive, member.name) as file:
        if member.fortran:
            yield from npy.read_array(file, allow_pickle=False)
            return
        HEADS[npy.read_magic(file)](file)
        size = math.prod(member.shape[1:]) * member.dtype.itemsize
        for number in range(member.shape[0]):
            content = _read(file, size, path)
            if len(content) < size:
                raise SaccadeError(
                    f"{path} is cut off: {member.shape[0]:,} pictures were promised, {number:,} are there"
                )
            yield np.frombuffer(content, member.dtype).reshape(member.shape[1:])


def _head(archive: zipfile.ZipFile, name: str, path: Path) -> Member:
    with _member(archive, name) as file:
        try:
            shape, fortran, dtype = HEADS[npy.read_magic(file)](file)
        except (ValueError, KeyError, OSError, EOFError, zlib.error, zipfile.BadZipFile):
            raise SaccadeError(f"{path} is no NPZ file: {name} in it is no array; {WRITE}") from None
    if dtype.hasobject:
        raise SaccadeError(f"{path}: {name} is pickled, and a pickle may run anything: save it as numbers or as text")
    return Member(name.removesuffix(".npy"), shape, fortran, dtype)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(name if name in archive.NameToInfo else f"{name}.npy")


def _read(file: IO[bytes], size: int, path: Path) -> bytes:
    try:
        return file.read(size)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as problem:
        raise SaccadeError(f"{path} is damaged: {problem}") from None


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as problem:
        raise SaccadeError(f"{path} is no NPZ file: {problem}; {WRITE}") from None


# What whole numbers, other numbers and words may be, where each example has one; and where it has a row of them.
OUTPUT_KINDS = {"u": ("label", "numbers"), "i": ("label", "numbers"), "f": ("numbers",), "U": ("label",)}
ROW_KINDS = {"u": ("numbers",), "i": ("numbers",), "f": ("numbers",), "U": ()}
