"""`set-maximum`: sets of numbers from 0 to 100 and the largest of each, made here (Lee et al. 2019, section 5.1).

The same number gives the same set.
"""

from __future__ import annotations

import numpy as np

VERSION = 1  # of the generator: raise it when the same number gives another set
SPLITS = ("train", "val", "test")
COUNTS = (1, 10)  # numbers of a set, from and to
LARGEST = 100.0


def example(number: int, *, split: str = "train", seed: int = 0) -> tuple[np.ndarray, tuple[float, ...]]:
    """The set (N,1) of this number, and its maximum."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    count = int(random.integers(COUNTS[0], COUNTS[1] + 1))
    found = random.uniform(0, LARGEST, (count, 1)).astype(np.float32)
    return found, (float(found.max()),)
