"""A split of a run's data as files, in the form that its own files have, so that another system can answer it too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saccade import disk
from saccade.data.report import counted
from saccade.data.supply import Supply
from saccade.data.table import KINDS, Table, save_columns
from saccade.error import SaccadeError, nearest
from saccade.learn.corpora import supply_of
from saccade.recipe import Recipe
from saccade.store.run import Run


class Written(NamedTuple):
    """Which split was written, how many rows it has, and the files."""

    split: str
    rows: int
    files: list[str]


def write_split(run: Run, split: str | None, out: Sequence[str | Path]) -> Written:
    """Writes a split, the last there is by default, whole or not at all.

    out: one table (.tsv, .csv, .jsonl); as many text files as there are columns, line by line; or, of a run that reads
    one long text, one file. A table has a header where the run's own data have one; JSONL always has keys.
    """
    if run.recipe is None:
        raise SaccadeError("this folder has no recipe, so no data of its own")
    paths = [_checked(each) for each in out]
    supply = supply_of(run, run.recipe)
    split = split or supply.splits[-1]
    if split not in supply.splits:
        raise SaccadeError(f"this data has no split {split!r}; {nearest(split, supply.splits)}")
    columns = len(supply.kinds)
    if len(paths) == 1 and paths[0].suffix[1:].lower() in KINDS:
        apart, names = _columns(supply, supply.rows(split), paths[0].parent), _named(run.recipe)
        rows = [[cell for cells in row for cell in cells] for row in apart]
        if names and rows and len(rows[0]) != len(names):  # a column of several numbers in one cell
            rows = [[" ".join(cells) for cells in row] for row in apart]
        Table(names or _titles(supply, rows), rows, bool(names)).save(paths[0])
    elif columns == 1 and len(paths) == 1:
        rows = [[row[0]] for row in supply.rows(split)]
        ends = "\n" if supply.by_line else ""
        disk.write(paths[0], "".join(row[0] + ends for row in rows).encode(errors="surrogatepass"))
    elif len(paths) == columns:
        rows = [[" ".join(each) for each in row] for row in _columns(supply, supply.rows(split), paths[0].parent)]
        save_columns(paths, rows)
    else:
        several = f", or {columns} files of lines (--out A --out B)" if columns > 1 else ""
        raise SaccadeError(f"write one table ({', '.join(f'.{each}' for each in KINDS)}){several}; got {_told(paths)}")
    return Written(split, len(rows), [str(each) for each in paths])


def _checked(path: str | Path) -> Path:
    target = Path(path)
    if not target.parent.is_dir():
        raise SaccadeError(f"{target.parent} is no folder: make it first, or write elsewhere")
    if target.is_dir():
        raise SaccadeError(f"{target} is a folder: name a file")
    return disk.writable(target)


def _told(paths: Sequence[Path]) -> str:
    return counted(len(paths), "file") if len(paths) != 1 else f"{paths[0].name!r}"


def _columns(supply: Supply, rows: Any, folder: Path) -> list[list[list[str]]]:
    """The cells of each column of each row."""
    kinds = list(supply.kinds.values())
    return [[kind.cells(raw, folder) for kind, raw in zip(kinds, row, strict=True)] for row in rows]


def _named(recipe: Recipe) -> list[str]:
    """The names of the columns, where the run's own data have names."""
    return [each for each in recipe.data.columns if isinstance(each, str)]


def _titles(supply: Supply, rows: Sequence[Sequence[str]]) -> list[str]:
    """A title for each cell of a row, from the names of the fields."""
    *inputs, output = supply.kinds
    more = len(rows[0]) - len(inputs) if rows else 1
    return [*inputs, *([output] if more == 1 else [f"{output}{number}" for number in range(1, more + 1)])]
