"""Rank correlation (Spearman 1904): how far two rows of numbers agree in their order."""

from __future__ import annotations

import numpy as np


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of the ranks of a and b, -1 to 1; 0 where one of them is all ties."""
    one, other = (ranks(each) - (len(each) - 1) / 2 for each in (a, b))
    length = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / length) if length else 0.0


def ranks(values: np.ndarray) -> np.ndarray:
    """The place of each value in their order, from 0; equal ones share the mean of their places."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count + 1) / 2)[place])
