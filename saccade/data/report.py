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
    """What is to be known of a corpus: examples, columns, and what was left out and why."""

    examples: int
    columns: tuple[Column, ...]
    skipped: dict[str, int]

    def lines(self) -> list[str]:
        """The report as lines to print."""
        out = [f"{self.examples:,} example{'' if self.examples == 1 else 's'}"]
        for each in self.columns:
            out.append(
                f"  {each.name}: {each.tokens:,} tokens, length {each.median} (median) {each.most} (95 %) "
                f"{each.longest} (longest), vocabulary {each.vocab:,}, unknown {each.unknown:.2%}"
            )
        return out + [f"  skipped {count:,}: {reason}" for reason, count in sorted(self.skipped.items())]


def report(corpus: Corpus) -> Report:
    """The report of a corpus."""
    columns = tuple(_column(corpus, name) for name in corpus.columns)
    return Report(len(corpus), columns, {reason: count for reason, count in corpus.skipped.items() if count})


def _column(corpus: Corpus, name: str) -> Column:
    about = corpus.meta["columns"][name]
    quantiles = np.quantile(corpus.lengths(name), [0.5, 0.95, 1.0], method="inverted_cdf")
    median, most, longest = (int(each) for each in quantiles)
    return Column(name, about["tokens"], median, most, longest, about["vocab"], about["unknown"] / about["tokens"])
