"""`Skipped`: the rows that were left out, counted by reason, with the lines or the names of the first of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FIRST = 5  # places that are told of each reason

Place = int | str  # a line of a file, or a name


class NumberedRow(tuple[Any, ...]):
    """A row that knows the line of the file it ends on."""

    line: int


def numbered(cells: Iterable[Any], line: int | None) -> tuple[Any, ...]:
    """The cells as a row, with its line where that is known."""
    if line is None:
        return tuple(cells)
    row = NumberedRow(cells)
    row.line = line
    return row


def line_of(row: Sequence[Any]) -> int | None:
    """The line of a row, None where it came from no file of lines."""
    return getattr(row, "line", None)


class Skipped(Counter[str]):
    """Counts by reason; lines: of each reason the first ones, or the first names of what has no line."""

    def __init__(
        self, counts: Mapping[str, int] | None = None, lines: Mapping[str, Sequence[Place]] | None = None
    ) -> None:
        super().__init__(counts or {})
        self.lines: dict[str, list[Place]] = {reason: list(each) for reason, each in (lines or {}).items()}

    def add(self, reason: str, place: Place | None = None) -> None:
        """One more row for this reason."""
        self[reason] += 1
        known = self.lines.setdefault(reason, [])
        if place is not None and len(known) < FIRST:
            known.append(place)

    def where(self, reason: str) -> str:
        """The places of a reason in words, `lines 4, 9 and 7 more` or `a.png and b.png`; empty where none is known."""
        numbers = all(isinstance(each, int) for each in self.lines.get(reason, ()))
        known = [f"{each:,}" if isinstance(each, int) else each for each in self.lines.get(reason, ())]
        if not known:
            return ""
        more = self[reason] - len(known)
        listed = [*known, *([f"{more:,} more"] if more else [])]
        joined = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
        kind = ("line " if self[reason] == 1 else "lines ") if numbers else ""
        return f"{kind}{joined}"

    def described(self) -> list[str]:
        """How many rows were left out, why, and where: a phrase for each reason, in their order."""
        found = []
        for reason, count in sorted(self.items()):
            where = self.where(reason)
            found += [f"{count:,}: {reason}{where and f' ({where})'}"] if count else []
        return found
