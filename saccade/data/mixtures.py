"""`mixture`: points in the plane, drawn from four Gaussians, made here (Lee et al. 2019, section 5.3).

Weights are drawn evenly among all that sum to 1, means evenly from a square, and all spreads are equal. The same number
gives the same points.
"""

from __future__ import annotations

import numpy as np

from saccade.field.gaussians import Gaussians, Sample

VERSION = 1  # of the generator: raise it when the same number gives other points
SPLITS = ("train", "val", "test")
COUNT = 4  # Gaussians
POINTS = (100, 300)  # of a set, from and to
HALF = 4.0  # half of a side of the square that means lie in
SPREAD = 0.3


def example(number: int, *, split: str = "train", seed: int = 0) -> tuple[np.ndarray, Sample]:
    """The points (N,2) of this number, and the same with the mixture that they were drawn from."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    count = int(random.integers(POINTS[0], POINTS[1] + 1))
    weights = random.dirichlet(np.ones(COUNT))
    means = random.uniform(-HALF, HALF, (COUNT, 2))
    chosen = random.choice(COUNT, count, p=weights)
    points = (means[chosen] + SPREAD * random.standard_normal((count, 2))).astype(np.float32)
    return points, Sample(points, Gaussians(weights, means, np.full((COUNT, 2), SPREAD)))
