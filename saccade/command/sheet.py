"""Where tables are printed: as wide as the terminal, or uncut where a file or a program reads them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 500  # columns of what is no terminal


def sheet() -> Console:
    """Rich's console, for the output."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
