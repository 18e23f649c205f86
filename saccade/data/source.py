"""Reading a user's own files as streams: parallel text files, TSV, CSV, JSONL, plain text; each may be gzipped.

Only a newline ends a line: the other breaks that Unicode knows (U+2028, vertical tab) are ordinary characters here,
so that two parallel files never come apart. Text is UTF-8; whatever is wrong is told with its file and line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from saccade import disk
from saccade.error import SaccadeError, nearest

Row = tuple[str, ...]
Numbered = Iterator[tuple[int, Row]]

# What a cell of a table's first line says when that is no data; the second kind stands for what is to be answered.
ASKED = ("text", "sentence", "source", "src", "input", "question", "review", "tweet", "content", "id")
ANSWERED = ("label", "class", "category", "sentiment", "target", "tgt", "output", "answer")
BOM = codecs.BOM_UTF8.decode()
LONGEST = (1 << 31) - 1  # characters of a cell: whether a text is too long, its tokens say


def lines(path: str | Path) -> Iterator[str]:
    """The lines of a text file without their ends (a carriage return before the newline belongs to the end)."""
    path = check(path)
    return (line for _, line in _lines(path))


def text(path: str | Path, *, start: int = 0, stop: int | None = None, size: int = 1 << 16) -> Iterator[str]:
    """A file's characters from `start` to `stop`, newlines as they stand, in chunks that end with lines."""
    path = check(path)
    return _chunks(_cut(_pieces(path, size), start, stop), size)


def rows(
    files: str | Path | Sequence[str | Path],
    *,
    columns: Sequence[str] | Sequence[int] | None = None,
    skipped: Counter[str] | None = None,
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
    return _filled(paths, _read(paths, columns, width), Counter() if skipped is None else skipped, strict)


def check(path: str | Path) -> Path:
    """The path of a file that is there; what else stands there is told."""
    path = disk.named(Path(path))
    with _readable(path):  # the folder above may be closed to us, or the name too long
        folder, there = path.is_dir(), path.exists()
    if folder:
        raise SaccadeError(f"{path} is a folder: give the file itself")
    if not there:
        raise SaccadeError(f"{path} is not there: check the name of the file")
    return path


def lasting(path: str | Path) -> Path:
    """The path of a file that can be read again and again."""
    path = check(path)
    if not path.is_file():
        raise SaccadeError(f"{path} is a pipe or a device, and training reads its files several times: save it first")
    return path


def digest(path: str | Path) -> str:
    """The sha256 of a file's bytes as they lie on the disk."""
    return disk.known_digest(check(path))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns what the system says about a file into our sentence."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise SaccadeError(f"{path} is no whole gzip file ({problem}): fetch or compress it again") from None
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror or problem}") from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with _readable(path), gzip.open(path) if _zipped(path) else path.open("rb") as file:
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
    """Lines with their ends, long ones in pieces of `size` bytes: a file may be one endless line."""
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


def _cut(pieces: Iterator[str], start: int, stop: int | None) -> Iterator[str]:
    """The characters from `start` to `stop` of what the pieces hold together."""
    seen = 0
    for piece in pieces:
        inside = piece[max(start - seen, 0) : None if stop is None else stop - seen]
        seen += len(piece)
        if inside:
            yield inside
        if stop is not None and seen >= stop:
            return


def _chunks(pieces: Iterator[str], size: int) -> Iterator[str]:
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


def _filled(paths: list[Path], numbered: Numbered, skipped: Counter[str], strict: bool) -> Iterator[Row]:
    """The rows that have something on every side."""
    for number, row in numbered:
        if row and all(value.strip() for value in row):
            yield row
            continue
        if strict:
            blank = [path for path, value in zip(paths, row, strict=False) if not value.strip()] or paths
            raise SaccadeError(f"{blank[0]}, line {number}: a side is blank: fill it, or leave the line out")
        skipped["blank field" if len(row) > len(paths) else "blank line"] += 1


