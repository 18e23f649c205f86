"""Spellings: in every epoch the same texts in other tokens, by sub-words that are taken apart again at random.

A token of byte pair encoding is two that were merged. With the probability `share` it is shown as those two, and so is
each of them in turn: a model that sees few texts then sees how their words are made, and cannot learn them by heart.
BPE-dropout (Provilkov et al. 2020) leaves merges out while a text is read; undoing them needs its tokens alone (as in
Sims et al. 2025), so that a corpus is read once. How a text is spelled depends on the seed, the epoch and its number.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from saccade.error import SaccadeError
from saccade.field.field import Column, Taken
from saccade.field.text.text import Text

TOGETHER = 1 << 19  # tokens that are spelled at a time


class Unmerging:
    """How the tokens of a vocabulary come apart, and how often."""

    def __init__(self, text: Text, share: float) -> None:
        self.parts, self.share = _merged_pairs(text), share


def unmerged_columns(
    columns: Mapping[str, Column], unmerging: Mapping[str, Unmerging], seed: int, epoch: int
) -> dict[str, Column]:
    """The columns as one epoch spells them; those without an `Unmerging` stay as they are.

    An example that would become longer than the longest of these texts keeps its tokens: batches and positions have
    room for no more.
    """
    if not unmerging:
        return dict(columns)
    longest = max(int(columns[name].lengths().max()) for name in unmerging)
    keys = {name: _mixed(np.uint64(seed), epoch, number) for number, name in enumerate(unmerging)}
    made = {name: UnmergedColumn(columns[name], each, keys[name], longest) for name, each in unmerging.items()}
    return {**columns, **made}


class UnmergedColumn:
    """A column of texts as one epoch spells it; key: 64 random bits of the seed, the epoch and the column."""

    def __init__(self, column: Column, unmerging: Unmerging, key: np.ndarray, longest: int) -> None:
        self.column, self.unmerging, self.key, self.longest = column, unmerging, key, longest

    def lengths(self) -> np.ndarray:
        """The number of tokens of every example."""
        found = self.column.lengths()
        places = np.flatnonzero(np.diff(np.cumsum(found) // TOGETHER)) + 1  # so that memory stays bounded
        every = np.split(np.arange(len(found)), places)
        return np.concatenate([np.fromiter(map(len, self._spelled(some)), np.int64) for some in every])

    def take(self, indices: np.ndarray) -> Taken:
        """The tokens of some examples."""
        return {"tokens": self._spelled(indices)}

    def array(self, name: str) -> np.ndarray:
        """The tokens as they lie in the file, before any was taken apart."""
        return self.column.array(name)

    def _spelled(self, indices: np.ndarray) -> list[np.ndarray]:
        rows = self.column.take(indices)["tokens"]
        if not rows:
            return rows
        sizes = np.array([len(row) for row in rows])
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        dice = _mixed(np.repeat(_mixed(self.key, indices), sizes), places)
        parts, share = self.unmerging.parts, self.unmerging.share
        tokens, counts = _take_apart(np.concatenate(rows).astype(np.int64), dice, parts, share)
        ends = np.cumsum(counts)[np.cumsum(sizes) - 1]
        made = np.split(tokens, ends[:-1])
        return [row if len(row) <= self.longest else exact for row, exact in zip(made, rows, strict=True)]


def _take_apart(tokens: np.ndarray, dice: np.ndarray, parts: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """The tokens, some of them in parts, and how many tokens each became. dice: 64 random bits for each."""
    chosen, counts = (parts[tokens, 0] >= 0) & (dice < np.uint64(share * 2**64)), np.ones(len(tokens), np.int64)
    if not chosen.any():
        return tokens, counts
    further = np.stack((_mixed(dice[chosen], 1), _mixed(dice[chosen], 2)), 1)
    inside, sizes = _take_apart(parts[tokens[chosen]].flatten(), further.flatten(), parts, share)
    counts[chosen] = sizes.reshape(-1, 2).sum(1)
    made = np.repeat(tokens, counts)
    made[np.repeat(chosen, counts)] = inside
    return made, counts


def _mixed(state: np.ndarray | np.uint64, *numbers: np.ndarray | int) -> np.ndarray:
    """64 bits that follow from the state and the numbers and look random (the last steps of splitmix64, Vigna 2015)."""
    with np.errstate(over="ignore"):  # everything is modulo 2^64
        for number in numbers:
            state = (state + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.asarray(number).astype(np.uint64)
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
                state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(state)


def _merged_pairs(text: Text) -> np.ndarray:
    """The two tokens that each was merged from, (vocab,2), of several pairs the first; -1 where it never was."""
    found = np.full((text.vocab, 2), -1)
    for token, pair in reversed(text.merges):  # the first merge of a token is written last
        found[token] = pair
    if (found < 0).all():
        raise SaccadeError(
            "unmerge takes apart what was merged of byte pairs, and this tokenizer merges nothing: leave it out"
        )
    return found
