"""Sub-words taken apart again at random: in every epoch another spelling of the same texts.

A token of byte pair encoding is two that were merged. With the probability `share` it is shown as those two, and so is
each of them in turn: a model that sees few texts then sees how their words are made, and cannot learn them by heart.
BPE-dropout (Provilkov et al. 2020) leaves merges out while a text is read; undoing them needs its tokens alone (as in
Sims et al. 2025), so that a corpus is read once. How a text is spelled depends on the seed, the epoch and its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from saccade.data.batch import Batches
from saccade.data.corpus import Corpus
from saccade.data.field import Text
from saccade.error import SaccadeError

TOGETHER = 1 << 14  # examples that are spelled at a time


class Shown(Protocol):
    """What a batch is taken from: a corpus, or its spelling of one epoch."""

    def lengths(self, column: str) -> np.ndarray:
        """The number of tokens of every example."""

    def take(self, column: str, indices: np.ndarray) -> list[np.ndarray]:
        """The tokens of some examples."""


class Unmerge:
    """A corpus whose columns of text are spelled anew in every epoch; the other columns stay."""

    def __init__(self, corpus: Corpus, texts: dict[str, Text], share: float, seed: int) -> None:
        self.corpus, self.share, self.seed = corpus, share, seed
        self.parts = {name: _parts(text) for name, text in texts.items()} if share else {}
        self.longest = max((int(corpus.lengths(name).max()) for name in self.parts), default=0)

    def epoch(self, number: int) -> Shown:
        """The corpus as this epoch spells it."""
        return Spelled(self, number) if self.share else self.corpus

    def walk(
        self, columns: Sequence[str], budget: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Shown, np.ndarray]]:
        """Epoch, position, the corpus of the epoch and a batch's examples, without end and from any place on.

        columns: those that are padded, with a token added to each, within the budget.
        """
        while True:
            shown = self.epoch(epoch)
            order = Batches([shown.lengths(each) + 1 for each in columns], budget, seed=self.seed)
            for place, indices in enumerate(order.epoch(epoch)[position:], position):
                yield epoch, place, shown, indices
            epoch, position = epoch + 1, 0


class Spelled:
    """One epoch of it. An example that would outgrow the longest of the corpus stays as it is."""

    def __init__(self, whole: Unmerge, epoch: int) -> None:
        self.whole, self.epoch = whole, epoch

    def lengths(self, column: str) -> np.ndarray:
        found = self.whole.corpus.lengths(column)
        if column not in self.whole.parts:
            return found
        every = np.arange(len(found))
        some = (every[begin : begin + TOGETHER] for begin in range(0, len(every), TOGETHER))
        return np.concatenate([[len(row) for row in self.take(column, each)] for each in some])

    def take(self, column: str, indices: np.ndarray) -> list[np.ndarray]:
        rows = self.whole.corpus.take(column, indices)
        if column not in self.whole.parts:
            return rows
        key = _mixed(np.uint64(self.whole.seed), self.epoch, list(self.whole.parts).index(column))
        made = _apart(rows, _mixed(key, indices), self.whole.parts[column], self.whole.share)
        return [row if len(row) <= self.whole.longest else exact for row, exact in zip(made, rows, strict=True)]


def _apart(rows: list[np.ndarray], keys: np.ndarray, parts: np.ndarray, share: float) -> list[np.ndarray]:
    """The rows, whose random numbers follow from their keys, with tokens in parts."""
    sizes = [len(row) for row in rows]
    tokens, owner = np.concatenate(rows).astype(np.int64), np.repeat(np.arange(len(rows)), sizes)
    dice = _mixed(keys[owner], np.concatenate([np.arange(size) for size in sizes]))
    new = np.ones(len(tokens), bool)
    while new.any():
        chosen = new & (parts[tokens, 0] >= 0) & (dice < np.uint64(share * 2**64))
        pairs, times, before = parts[tokens[chosen]], 1 + chosen, dice[chosen]
        tokens, owner, dice, new = (np.repeat(each, times) for each in (tokens, owner, dice, chosen))
        tokens[new] = pairs.flatten()
        dice[new] = np.stack((_mixed(before, 1), _mixed(before, 2)), 1).flatten()
    return np.split(tokens, np.cumsum(np.bincount(owner, minlength=len(rows)))[:-1])


def _mixed(state: np.ndarray | np.uint64, *numbers: np.ndarray | int) -> np.ndarray:
    """64 bits that follow from the state and the numbers and look random (the last steps of splitmix64, Vigna 2015)."""
    with np.errstate(over="ignore"):  # everything is modulo 2^64
        for number in numbers:
            state = state * np.uint64(0x9E3779B97F4A7C15) + np.asarray(number).astype(np.uint64)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
                state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(state)


def _parts(text: Text) -> np.ndarray:
    """The two tokens that each was merged from, (vocab,2); -1 where it never was."""
    found = np.full((text.vocab, 2), -1)
    for whole, pair in reversed(text.merges):  # the merge that comes first is the one that makes a token
        found[whole] = pair
    if (found < 0).all():
        raise SaccadeError(
            "train.unmerge takes apart what byte pairs were merged to, and this tokenizer merges nothing: "
            "write data.tokenizer = 'bpe', or leave it out"
        )
    return found