def _read(paths: list[Path], columns: Sequence[str] | Sequence[int] | None, width: int | None) -> Numbered:
    """Numbered rows by the kind of file that the names promise."""
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
    """What the name of a file says that it is, such as .csv; whether it is zipped aside."""
    path = Path(path)
    return (path.with_suffix("") if _zipped(path) else path).suffix.lower()


def _zipped(path: Path) -> bool:
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
    return _table(path, cells, columns, width, "a tab inside a text")


def _csv(path: Path, columns: Sequence[str] | Sequence[int] | None, width: int | None) -> Numbered:
    return _table(path, _quoted(path), columns, width, "a comma inside a text stands in quotes")


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


def _table(
    path: Path,
    cells: Iterator[tuple[int, list[str]]],
    columns: Sequence[str] | Sequence[int] | None,
    width: int | None,
    surplus: str,  # where a cell too many comes from
) -> Numbered:
    """The wanted cells of each row; a row of blanks is an empty one."""
    head: list[str] = []
    for number, row in cells:
        if not any(map(str.strip, row)):
            yield number, ()
            continue
        if not head:
            first, head = number, row
            wanted, header = _wanted(path, head, columns, width)
            if header:
                continue
        if len(row) != len(head):
            raise SaccadeError(
                f"{path}, line {number}: {len(row)} columns, where line {first} has {len(head)} ({surplus}?)"
            )
        yield number, tuple(row[each] for each in wanted)


def _wanted(
    path: Path, head: list[str], columns: Sequence[str] | Sequence[int] | None, width: int | None
) -> tuple[list[int], bool]:
    """The places of the wanted columns, and whether the first line names them."""
    if columns is None:
        titles = [each.strip().lower() for each in head]
        if any(each in ASKED or each in ANSWERED for each in titles):
            named, numbers = [head[each] for each in _meant(titles)], [*range(1, len(head) + 1)][:width]
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
    twice = next((each for each in columns if isinstance(each, str) and head.count(each) > 1), None)
    if twice is not None:
        raise SaccadeError(f"{path} has two columns {twice!r} in its first line: rename one")
    for each in columns:
        if isinstance(each, int) and not 1 <= each <= len(head):
            raise SaccadeError(f"{path} has {len(head)} columns and no column {each}: they are counted from 1")
        if isinstance(each, str) and each not in head:
            told = f"{path} has no column {each!r} in its first line; {nearest(each, head)}"
            raise SaccadeError(f"{told} (columns can be told by number too: data.columns = [1])")
    places = [each - 1 if isinstance(each, int) else head.index(each) for each in columns]
    return places, any(isinstance(each, str) for each in columns)


def _meant(titles: list[str]) -> list[int]:
    """Which two columns a header speaks of, most likely: what is asked, and what is answered; else the first others."""
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
            told = f"{path} is JSONL, whose columns have keys and no numbers"
            raise SaccadeError(f"{told}: name the keys to read with data.columns ({', '.join(entry)})")
        yield number, tuple(_value(path, number, entry, str(name)) for name in columns)


def _entry(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise SaccadeError(f"{path}, line {number}: this is not JSON ({problem})") from None
    if not isinstance(entry, dict):
        raise SaccadeError(f"{path}, line {number}: an object {{...}} was expected, here stands {line[:40]}")
    return entry


def _value(path: Path, number: int, entry: dict[str, Any], name: str) -> str:
    """The text under a key; a number or truth value as JSON writes it, null as a blank."""
    if name not in entry:
        raise SaccadeError(f"{path}, line {number}: there is no {name!r}; {nearest(name, entry)}")
    value = entry[name]
    if isinstance(value, list | dict):
        raise SaccadeError(f"{path}, line {number}: {name!r} is no text but {json.dumps(value)[:40]}")
    shown = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    try:
        shown.encode()
    except UnicodeEncodeError:
        raise SaccadeError(f"{path}, line {number}: {name!r} has half a character (an unpaired surrogate)") from None
    return shown


TABLES = {".tsv": _tsv, ".csv": _csv, ".jsonl": _jsonl}
