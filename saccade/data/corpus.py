"""`Corpus`: rows as named arrays on the disk, mapped into memory, so that a corpus may be larger than the memory.

A corpus is a folder: for each column the arrays that its field names, each a flat file, little endian; where examples
differ in length (ragged arrays) also one of offsets (int64); where equal things are kept once (a picture with many
questions) also one that says which of them each example has; and `meta.json` with counts and hashes. It is written
aside, flushed to disk and renamed: it is there whole or not at all. Its `key` is a hash of what it was made of; as long
as that is the same, the corpus is used again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from saccade import disk
from saccade.data.skipped import Skipped, line_of
from saccade.error import SaccadeError, nearest
from saccade.field.field import Array, Field, Taken

FORMAT = 2  # of corpus folders
ROWS, BYTES = 1000, 1 << 20  # encoded at once, at most: this bounds the memory that making a corpus takes
OFFSETS, INDEX = "offsets", "index"


class EmptyError(SaccadeError):
    """No example is left to make a corpus of."""


class CorpusColumn:
    """The examples of one column, as views of its files."""

    def __init__(self, folder: Path, name: str, about: dict[str, Any], examples: int) -> None:
        """about: the column's entry in meta.json."""
        self.name, self.examples, meta = name, examples, about["arrays"]
        self.shapes = {
            each: Array(about["dtype"], tuple(about["shape"]), about["ragged"], about.get("axis", ""))
            for each, about in meta.items()
        }
        self._arrays = {each: _mapped(_file(folder, name, each), shape) for each, shape in self.shapes.items()}
        axes = {shape.axis for shape in self.shapes.values() if shape.ragged}
        self._offsets = {axis: _mapped(_file(folder, name, _offsets(axis)), Array("<i8")) for axis in axes}
        self._index = _mapped(_file(folder, name, INDEX), Array("<u4")) if INDEX in about["sha256"] else None

    def lengths(self) -> np.ndarray:
        """How many positions each example has; 1 without ragged arrays."""
        return np.diff(self._offsets[""]) if self._offsets else np.ones(self.examples, np.int64)

    def take(self, indices: Iterable[int]) -> Taken:
        """Some examples: of a ragged array a list of views, of a dense one a copy (n, ...)."""
        chosen = np.asarray(indices, np.int64)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < self.examples):
            raise SaccadeError(f"there is no example {chosen.max()}: the corpus has {self.examples}, counted from 0")
        places = chosen if self._index is None else self._index[chosen]
        return {name: self._taken(name, places) for name in self._arrays}

    def array(self, name: str) -> np.ndarray:
        """All examples of one array, one after another, as they lie in the file: equal things once, where a field
        `repeats`.
        """
        if name not in self._arrays:
            raise SaccadeError(f"the column {self.name!r} has no array {name!r}; {nearest(name, self._arrays)}")
        return self._arrays[name]

    def _taken(self, name: str, chosen: np.ndarray) -> Any:
        array = self._arrays[name]
        if not self.shapes[name].ragged:
            return array[chosen]
        offsets = self._offsets[self.shapes[name].axis]
        spans = zip(offsets[chosen].tolist(), offsets[chosen + 1].tolist(), strict=True)
        return [array[start:stop] for start, stop in spans]


