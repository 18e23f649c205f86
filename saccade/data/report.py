"""A short report of a corpus, to be read before training begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saccade.data.fresh import Examples
from saccade.data.skipped import Skipped
from saccade.field.field import Field


@dataclass(frozen=True)
class Report:
    """examples: how many (None: it is one long text); columns: a line about each; skipped: the examples that were left
    out, by reason, with the lines of the first.
    """

    examples: int | None
    columns: dict[str, str]
    skipped: Skipped

    def lines(self) -> list[str]:
        """The report as lines to print."""
        out = ["one text" if self.examples is None else counted(self.examples, "example")]
        out += [f"  {name}: {line}" for name, line in self.columns.items()]
        return out + [f"  skipped {each}" for each in self.skipped.described()]


def report(corpus: Examples, fields: Mapping[str, Field], *, whole: bool = False) -> Report:
    """The report of a corpus; whole: its examples are only pieces of one text."""
    columns = {name: field.report(corpus.column(name), pieces=whole) for name, field in fields.items()}
    return Report(None if whole else len(corpus), columns, corpus.skipped)


def counted(count: int, noun: str) -> str:
    """1 text, 2 texts."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
