"""Weights and masks drawn in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text
from torch import Tensor

# A dark-to-light ramp (of the cividis kind, safe for the colour-blind); text stays readable on every step.
RAMP = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838")
INK = " .:-=+*#%@"  # the same ramp where there are no colours


def heat(weights: Tensor, rows: Sequence[str], columns: Sequence[str], *, title: str | None = None) -> Table:
    """A table of weights (rows, columns), each cell tinted by its value between 0 and the largest."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 0), pad_edge=False, show_edge=False)
    table.add_column("")
    for name in columns:
        table.add_column(f" {name} " if cell_len(name) > 4 else name, justify="center", min_width=6)
    top = max(float(weights.max()), 1e-9) if weights.numel() else 1.0
    for name, line in zip(rows, weights.tolist(), strict=True):
        table.add_row(Text(f"{name}  "), *[_cell(value, top) for value in line])
    return table


def shades(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> Text:
    """Weights (rows, columns) as shaded squares, small enough for a sentence letter by letter: ↓ looks at →."""
    margin = widest(rows) + 2
    drawn = Text(set_cell_size("↓→", margin) + "".join(set_cell_size(name, 2) for name in columns) + "\n")
    top = max(float(weights.max()), 1e-9) if weights.numel() else 1.0
    for name, line in zip(rows, weights.tolist(), strict=True):
        drawn.append(set_cell_size(name, margin))
        for value in line:
            step = round(max(0.0, value / top) * (len(RAMP) - 1))
            drawn.append(INK[step] * 2, style=f"{RAMP[step]} on {RAMP[step]}")
        drawn.append("\n")
    return drawn


def widest(names: Sequence[str]) -> int:
    """The places that the widest of the names takes: a letter takes none, one or two."""
    return max(map(cell_len, names), default=0)


def grid(mask: Tensor) -> Text:
    """A mask (T,S) as squares: filled where a query (row) may look at a key (column)."""
    lines = ["".join("■ " if may else "· " for may in line) for line in mask.to(torch.bool).tolist()]
    return Text("\n".join(lines))


def _cell(value: float, top: float) -> Text:
    step = round(max(0.0, value / top) * (len(RAMP) - 1))
    ink = "#ffffff" if step < 5 else "#000000"
    return Text(f" {value:4.2f} ", style=f"{ink} on {RAMP[step]}")
