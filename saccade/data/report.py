"""A short report of a corpus, to be read before training begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saccade.data.corpus import Corpus
from saccade.field.field import Field


@dataclass(frozen=True)
class Report:
    """What is to be known of a corpus: examples (None: it is one long text), a line for each column, and what was left
    out and why.
    """

    examples: int | None
    columns: dict[str, str]
    skipped: dict[str, int]

    def lines(self) -> list[str]:
        """The report as lines to print."""
        out = ["one text" if self.examples is None else counted(self.examples, "example")]
        out += [f"  {name}: {told}" for name, told in self.columns.items()]
        return out + [f"  skipped {count:,}: {reason}" for reason, count in sorted(self.skipped.items())]


def report(corpus: Corpus, fields: Mapping[str, Field], *, whole: bool = False) -> Report:
    """The report of a corpus; `whole`: its examples are but pieces of one text."""
    columns = {name: field.report(corpus.column(name), pieces=whole) for name, field in fields.items()}
    skipped = {reason: count for reason, count in corpus.skipped.items() if count}
    return Report(None if whole else len(corpus), columns, skipped)


def counted(count: int, noun: str) -> str:
    """1 text, 2 texts."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
