"""Where tables are printed: as wide as the terminal, or, where a file or a program reads them, uncut and with a tab
between two cells.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 500  # columns of what is no terminal


def sheet() -> Console:
    """Rich's console, for the output."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def show(table: Table) -> None:
    """Prints a table: padded on a terminal, with tabs elsewhere."""
    if sys.stdout.isatty():
        sheet().print(table)
        return
    heads = [[str(column.header) for column in table.columns]] if table.show_header else []
    title = [[str(table.title)]] if table.title is not None else []
    rows = zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)
    for row in (*title, *heads, *rows):
        typer.echo("\t".join(row))
