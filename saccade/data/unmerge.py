"""Sub-words taken apart again at random: in every epoch another spelling of the same text.

A token of byte pair encoding is two that were merged. With the probability `share` it is shown as those two, and so is
each of them in turn: a model that sees few texts then sees how their words are made, and cannot learn them by heart.
BPE-dropout (Provilkov et al. 2020) leaves merges out while a text is read; undoing them needs its tokens alone (as in
Sims et al. 2025), so that a corpus is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from saccade.data.batch import dice
from saccade.data.field import Text
from saccade.error import SaccadeError

Rows = Sequence[np.ndarray]
Spelling = Callable[[Rows], Rows]


class Unmerge:
    """Other spellings of rows of tokens, by the seed and a place; a row that would outgrow `longest` stays as it is."""

    def __init__(self, text: Text, share: float, longest: int, seed: int = 0) -> None:
        self.share, self.longest, self.seed = share, longest, seed
        self._parts = _parts(text) if share else None

    def at(self, epoch: int, place: int) -> Spelling:
        """How the batch at a place is spelled, one column after the other."""
        if self._parts is None:
            return as_it_is
        return partial(self._apart, self._parts, dice(self.seed, epoch, place))

    def _apart(self, parts: np.ndarray, random: np.random.Generator, rows: Rows) -> Rows:
        tokens = np.concatenate(rows).astype(np.int64)
        owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        new = np.ones(len(tokens), bool)
        while new.any():
            chosen = new & (parts[tokens, 0] >= 0) & (random.random(len(tokens)) < self.share)
            pairs, times = parts[tokens[chosen]], 1 + chosen
            tokens, owner, new = (np.repeat(each, times) for each in (tokens, owner, chosen))
            tokens[new] = pairs.flatten()
        made = np.split(tokens, np.cumsum(np.bincount(owner, minlength=len(rows)))[:-1])
        return [row if len(row) <= self.longest else whole for row, whole in zip(made, rows, strict=True)]


def as_it_is(rows: Rows) -> Rows:
    """The spelling that a text was read in."""
    return rows


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