class Corpus:
    """Examples by column. Made by `build`, found again by `open`."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder, self.meta = folder, meta
        self.skipped = Skipped(meta["skipped"], meta.get("skipped_lines"))
        self.columns = {name: CorpusColumn(folder, name, about, len(self)) for name, about in meta["columns"].items()}

    def __len__(self) -> int:
        return int(self.meta["examples"])

    @property
    def fingerprint(self) -> str:
        """The sha256 of the content: equal for equal arrays, wherever they came from."""
        return str(self.meta["fingerprint"])

    def seen(self, epoch: int) -> Mapping[str, CorpusColumn]:
        """The columns of an epoch: the same in each."""
        return self.columns

    def column(self, name: str) -> CorpusColumn:
        if name not in self.columns:
            raise SaccadeError(f"the corpus has no column {name!r}; {nearest(name, self.columns)}")
        return self.columns[name]


def key(**options: Any) -> str:
    """The hash of all that a corpus is made of: fields, and the options that matter (hashes of files too)."""
    return hashlib.sha256(json.dumps({"format": FORMAT, **options}, sort_keys=True).encode()).hexdigest()


def open(folder: str | Path, key: str | None = None) -> Corpus:
    """The corpus in a folder; refuses one that is missing, damaged or, where a key is given, made of something else."""
    folder = Path(folder)
    try:
        meta = json.loads((folder / "meta.json").read_text())
        form, columns = int(meta["format"]), dict(meta["columns"])
    except FileNotFoundError:
        raise SaccadeError(f"{folder} holds no corpus (meta.json)") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise SaccadeError(f"{folder / 'meta.json'} is damaged: delete {folder} and the corpus is made again") from None
    if form != FORMAT:
        raise SaccadeError(f"{folder} is a corpus of format {form}, here {FORMAT}: delete it and it is made again")
    if key is not None and meta["key"] != key:
        raise SaccadeError(f"{folder} was made of other files, fields or options")
    for name, column in columns.items():
        for each, sha256 in column["sha256"].items():
            file = _file(folder, name, each)
            if not file.is_file() or disk.digest(file) != sha256:
                raise SaccadeError(f"{file} is missing or damaged: delete {folder} and the corpus is made again")
    return Corpus(folder, meta)


def build(
    folder: str | Path,
    rows: Iterable[Sequence[Any]],
    fields: Mapping[str, Field],
    *,
    key: str,
    limits: Mapping[str, int | None] | None = None,
    skipped: Skipped | None = None,
    progress: Callable[[int], None] | None = None,
) -> Corpus:
    """The corpus with this key: the one in the folder, or one made there of `rows` (one field for each column, in
    order).

    An example in which a field finds a fault, such as a length above the limit of its column, is left out; `skipped`
    (give it to `source.rows` too) counts the reasons and is kept with the corpus. `progress` gets the rows read so far.
    """
    folder = Path(folder).absolute()
    found = _found(folder, key)
    if found is not None:
        return found
    _check_replaceable(folder)
    skipped = Skipped() if skipped is None else skipped
    try:
        with disk.aside(folder, over=True) as aside:  # what is there is damaged, or of another key
            columns, examples = _write(aside, rows, fields, limits or {}, skipped, progress)
            if not examples:
                raise EmptyError(f"no example is left: {_reasons(skipped) or 'there were none'}")
            content = {name: [column["arrays"], column["sha256"]] for name, column in columns.items()}
            meta = {"format": FORMAT, "key": key, "examples": examples, "columns": columns}
            meta |= {"skipped": dict(skipped), "skipped_lines": skipped.lines}
            meta["fingerprint"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
            (aside / "meta.json").write_text(json.dumps(meta, indent=2))
            if _found(folder, key) is not None:
                raise _MeanwhileError  # leaves `aside` without a rename: the other process may be reading its corpus
    except _MeanwhileError:
        return open(folder, key)
    return Corpus(folder, meta)


class _MeanwhileError(Exception):
    """Another process has made the same corpus in the meantime."""


def _found(folder: Path, key: str) -> Corpus | None:
    try:
        return open(folder, key)
    except SaccadeError:
        return None


class _ColumnWriter:
    """The files of a column while they are written."""

    def __init__(self, folder: Path, name: str, field: Field, files: ExitStack) -> None:
        self.field, self.arrays = field, field.arrays
        self.positions = {each.axis: 0 for each in self.arrays.values() if each.ragged}  # written so far
        names = [*self.arrays, *map(_offsets, self.positions)]
        self.files: dict[str, BinaryIO] = {
            each: files.enter_context(_file(folder, name, each).open("wb")) for each in names
        }
        self.hashes = {each: hashlib.sha256() for each in names}
        for axis in self.positions:
            self._append(_offsets(axis), np.zeros(1, "<i8"))

    def encode(self, raws: Sequence[Any]) -> tuple[dict[str, list[Any]], list[int]]:
        """The arrays of raw things, and how many positions each has."""
        found = self.field.encode(raws)
        ragged = next((found[name] for name, each in self.arrays.items() if each.ragged), None)
        return found, [1] * len(raws) if ragged is None else [len(each) for each in ragged]

    def write(self, found: dict[str, list[Any]], lengths: list[int], kept: list[int]) -> None:
        """Appends the examples whose numbers are in `kept`."""
        for name, each in self.arrays.items():
            rows = [found[name][number] for number in kept]
            self._append(name, flat(rows, each))
        for axis, before in self.positions.items():
            first = next(name for name, each in self.arrays.items() if each.ragged and each.axis == axis)
            ends = before + np.cumsum([len(found[first][number]) for number in kept], dtype=np.int64)
            self._append(_offsets(axis), ends.astype("<i8"))
            self.positions[axis] = int(ends[-1]) if len(ends) else before

    def meta(self) -> dict[str, Any]:
        """The column's entry in meta.json."""
        hashes = {name: each.hexdigest() for name, each in self.hashes.items()}
        return {"arrays": {name: _described(each) for name, each in self.arrays.items()}, "sha256": hashes}

    def _append(self, name: str, values: np.ndarray) -> None:
        content = values.tobytes()
        self.files[name].write(content)
        self.hashes[name].update(content)


