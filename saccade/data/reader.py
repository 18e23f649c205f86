"""Readers: what a user's own files are, and the rows in them.

A reader says which files it reads for which kinds of columns; the first that fits reads them. What none reads is told
with what each would take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data import classes, idx, source
from saccade.error import SaccadeError
from saccade.field.field import Kind
from saccade.recipe import for_files

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Reading:
    """What is asked of a reader: files, the kinds of their columns by name, the task for which, the columns of a table
    that are named, and what to do with blank rows.
    """

    files: Sequence[str]
    kinds: Mapping[str, Kind]
    task: str
    columns: list[str] | list[int]
    skipped: Counter[str] | None = None
    strict: bool = False


class Reader(NamedTuple):
    """fits: whether these files are its own; holds: the kinds of their columns, where the files show them; pieces: its
    rows are pieces of one long text.
    """

    what: str
    fits: Callable[[Sequence[Path], Mapping[str, Kind]], bool]
    rows: Callable[[Reading], Iterator[Row]]
    digest: Callable[[str | Path], str] = source.digest
    holds: Callable[[Sequence[Path]], tuple[str, ...]] | None = None
    pieces: bool = False


def reader_of(files: Sequence[str], reading: Reading) -> Reader:
    """The reader of a user's own files; refuses files of several kinds, or of none that the columns can be."""
    paths = [Path(each) for each in files]
    for path in paths:
        if not path.is_dir():
            source.lasting(path)
    asked = tuple(each.kind for each in reading.kinds.values())
    kinds = " and ".join(asked)
    for reader in READERS:
        if reader.fits(paths, reading.kinds):
            held = asked if reader.holds is None else reader.holds(paths)
            if held != asked:
                told = f"{', '.join(files)}: this is {reader.what}, and {reading.task} reads {kinds} here"
                raise SaccadeError(f"{told}: {_advice(held, files)}")
            return reader
    if any(path.is_dir() for path in paths):
        raise SaccadeError(f"{files[0]} is a folder, and {reading.task} reads {kinds}: give the file itself")
    if len({source.is_table(path) for path in paths}) > 1:
        raise SaccadeError("some of the files are tables, and others texts without columns: give one kind")
    raise SaccadeError(f"{', '.join(files)}: {reading.task} reads {kinds}, and these files hold none")


def _advice(kinds: tuple[str, ...], files: Sequence[str]) -> str:
    """How to train on files of these kinds: by a recipe for them, or by what options say of the columns."""
    fitting = for_files(kinds)
    if fitting:
        return f"saccade train {fitting[0]} --files {' '.join(files)}"
    *inputs, output = kinds
    told = " ".join([*(f"-o x.source.kind={each}" for each in inputs), f"-o y.kind={output}"])
    return f"say what the files hold ({told})"


def _tables(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    return all(source.is_table(path) for path in paths)


def _lines(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    """Files side by side, or anything else of several columns, which then says what is wrong with it."""
    return len(kinds) > 1 and all(path.is_file() for path in paths)


def _one_text(paths: Sequence[Path], kinds: Mapping[str, Kind]) -> bool:
    return len(kinds) == 1 and all(path.is_file() and not source.is_table(path) for path in paths)


def _cells(reading: Reading) -> Iterator[Row]:
    """Rows of a table, or of files side by side: a cell, or a line, a column."""
    files, kinds = reading.files, list(reading.kinds.values())
    columns, named = reading.columns or (["text"] if len(kinds) == 1 else None), len(reading.columns)
    more = kinds[-1].several  # whether the last of them takes all cells that are left
    least, wide = len(kinds), f"{len(kinds)} columns{' or more' if more else ''}"
    if named and (named < least if more else named != least):
        raise SaccadeError(f"{reading.task} reads {wide}; data.columns names {named}")
    folder = Path(files[0]).parent
    rows = source.rows(
        files, columns=columns, skipped=reading.skipped, strict=reading.strict, width=None if more else least
    )
    for number, row in enumerate(rows, 1):
        if len(row) < least if more else len(row) != least:
            there = "there is 1" if len(row) == 1 else f"there are {len(row)}"
            hint = " (are its cells apart by ';'? They should be by a comma or a tab)" if ";" in row[0] else ""
            raise SaccadeError(f"{', '.join(files)}: {reading.task} reads {wide}, and {there}{hint}")
        cells = [*row[: least - 1], row[least - 1 :] if more else row[-1]]
        try:
            yield tuple(kind.cell(cell, folder) for kind, cell in zip(kinds, cells, strict=True))
        except SaccadeError as problem:
            header = " (is this line a header? Then name its columns: data.columns)"
            hint = header if number == 1 and not named else ""
            raise SaccadeError(f"{files[0]}, row {number:,}: {problem}{hint}") from None


def _pieces(reading: Reading) -> Iterator[Row]:
    return ((piece,) for path in reading.files for piece in source.text(path))


READERS = [
    Reader(
        "a folder by class",
        classes.fits,
        lambda reading: classes.rows(reading.files),
        classes.digest,
        holds=lambda paths: (classes.kind(paths[0]), "label"),
    ),
    Reader("two IDX files", idx.fits, lambda reading: idx.pairs(reading.files), holds=lambda _: ("image", "label")),
    Reader("a table (.tsv .csv .jsonl)", _tables, _cells),
    Reader("one long text", _one_text, _pieces, pieces=True),
    Reader("text files side by side", _lines, _cells),
]
