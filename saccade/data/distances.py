"""`distances`: points in space of which some distances are known, roughly, and the others are asked for; made here.

24 points are drawn from a normal distribution in three dimensions. 30 % of their distances are given as the weights of
a graph's edges, each with 5 % of noise; the exact others are the answer. A model sees no coordinates, so its answer
cannot depend on how the points are turned, mirrored or moved. The same number gives the same points.
"""

from __future__ import annotations

import numpy as np

from saccade.field.network import Network

VERSION = 1  # of the generator: raise it when the same number gives other points
SPLITS = ("train", "val", "test")
POINTS, AXES = 24, 3
GIVEN, NOISE = 0.3, 0.05  # the share of distances that are given, and their noise as a share of each
Row = tuple[Network, np.ndarray]


def example(number: int, *, split: str = "train", seed: int = 0) -> Row:
    """The graph of known distances and the table of the others (N,N), NaN where they were given."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    points = random.standard_normal((POINTS, AXES))
    one, other = np.triu_indices(POINTS, 1)
    picked = np.sort(random.permutation(len(one))[: round(GIVEN * len(one))])
    return told(points, np.stack((one, other), 1)[picked], random.standard_normal(len(picked)))


def told(points: np.ndarray, known: np.ndarray, noise: np.ndarray) -> Row:
    """What is given and what is asked of points (N,A), of which the distances of the pairs `known` (E,2) are told;
    noise (E,): how far off each is, in spreads.
    """
    apart = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    one, other = known.T
    weights = (apart[one, other] * (1 + NOISE * noise)).astype(np.float32)
    wanted = apart.astype(np.float32)
    np.fill_diagonal(wanted, np.nan)
    wanted[one, other] = wanted[other, one] = np.nan
    return Network(np.ones((len(points), 1), np.float32), known, weights), wanted