class _DistinctWriter:
    """A column in which equal things, by their field's `identity`, are kept once, with an index."""

    def __init__(self, folder: Path, name: str, field: Field, files: ExitStack) -> None:
        self.field, self.column = field, _ColumnWriter(folder, name, field, files)
        self.file: BinaryIO = files.enter_context(_file(folder, name, INDEX).open("wb"))
        self.hash, self.numbers = hashlib.sha256(), dict[bytes, int]()
        self.keys: list[bytes] = []  # of the chunk that is written next
        self.fresh: dict[bytes, int] = {}  # where those of them that are new stand among the encoded ones

    def encode(self, raws: Sequence[Any]) -> tuple[dict[str, list[Any]], list[int]]:
        """The arrays of those that are not there yet, each once; a size of 1 for every raw thing."""
        self.keys = [self.field.identity(raw) for raw in raws]
        fresh = {key: raw for key, raw in zip(self.keys, raws, strict=True) if key not in self.numbers}
        found, _ = self.column.encode(list(fresh.values()))
        self.fresh = {key: place for place, key in enumerate(fresh)}
        return found, [1] * len(raws)

    def write(self, found: dict[str, list[Any]], lengths: list[int], kept: list[int]) -> None:
        """Appends the examples whose numbers are in `kept`."""
        keys = [self.keys[number] for number in kept]
        new = [key for key in dict.fromkeys(keys) if key not in self.numbers]
        self.column.write(found, [1] * len(self.fresh), [self.fresh[key] for key in new])
        self.numbers |= {key: len(self.numbers) + place for place, key in enumerate(new)}
        content = np.array([self.numbers[key] for key in keys], "<u4").tobytes()
        self.file.write(content)
        self.hash.update(content)

    def meta(self) -> dict[str, Any]:
        """The column's entry in meta.json."""
        meta = self.column.meta()
        return {**meta, "sha256": {**meta["sha256"], INDEX: self.hash.hexdigest()}}


def flat(rows: list[Any], array: Array) -> np.ndarray:
    """Examples one after another, as they lie in a file."""
    if array.ragged and not array.shape:
        return np.fromiter(chain.from_iterable(rows), array.dtype, sum(map(len, rows)))
    if array.ragged:
        return np.concatenate([np.empty((0, *array.shape), array.dtype), *rows]).astype(array.dtype)
    return np.asarray(rows, array.dtype).reshape(len(rows), *array.shape)


