"""A confusion matrix as a picture: a row for each class that is wanted, a column for each that is answered.

A cell holds how many examples it has; its colour is their share of the row: blue on the diagonal, where the answer is
right, rust beside it. Large matrices have colours alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.look import colour
from saccade.look.axis import GAP, columns_of, rows_of
from saccade.look.chart import MARGIN, SIDE, TITLE
from saccade.look.drawing import Drawing
from saccade.look.label import shorten, visible, width_of
from saccade.look.part import Cells, Lettering, frame

NUMBERED = 30  # classes, at most, whose cells show their numbers
MOST = 2000  # classes, at most, that are drawn
SMALL, NUMBER = 12.0, 11.0  # of letters
LEAST, LARGEST = 28.0, 60.0  # of a cell with a number
SPREAD = 320.0  # the side of a matrix of few classes
FADED = 0.55  # how far the scale of colours is used, so that numbers can be read on it
MISSING = "no answer"


def confusion(found: Mapping[str, Any], title: str = "") -> Drawing:
    """The picture of {"labels": n names, "counts": (n,n)} and, if there are any, "unanswered" (n,), a last column."""
    labels, counts = list(found["labels"]), torch.tensor(found["counts"], dtype=torch.int64)
    if len(labels) > MOST:
        raise SaccadeError(
            f"a confusion matrix of {len(labels):,} classes is too large to draw: --json has its numbers"
        )
    columns = list(labels)
    if "unanswered" in found:
        counts, columns = torch.cat([counts, torch.tensor(found["unanswered"])[:, None]], 1), [*labels, MISSING]
    return _Matrix(labels, columns, counts, visible(title)).drawn()


class _Matrix:
    """The places of everything, found from the inside out: cells, names, the words of both sides, the title."""

    def __init__(self, rows: list[str], columns: list[str], counts: Tensor, title: str) -> None:
        self.names, self.counts, self.title = (rows, columns), counts, title
        self.numbered = max(len(rows), len(columns)) <= NUMBERED
        self.cell = self._cell_size()
        R, C = counts.shape
        self.width, self.height = C * self.cell, R * self.cell
        self.rows, self.columns = rows_of(rows, self.cell), columns_of(columns, self.cell)
        self.x = MARGIN + SMALL + 2 * GAP + self.rows.room + GAP
        self.y = MARGIN + (TITLE + 12 if title else 0) + SMALL + GAP + self.columns.height + GAP

    def _cell_size(self) -> float:
        if not self.numbered:
            return max(1.0, SIDE / max(self.counts.shape))
        widest = max(width_of(f"{each:,}", NUMBER) for each in self.counts.flatten().tolist())
        return min(LARGEST, max(LEAST, widest + 8, SPREAD / max(self.counts.shape)))

    def drawn(self) -> Drawing:
        """The sheet with everything on it."""
        titled = MARGIN + width_of(self.title, TITLE, bold=True)
        width = max(self.x + self.width + self.columns.past(self.width), min(titled, SIDE)) + MARGIN
        sheet = Drawing(round(width), round(self.y + self.height + MARGIN), self.title)
        if self.title:
            title = shorten(self.title, width - 2 * MARGIN, TITLE, bold=True)
            sheet.add(Lettering(MARGIN, MARGIN + TITLE / 2, title, TITLE, bold=True))
        sheet.add(
            Cells(self.x, self.y, self.width, self.height, self._colours(), self._note if self.numbered else None)
        )
        sheet.add(*frame(self.x, self.y, self.width, self.height))
        sheet.add(*self.rows.beside(self.x, self.y), *self.columns.above(self.x, self.y))
        top = self.y - GAP - self.columns.height - GAP - SMALL / 2
        sheet.add(Lettering(self.x + self.width / 2, top, "answered", SMALL, "middle", strength=0.7))
        left = MARGIN + SMALL / 2
        sheet.add(Lettering(left, self.y + self.height / 2, "wanted", SMALL, "middle", -90.0, strength=0.7))
        if self.numbered:
            sheet.add(*self._numbers())
        return sheet

    def _shares(self) -> Tensor:
        """Of each row, (R,C)."""
        return self.counts.double() / self.counts.sum(1, keepdim=True).clamp(min=1)

    def _colours(self) -> Tensor:
        right = torch.eye(*self.counts.shape, dtype=torch.bool)
        return colour.diverging(FADED * self._shares() * torch.where(right, -1.0, 1.0))

    def _numbers(self) -> list[Lettering]:
        """The counts in their cells; no zeros, which would hide the others."""
        places = [(r, c) for r, c in self.counts.nonzero().tolist()]
        return [
            Lettering(
                self.x + (c + 0.5) * self.cell,
                self.y + (r + 0.5) * self.cell,
                f"{int(self.counts[r, c]):,}",
                NUMBER,
                "middle",
            )
            for r, c in places
        ]

    def _note(self, row: int, column: int) -> str:
        wanted, answered = visible(self.names[0][row]), visible(self.names[1][column])
        count, share = int(self.counts[row, column]), float(self._shares()[row, column])
        return f"wanted {wanted}, answered {answered}: {count:,} ({share:.1%})"
