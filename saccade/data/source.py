"""Reading a user's own files as streams: parallel text files, TSV, CSV, JSONL, plain text; each may be gzipped.

Only a newline ends a line: the other breaks that Unicode knows (U+2028, vertical tab) are ordinary characters here,
so that two parallel files never come apart. Text is UTF-8; errors name the file and the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from saccade import disk
from saccade.data.skipped import Skipped, numbered
from saccade.error import SaccadeError, nearest

Row = tuple[str, ...]
Numbered = Iterator[tuple[int, Row]]

# Titles that show that a table's first line is a header: those of inputs, and those of outputs.
ASKED = ("text", "sentence", "source", "src", "input", "question", "review", "tweet", "content", "id")
ANSWERED = ("label", "class", "category", "sentiment", "target", "tgt", "output", "answer")
BOM = codecs.BOM_UTF8.decode()
LONGEST = (1 << 31) - 1  # characters of a cell, so that csv refuses none: a limit is in tokens, and checked later


def lines(path: str | Path) -> Iterator[str]:
    """The lines of a text file without their ends (a carriage return before the newline belongs to the end)."""
    path = check(path)
    return (line for _, line in _lines(path))


def text(path: str | Path, *, start: int = 0, stop: int | None = None, size: int = 1 << 16) -> Iterator[str]:
    """A file's characters from `start` to `stop`, newlines as they stand, in chunks that end with lines."""
    path = check(path)
    return _chunks(_between(_pieces(path, size), start, stop), size)


def rows(
    files: str | Path | Sequence[str | Path],
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    skipped: Skipped | None = None,
    strict: bool = False,
    width: int | None = 2,
) -> Iterator[Row]:
    """Rows of text from parallel text files, or from one table (.tsv .csv .jsonl, by its name) or plain text file.

    `columns` names the columns of a table whose first row is its header, or the keys of JSONL; numbers, from 1 on, are
    those of a table that has no header. Without it a table has no header, and `width` columns (None: any number). All
    rows have as many cells as the first. TSV knows no quotes. A row with a blank side is left out and counted in
    `skipped`, or refused where `strict`.
    """
    several = [files] if isinstance(files, str | Path) else list(files)
    if not several:
        raise SaccadeError("no file was given: name one table or two parallel text files")
    paths = [check(each) for each in several]
    return _without_blanks(paths, _read(paths, columns, width), Skipped() if skipped is None else skipped, strict)


def column(path: str | Path, name: str) -> Iterator[str]:
    """The cells of one column of a table that has a header, or keys; blank ones too."""
    return (row[0] if row else "" for _, row in cells(path, [name]))


def cells(path: str | Path, columns: Sequence[str] | Sequence[int]) -> Numbered:
    """The numbered lines of a table with the cells of these columns: titles in its header, or keys; or numbers, where
    it has no header. Blank cells too, () for a line of blanks.
    """
    return _read([check(path)], columns, None)


def titles(path: str | Path) -> list[str]:
    """The cells of the first line of a table, or the keys of its first object; of what is no table, none."""
    if not is_table(path):
        return []
    first = next(lines(path), "")
    if kind(path) == ".jsonl":
        return list(_entry(Path(path), 1, first)) if first.strip() else []
    return first.split("\t") if kind(path) == ".tsv" else next(csv.reader([first]), [])


def first_rows(path: str | Path, count: int) -> list[list[str]]:
    """The cells of the first rows of a table as they stand, a header too; of what is no table, none."""
    if not is_table(path):
        return []
    return [CELLS[kind(path)](line) for line in itertools.islice(filter(str.strip, lines(path)), count)]


def check(path: str | Path) -> Path:
    """The path of a file that is there; refuses a folder, and a name that nothing has."""
    path = disk.named(Path(path))
    with _readable(path):  # the folder above may be closed to us, or the name too long
        folder, there = path.is_dir(), path.exists()
    if folder:
        raise SaccadeError(f"{path} is a folder: give the file itself")
    if not there:
        raise SaccadeError(f"{path} is not there: check the name of the file")
    return path


