"""`Gaussians`: a mixture of them, and a set of points with the mixture that it was drawn from, where that is known."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from saccade.error import SaccadeError

LEAST = 1e-6  # spread of a Gaussian that is fitted


class Gaussians(NamedTuple):
    """weights (K,), which sum to 1; means (K,D); spreads (K,D), along each axis."""

    weights: np.ndarray
    means: np.ndarray
    spreads: np.ndarray

    def loglikelihood(self, points: np.ndarray) -> float:
        """The mean over points (N,D) of log sum_k w_k N(x; m_k, s_k)."""
        away = (points[:, None].astype(np.float64) - self.means) / self.spreads  # (N,K,D)
        with np.errstate(divide="ignore"):
            each = np.log(self.weights) - (away**2 / 2 + np.log(self.spreads) + math.log(2 * math.pi) / 2).sum(2)
        most = each.max(1, keepdims=True)
        return float((most[:, 0] + np.log(np.exp(each - most).sum(1))).mean())

    def as_table(self) -> dict[str, Any]:
        """It as JSON's values."""
        return {name: np.asarray(each).tolist() for name, each in self._asdict().items()}


class Sample(NamedTuple):
    """points (N,D), and what they were drawn from."""

    points: np.ndarray
    drawn_from: Gaussians | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The points: a sample is one thing, not several."""
        return np.asarray(self.points, dtype)


def fitted(points: np.ndarray) -> Gaussians:
    """The one Gaussian that points (N,D) are likeliest from."""
    values = points.astype(np.float64)
    return Gaussians(np.ones(1), values.mean(0)[None], np.maximum(values.std(0), LEAST)[None])


def gaussians_of(table: Mapping[str, Any], axes: int) -> Gaussians:
    """A mixture from {"weights": (K), "means": (K,D), "spreads": (K,D)}."""
    try:
        weights, means, spreads = (np.asarray(table[name], np.float64) for name in Gaussians._fields)
    except (KeyError, TypeError, ValueError):
        raise SaccadeError(f"a mixture has {', '.join(Gaussians._fields)}, as rows of numbers") from None
    shape = (len(np.atleast_1d(weights)), axes)
    if means.shape != shape or spreads.shape != shape or (spreads <= 0).any() or (weights < 0).any():
        raise SaccadeError(
            f"a mixture of K Gaussians in {axes} dimensions has K weights, K x {axes} means and K x {axes} spreads "
            f"above 0; got {weights.shape}, {means.shape}, {spreads.shape}"
        )
    return Gaussians(weights / weights.sum(), means, spreads)


def as_json(sample: Sample) -> str:
    """A sample as JSON."""
    known = {} if sample.drawn_from is None else sample.drawn_from.as_table()
    return json.dumps({"points": [[float(f"{each:.9g}") for each in row] for row in sample.points.tolist()], **known})