def _write(
    folder: Path,
    rows: Iterable[Sequence[Any]],
    fields: Mapping[str, Field],
    limits: Mapping[str, int | None],
    skipped: Skipped,
    progress: Callable[[int], None] | None,
) -> tuple[dict[str, Any], int]:
    """Encodes rows and writes them; gives the columns' entries in meta.json, and the count of examples."""
    done = examples = 0
    with ExitStack() as files:
        writers = {name: _DistinctWriter if field.repeats else _ColumnWriter for name, field in fields.items()}
        columns = {name: writers[name](folder, name, field, files) for name, field in fields.items()}
        for chunk in _chunks(rows, fields):
            sides = zip(*chunk, strict=True)
            found = [column.encode(side) for column, side in zip(columns.values(), sides, strict=True)]
            lengths = dict(zip(columns, (each for _, each in found), strict=True))
            kept = fitting(fields, chunk, lengths, limits, skipped)
            for column, (arrays, sizes) in zip(columns.values(), found, strict=True):
                column.write(arrays, sizes, kept)
            done, examples = done + len(chunk), examples + len(kept)
            if progress is not None:
                progress(done)
    return {name: column.meta() for name, column in columns.items()}, examples


def fitting(
    fields: Mapping[str, Field],
    rows: Sequence[Sequence[Any]],
    lengths: Mapping[str, list[int]],
    limits: Mapping[str, int | None],
    skipped: Skipped,
) -> list[int]:
    """The numbers of the rows of a chunk in which no field finds a fault; the others are counted in `skipped`."""
    kept = []
    for number, row in enumerate(zip(*lengths.values(), strict=True)):
        faults = (field.fault(each, limits.get(name)) for (name, field), each in zip(fields.items(), row, strict=True))
        fault = next((each for each in faults if each is not None), None)
        if fault is None:
            kept.append(number)
        else:
            skipped.add(fault, line_of(rows[number]))
    return kept


def _chunks(rows: Iterable[Sequence[Any]], fields: Mapping[str, Field]) -> Iterator[list[Sequence[Any]]]:
    """Rows that are encoded together: at most ROWS, and about BYTES at most, raw and encoded."""
    chunk: list[Sequence[Any]] = []
    size, width = 0, len(fields)
    dense = [array for field in fields.values() for array in field.arrays.values() if not array.ragged]
    encoded = sum(math.prod(array.shape) * np.dtype(array.dtype).itemsize for array in dense)
    for row in rows:
        if len(row) != width:
            raise SaccadeError(f"a row has {len(row)} columns, but there are {width} fields")
        chunk.append(row)
        size += sum(map(_memory_of, row)) + encoded
        if len(chunk) == ROWS or size > BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _memory_of(raw: Any) -> int:
    """About how much memory a raw thing takes: four bytes a character; of a path, the size of its file."""
    if isinstance(raw, Path):
        return raw.stat().st_size if raw.is_file() else 0
    if isinstance(raw, str):
        return 4 * len(raw)
    return int(getattr(raw, "nbytes", 1 << 10))


def _offsets(axis: str) -> str:
    """The file that says where each example begins along a ragged axis."""
    return f"{OFFSETS}.{axis}" if axis else OFFSETS


def _described(array: Array) -> dict[str, Any]:
    """An array as meta.json tells it; the axis where it is another than the examples' own."""
    return {name: each for name, each in array._asdict().items() if name != "axis" or each}


def _file(folder: Path, column: str, kind: str) -> Path:
    return folder / f"{column}.{kind}"


def _mapped(path: Path, array: Array) -> np.ndarray:
    if not path.stat().st_size:
        return np.empty((0, *array.shape), array.dtype)
    # A plain array over the same memory: slices of a memmap itself are slow to make.
    flat = np.asarray(np.memmap(path, dtype=array.dtype, mode="r"))
    return flat.reshape(-1, *array.shape) if array.shape else flat


def _check_replaceable(folder: Path) -> None:
    """Refuses to replace a folder that is not a corpus."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "meta.json").is_file())):
        raise SaccadeError(f"{folder} is there already and is no corpus: remove it, or give another place")


def _reasons(skipped: Skipped) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in skipped.most_common())
