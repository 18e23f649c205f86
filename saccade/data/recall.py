"""`recall`: texts that ask for what stood long before: pairs of a key and its value, then filler, then a question each.

`k7=v3 k2=v9 k2=v9 k7=v3 ... w1 w5 w0 ... ? k2 v9 ? k7 v3`: to answer, a model finds the value of a key, which may stand
thousands of tokens back (after the associative recall of Arora et al. 2024). Each key has one value and is asked for
once. A pair is one word, so that finding it is all there is to learn. The pairs are repeated until the filler begins,
and their number is drawn evenly from 1 up, so that learning can begin with easy texts. The distance, too, is drawn from
0 up for training; for validation and test it is always the whole. The same number gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saccade.error import SaccadeError, nearest
from saccade.recipe import RecallConfig

VERSION = 1  # of the generator: raise it when the same number gives another text
SPLITS = ("train", "val", "test")
ASK = "?"
FILLERS = [f"w{each}" for each in range(16)]
QUESTION = 3  # tokens


def example(number: int, config: RecallConfig, *, split: str = "train", seed: int = 0) -> str:
    """The text of this number. Everything in it is drawn anew, so splits share a text only by chance."""
    if split not in SPLITS:
        raise SaccadeError(f"recall: the split {split!r} is unknown; {nearest(split, SPLITS)}")
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    pairs = 1 + int(random.integers(config.pairs))
    keys, values = random.permutation(config.keys)[:pairs].tolist(), random.integers(config.values, size=pairs).tolist()
    distance = int(random.integers(config.distance + 1)) if split == "train" else config.distance
    room = config.length - distance - QUESTION * pairs  # words for the pairs
    # Each pair once, then any of them again until the room is filled, all in random order.
    order = random.permutation(np.append(np.arange(pairs), random.integers(pairs, size=room - pairs)))
    words = [f"k{keys[each]}=v{values[each]}" for each in order.tolist()]
    words += [FILLERS[each] for each in random.integers(len(FILLERS), size=distance).tolist()]
    for each in random.permutation(pairs).tolist():
        words += [ASK, f"k{keys[each]}", f"v{values[each]}"]
    return " ".join(words)


def examples(count: int, config: RecallConfig, *, split: str = "train", seed: int = 0) -> Iterator[tuple[str]]:
    """The first `count` texts of a split, as rows."""
    return ((example(number, config, split=split, seed=seed),) for number in range(count))
