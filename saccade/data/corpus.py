"""`Corpus`: rows of text as tokens on the disk, mapped into memory, so that a corpus may be larger than the memory.

A corpus is a folder: for each column a flat file of tokens (uint16, or uint32 for large vocabularies) and one of
offsets (int64), little endian, and `meta.json` with counts and hashes. It is written aside, flushed to disk and
renamed: it is there whole or not at all. Its `key` says what it was made of; while that agrees it is not made again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from saccade import disk
from saccade.data.field import Field
from saccade.error import SaccadeError, nearest

FORMAT = 1  # of corpus folders
ROWS, CHARACTERS = 1000, 1 << 18  # of what is encoded at once: the bounds of the memory that making a corpus takes
KINDS = ("tokens", "offsets")


class EmptyError(SaccadeError):
    """Nothing is left to make a corpus of."""


class Corpus:
    """Rows of tokens by column. Made by `build`, found again by `open`."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder, self.meta = folder, meta
        self.columns: list[str] = list(meta["columns"])
        self.skipped: Counter[str] = Counter(meta["skipped"])
        self._tokens = {name: _mapped(_file(folder, name, "tokens"), self._dtype(name)) for name in self.columns}
        self._offsets = {name: _mapped(_file(folder, name, "offsets"), "<i8") for name in self.columns}

    def __len__(self) -> int:
        """The count of examples."""
        return int(self.meta["examples"])

    @property
    def fingerprint(self) -> str:
        """The sha256 of the content: equal for equal tokens, wherever they came from."""
        return str(self.meta["fingerprint"])

    def lengths(self, column: str) -> np.ndarray:
        """How many tokens each example has."""
        return np.diff(self._offsets[self._known(column)])

    def take(self, column: str, indices: Iterable[int]) -> list[np.ndarray]:
        """The tokens of some examples, as views of the file."""
        tokens, chosen = self._tokens[self._known(column)], np.asarray(indices, np.int64)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise SaccadeError(f"there is no example {chosen.max()}: the corpus has {len(self)}, counted from 0")
        starts, stops = self._offsets[column][chosen], self._offsets[column][chosen + 1]
        return [tokens[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def stream(self, column: str) -> np.ndarray:
        """All tokens of a column, one example after the other, as they lie in the file."""
        return self._tokens[self._known(column)]

    def _dtype(self, column: str) -> str:
        return str(self.meta["columns"][column]["dtype"])

    def _known(self, column: str) -> str:
        if column not in self._tokens:
            raise SaccadeError(f"the corpus has no column {column!r}; {nearest(column, self.columns)}")
        return column


def key(fields: Mapping[str, Field], **options: Any) -> str:
    """The hash of all that a corpus is made of: fields, and the options that matter (hashes of files too)."""
    made_of = {
        "fields": {name: hashlib.sha256(field.to_bytes()).hexdigest() for name, field in fields.items()},
        "options": options,
    }
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()


def open(folder: str | Path, key: str | None = None) -> Corpus:
    """The corpus in a folder; what is missing, damaged or (where a key is given) made of something else is told."""
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
        for kind in KINDS:
            file = _file(folder, name, kind)
            if not file.is_file() or disk.digest(file) != column["sha256"][kind]:
                raise SaccadeError(f"{file} is missing or damaged: delete {folder} and the corpus is made again")
    return Corpus(folder, meta)


def build(
    folder: str | Path,
    rows: Iterable[Sequence[str]],
    fields: Mapping[str, Field],
    *,
    key: str,
    limit: int | None = None,
    close: bool = False,
    skipped: Counter[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Corpus:
    """The corpus with this key: the one in the folder, or one made of `rows` there (a field a column, in order).

    `close` puts <end> after every text. An example with more than `limit` tokens in a column, or none, is left out;
    `skipped` (give it to `source.rows` too) counts why and is kept with the corpus. `progress` is told the rows read.
    """
    folder = Path(folder).absolute()
    found = _found(folder, key)
    if found is not None:
        return found
    _mine(folder)
    skipped = Counter() if skipped is None else skipped
    try:
        with disk.aside(folder, over=True) as aside:  # what is there is damaged, or of another key
            columns, examples = _write(aside, rows, fields, limit, close, skipped, progress)
            if not examples:
                raise EmptyError(f"no example is left: {_reasons(skipped) or 'there were none'}")
            content = {name: [column["dtype"], column["sha256"]] for name, column in columns.items()}
            meta = {"format": FORMAT, "key": key, "examples": examples, "columns": columns, "skipped": dict(skipped)}
            meta["fingerprint"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
            (aside / "meta.json").write_text(json.dumps(meta, indent=2))
            if _found(folder, key) is not None:
                raise _MeanwhileError  # another process has made the same, and may be reading it: that one stays
    except _MeanwhileError:
        return open(folder, key)
    return Corpus(folder, meta)


class _MeanwhileError(Exception):
    """What was to be made is there."""


def _found(folder: Path, key: str) -> Corpus | None:
    try:
        return open(folder, key)
    except SaccadeError:
        return None


class _Column:
    """A column while it is written."""

    def __init__(self, folder: Path, name: str, field: Field, close: bool, files: ExitStack) -> None:
        self.field = field
        self.last = [_end(name, field)] if close else []
        self.dtype = "<u2" if field.vocab <= 1 << 16 else "<u4"
        self.tokens = self.unknown = 0
        self.files: dict[str, BinaryIO] = {
            kind: files.enter_context(_file(folder, name, kind).open("wb")) for kind in KINDS
        }
        self.hashes = {kind: hashlib.sha256() for kind in KINDS}
        self._put("offsets", np.zeros(1, "<i8"))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts, closed where that is wished."""
        return [ids + self.last for ids in self.field.encode(texts)]

    def write(self, ids: list[list[int]]) -> None:
        """Puts examples at the end of the files."""
        lengths = np.array([len(each) for each in ids], np.int64)
        flat = np.fromiter(chain.from_iterable(ids), self.dtype, int(lengths.sum()))
        self._put("tokens", flat)
        self._put("offsets", (self.tokens + np.cumsum(lengths)).astype("<i8"))
        self.tokens += len(flat)
        if self.field.unknown is not None:
            self.unknown += int((flat == self.field.unknown).sum())

    def meta(self) -> dict[str, Any]:
        """What is to be known of the column."""
        hashes = {kind: each.hexdigest() for kind, each in self.hashes.items()}
        counts = {"tokens": self.tokens, "unknown": self.unknown, "vocab": self.field.vocab}
        return {"dtype": self.dtype, **counts, "sha256": hashes}

    def _put(self, kind: str, values: np.ndarray) -> None:
        content = values.tobytes()
        self.files[kind].write(content)
        self.hashes[kind].update(content)


def _write(
    folder: Path,
    rows: Iterable[Sequence[str]],
    fields: Mapping[str, Field],
    limit: int | None,
    close: bool,
    skipped: Counter[str],
    progress: Callable[[int], None] | None,
) -> tuple[dict[str, Any], int]:
    """Rows through the fields into files; gives what is to be known of each column, and the count of examples."""
    done = examples = 0
    with ExitStack() as files:
        columns = {name: _Column(folder, name, field, close, files) for name, field in fields.items()}
        for chunk in _chunks(rows, len(fields)):
            sides = zip(*chunk, strict=True)
            ids = [column.encode(side) for column, side in zip(columns.values(), sides, strict=True)]
            kept = _fitting(ids, limit, skipped)
            for column, side in zip(columns.values(), ids, strict=True):
                column.write([side[each] for each in kept])
            done, examples = done + len(chunk), examples + len(kept)
            if progress is not None:
                progress(done)
    return {name: column.meta() for name, column in columns.items()}, examples


def _fitting(ids: list[list[list[int]]], limit: int | None, skipped: Counter[str]) -> list[int]:
    """Which rows of a chunk have tokens on every side and not too many."""
    kept = []
    for number, row in enumerate(zip(*ids, strict=True)):
        lengths = [len(side) for side in row]
        if not min(lengths):
            skipped["no tokens"] += 1
        elif limit is not None and max(lengths) > limit:
            skipped[f"longer than {limit} tokens"] += 1
        else:
            kept.append(number)
    return kept


def _chunks(rows: Iterable[Sequence[str]], width: int) -> Iterator[list[Sequence[str]]]:
    chunk: list[Sequence[str]] = []
    characters = 0
    for row in rows:
        if len(row) != width:
            raise SaccadeError(f"a row has {len(row)} columns, but there are {width} fields")
        chunk.append(row)
        characters += sum(map(len, row))
        if len(chunk) == ROWS or characters > CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _end(name: str, field: Field) -> int:
    end = getattr(field, "end", None)
    if end is None:
        raise SaccadeError(f"the field {name!r} has no token for the end, so its texts cannot be closed")
    return int(end)


def _file(folder: Path, column: str, kind: str) -> Path:
    return folder / f"{column}.{kind}"


def _mapped(path: Path, dtype: str) -> np.ndarray:
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))  # a plain array: slices of a memmap are slow to make


def _mine(folder: Path) -> None:
    """Refuses to replace a folder that is not a corpus."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "meta.json").is_file())):
        raise SaccadeError(f"{folder} is there already and is no corpus: remove it, or give another place")


def _reasons(skipped: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in skipped.most_common())
