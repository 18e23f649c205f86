"""A short report of a corpus, to be read before training begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saccade.data.corpus import Corpus


@dataclass(frozen=True)
class Column:
    """What is to be known of a column: tokens, lengths of the examples, vocabulary, share of unknown tokens."""

    name: str
    tokens: int
    median: int
    most: int  # 95 of 100 examples are no longer
    longest: int
    vocab: int
    unknown: float


@dataclass(frozen=True)
class Report:
    """What is to be known of a corpus: examples (None: it is one long text), columns, and what was left out and why."""

    examples: int | None
    columns: tuple[Column, ...]
    skipped: dict[str, int]

    def lines(self) -> list[str]:
        """The report as lines to print."""
        out = ["one text" if self.examples is None else counted(self.examples, "example")]
        for each in self.columns:
            lengths = f"length {each.median} (median) {each.most} (95 %) {each.longest} (longest), "
            shown = f"  {each.name}: {counted(each.tokens, 'token')}, {'' if self.examples is None else lengths}"
            out.append(f"{shown}vocabulary {each.vocab:,}, unknown {each.unknown:.2%}")
        return out + [f"  skipped {count:,}: {reason}" for reason, count in sorted(self.skipped.items())]


def report(corpus: Corpus, *, whole: bool = False) -> Report:
    """The report of a corpus; `whole`: its examples are but pieces of one text."""
    columns = tuple(_column(corpus, name) for name in corpus.columns)
    return Report(
        None if whole else len(corpus), columns, {reason: count for reason, count in corpus.skipped.items() if count}
    )


def counted(count: int, noun: str) -> str:
    """1 text, 2 texts."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _column(corpus: Corpus, name: str) -> Column:
    about = corpus.meta["columns"][name]
    quantiles = np.quantile(corpus.lengths(name), [0.5, 0.95, 1.0], method="inverted_cdf")
    median, most, longest = (int(each) for each in quantiles)
    return Column(name, about["tokens"], median, most, longest, about["vocab"], about["unknown"] / about["tokens"])
