"""Rows as a table in a file: .tsv, .csv or .jsonl by its name, there whole or not at all; or plain lines, a file for
each column.

What is written here, `source.rows` reads back cell by cell. TSV knows no quotes: it cannot hold a tab or a line break.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from saccade import disk
from saccade.error import SaccadeError

BREAKS = {"\t": "\\t", "\r": "\\r", "\n": "\\n"}  # how a line shows them


class Table(NamedTuple):
    """head: a title for each column; rows: a cell for each title; titled: whether a file begins with the titles."""

    head: list[str]
    rows: list[list[str]]
    titled: bool = True

    def save(self, path: Path) -> None:
        """Writes the table; the ending of its name, one of `KINDS`, says how."""
        disk.write(path, KINDS[path.suffix[1:].lower()](self, str(path)).encode(errors="surrogatepass"))

    def on_lines(self) -> Table:
        """The same, with tabs and line breaks inside a cell shown as \\t and \\n."""
        return self._replace(rows=[[_in_one_line(cell) for cell in row] for row in self.rows])

    def lines(self) -> list[list[str]]:
        """All lines of a table with columns side by side."""
        return [self.head, *self.rows] if self.titled else self.rows


def save_columns(paths: Sequence[Path], rows: Iterable[Sequence[str]]) -> None:
    """A file of plain lines for each column: parallel text."""
    columns = list(zip(*rows, strict=True)) or [()] * len(paths)
    for path, column in zip(paths, columns, strict=True):
        for number, cell in enumerate(column, 1):
            if "\n" in cell or cell.endswith("\r"):
                raise SaccadeError(
                    f"row {number:,} has a line break, and {path} has a line for each: write .csv or .jsonl"
                )
    for path, column in zip(paths, columns, strict=True):
        disk.write(path, "".join(f"{cell}\n" for cell in column).encode(errors="surrogatepass"))


def _tsv(table: Table, name: str) -> str:
    for number, row in enumerate(table.rows, 1):
        if any(letter in cell for cell in row for letter in BREAKS):
            raise SaccadeError(
                f"row {number:,} has a tab or a line break, which {name} cannot hold: write .csv or .jsonl"
            )
    return "".join("\t".join(line) + "\n" for line in table.lines())


def _csv(table: Table, name: str) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(table.lines())
    return text.getvalue()


def _jsonl(table: Table, name: str) -> str:
    rows = (dict(zip(table.head, row, strict=True)) for row in table.rows)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _in_one_line(cell: str) -> str:
    for letter, shown in BREAKS.items():
        cell = cell.replace(letter, shown)
    return cell


KINDS: dict[str, Callable[[Table, str], str]] = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}