def lasting(path: str | Path) -> Path:
    """The path of a file that can be read several times: not a pipe."""
    path = check(path)
    if not path.is_file():
        raise SaccadeError(f"{path} is a pipe or a device, and training reads its files several times: save it first")
    return path


def digest(path: str | Path) -> str:
    """The sha256 of a file's bytes as they lie on the disk."""
    return disk.known_digest(check(path))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns errors of the system and of gzip into a `SaccadeError` that names the file."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise SaccadeError(f"{path} is no whole gzip file ({problem}): fetch or compress it again") from None
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror or problem}") from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with _readable(path), gzip.open(path) if _is_zipped(path) else path.open("rb") as file:
        yield cast(BinaryIO, file)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    with _opened(path) as file:
        for number, line in decoded(file, path):
            yield number, line
    if not number:
        raise SaccadeError(f"{path} is empty")


def decoded(file: BinaryIO, path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of an open file, without their ends; `path` names it where it is not UTF-8."""
    for number, raw in enumerate(file, 1):
        try:
            line = raw.decode()
        except UnicodeDecodeError as problem:
            _not_utf8(path, number, problem)
        yield number, (line.removeprefix(BOM) if number == 1 else line).removesuffix("\n").removesuffix("\r")


def _pieces(path: Path, size: int) -> Iterator[str]:
    """Lines with their ends, long ones in pieces of `size` bytes: a whole file may be one line."""
    number, decoder = 1, codecs.getincrementaldecoder("utf-8")()
    with _opened(path) as file:
        raw = file.readline(size).removeprefix(codecs.BOM_UTF8)
        if not raw:
            raise SaccadeError(f"{path} is empty")
        while True:
            try:
                yield decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as problem:
                _not_utf8(path, number, problem)
            if not raw:
                return
            number += raw.endswith(b"\n")
            raw = file.readline(size)


def _not_utf8(path: Path, number: int, problem: UnicodeDecodeError) -> NoReturn:
    byte = problem.object[problem.start]
    raise SaccadeError(f"{path}, line {number}: byte 0x{byte:02x} is not UTF-8; convert the file to UTF-8") from None


def _between(pieces: Iterator[str], start: int, stop: int | None) -> Iterator[str]:
    """The characters from `start` to `stop` of all pieces together."""
    seen = 0
    for piece in pieces:
        inside = piece[max(start - seen, 0) : None if stop is None else stop - seen]
        seen += len(piece)
        if inside:
            yield inside
        if stop is not None and seen >= stop:
            return


def _chunks(pieces: Iterator[str], size: int) -> Iterator[str]:
    """Pieces joined to at most `size` characters, where they are not longer themselves."""
    held: list[str] = []
    length = 0
    for piece in pieces:
        if held and length + len(piece) > size:
            yield "".join(held)
            held, length = [], 0
        held.append(piece)
        length += len(piece)
    if held:
        yield "".join(held)


def _without_blanks(paths: list[Path], read: Numbered, skipped: Skipped, strict: bool) -> Iterator[Row]:
    """The rows that have no blank cell, each with its line; the others are counted in `skipped`, or refused."""
    for number, row in read:
        if row and all(value.strip() for value in row):
            yield numbered(row, number)
            continue
        if strict:
            blank = [path for path, value in zip(paths, row, strict=False) if not value.strip()] or paths
            raise SaccadeError(f"{blank[0]}, line {number}: a side is blank: fill it, or leave the line out")
        skipped.add("blank field" if len(row) > len(paths) else "blank line", number)


def _read(paths: list[Path], columns: Sequence[str] | Sequence[int] | None, width: int | None) -> Numbered:
    """Numbered rows; the endings of the names say how the files are read."""
    kinds = [kind(path) for path in paths]
    if len(paths) > 1:
        for path, each in zip(paths, kinds, strict=True):
            if each in TABLES:
                raise SaccadeError(f"{path} is a table and stands alone: only plain text files are read side by side")
    if kinds[0] in TABLES:
        return TABLES[kinds[0]](paths[0], columns, width)
    if columns is not None:
        raise SaccadeError(f"{paths[0]} is plain text and has no named columns: `columns` is for CSV, TSV and JSONL")
    return _parallel(paths)


def is_table(path: str | Path) -> bool:
    """Whether a file holds rows and columns, by its name."""
    return kind(path) in TABLES


def kind(path: str | Path) -> str:
    """The ending of a file's name, such as .csv, without .gz."""
    path = Path(path)
    return (path.with_suffix("") if _is_zipped(path) else path).suffix.lower()


def _is_zipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _parallel(paths: list[Path]) -> Numbered:
    for together in itertools.zip_longest(*(_lines(path) for path in paths)):
        if None in together:
            short, long = together.index(None), next(i for i, each in enumerate(together) if each is not None)
            raise SaccadeError(
                f"{paths[short]} ends after line {together[long][0] - 1} but {paths[long]} goes on: "
                "parallel files need a line for each line"
            )
        yield together[0][0], tuple(line for _, line in together)


def _tsv(path: Path, columns: Sequence[str] | Sequence[int] | None, width: int | None) -> Numbered:
    cells = ((number, line.split("\t")) for number, line in _lines(path))
    return _wanted_cells(path, cells, columns, width, "a tab inside a text")


def _csv(path: Path, columns: Sequence[str] | Sequence[int] | None, width: int | None) -> Numbered:
    return _wanted_cells(path, _quoted(path), columns, width, "a comma inside a text stands in quotes")


def _quoted(path: Path) -> Iterator[tuple[int, list[str]]]:
    """CSV's own rows: fields in quotes may hold commas and newlines; a quote that never closes is refused."""
    csv.field_size_limit(LONGEST)
    reader = csv.reader((line + "\n" for _, line in _lines(path)), strict=True)
    begin = 1  # the line on which a row begins
    try:
        for row in reader:
            yield reader.line_num, row
            begin = reader.line_num + 1
    except csv.Error as problem:
        raise SaccadeError(f"{path}, line {begin}: this is not CSV ({problem}); check the quotes") from None


def _wanted_cells(
    path: Path,
    cells: Iterator[tuple[int, list[str]]],
    columns: Sequence[str] | Sequence[int] | None,
    width: int | None,
    surplus: str,
) -> Numbered:
    """The wanted cells of each row; () for a row of blanks. surplus: the likely cause of too many cells in a row."""
    head: list[str] = []
    for number, row in cells:
        if not any(map(str.strip, row)):
            yield number, ()
            continue
        if not head:
            first, head = number, row
            wanted, is_header = (
                _unnamed_columns(path, head, width) if columns is None else _named_columns(path, head, columns)
            )
            if is_header:
                continue
        if len(row) != len(head):
            raise SaccadeError(
                f"{path}, line {number}: {len(row)} columns, where line {first} has {len(head)} ({surplus}?)"
            )
        yield number, tuple(row[each] for each in wanted)


def _unnamed_columns(path: Path, head: list[str], width: int | None) -> tuple[list[int], bool]:
    """All columns of a table that has no header; refuses a first line that looks like one, and too many columns."""
    titles = [each.strip().lower() for each in head]
    if any(each in ASKED or each in ANSWERED for each in titles):
        named, numbers = [head[each] for each in _likely_columns(titles)], [*range(1, len(head) + 1)][:width]
        raise SaccadeError(
            f"{path}: its first line looks like a header; say so with data.columns = {named}, "
            f"or that it is none with data.columns = {numbers}"
        )
    if width is not None and len(head) > width:
        numbers = [*range(1, width + 1)]
        raise SaccadeError(
            f"{path} has {len(head)} columns: say which are read, by number (data.columns = {numbers}), or by the "
            "names in its first line"
        )
    return [*range(len(head))], False


def _named_columns(path: Path, head: list[str], columns: Sequence[str] | Sequence[int]) -> tuple[list[int], bool]:
    """The places of the columns that data.columns names, and whether the first line is a header."""
    twice = next((each for each in columns if isinstance(each, str) and head.count(each) > 1), None)
    if twice is not None:
        raise SaccadeError(f"{path} has two columns {twice!r} in its first line: rename one")
    for each in columns:
        if isinstance(each, int) and not 1 <= each <= len(head):
            raise SaccadeError(f"{path} has {len(head)} columns and no column {each}: they are counted from 1")
        if isinstance(each, str) and each not in head:
            problem = f"{path} has no column {each!r} in its first line; {nearest(each, head)}"
            raise SaccadeError(f"{problem} (columns can be given by number too: data.columns = [1])")
    places = [each - 1 if isinstance(each, int) else head.index(each) for each in columns]
    return places, any(isinstance(each, str) for each in columns)


def _likely_columns(titles: list[str]) -> list[int]:
    """The two columns that a recipe most likely wants, by their titles: an input and an output; else the first ones."""
    asked, answered = (
        [n for n, each in enumerate(titles) if each in names and each != "id"] for names in (ASKED, ANSWERED)
    )
    others = [n for n, each in enumerate(titles) if each not in ANSWERED and each != "id"]
    first = next(iter([*asked, *others, *range(len(titles))]))
    rest = [n for n in [*answered, *others, *range(len(titles))] if n != first]
    return [first, *rest[:1]]


def _jsonl(path: Path, columns: Sequence[str] | Sequence[int] | None, width: int | None) -> Numbered:
    for number, line in _lines(path):
        if not line.strip():
            yield number, ()
            continue
        entry = _entry(path, number, line)
        if columns is None or not all(isinstance(each, str) for each in columns):
            problem = f"{path} is JSONL, whose columns have keys and no numbers"
            raise SaccadeError(f"{problem}: name the keys to read with data.columns ({', '.join(entry)})")
        yield number, tuple(_value(path, number, entry, str(name)) for name in columns)


def _entry(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise SaccadeError(f"{path}, line {number}: this is not JSON ({problem})") from None
    if not isinstance(entry, dict):
        raise SaccadeError(f"{path}, line {number}: an object {{...}} was expected, here stands {line[:40]}")
    return entry


def _fields(line: str) -> list[str]:
    """The cells of a line of CSV; none where it is no CSV, or goes on in the next line."""
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return []


def _values(line: str) -> list[str]:
    """The texts in an object; none where it is no object."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return [each for each in entry.values() if isinstance(each, str)] if isinstance(entry, dict) else []


def _value(path: Path, number: int, entry: dict[str, Any], name: str) -> str:
    """The text under a key; a number or truth value as JSON writes it, null as a blank."""
    if name not in entry:
        raise SaccadeError(f"{path}, line {number}: there is no {name!r}; {nearest(name, entry)}")
    value = entry[name]
    if isinstance(value, list | dict):
        raise SaccadeError(f"{path}, line {number}: {name!r} is no text but {json.dumps(value)[:40]}")
    if value is None:
        return ""
    written = value if isinstance(value, str) else json.dumps(value)
    try:
        written.encode()
    except UnicodeEncodeError:
        raise SaccadeError(f"{path}, line {number}: {name!r} has half a character (an unpaired surrogate)") from None
    return written


CELLS: dict[str, Callable[[str], list[str]]] = {
    ".tsv": lambda line: line.split("\t"),
    ".csv": _fields,
    ".jsonl": _values,
}
TABLES = {".tsv": _tsv, ".csv": _csv, ".jsonl": _jsonl}
