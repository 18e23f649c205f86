"""`distances`: points in space of which some distances are known, roughly, and the others are asked for; made here.

A share of the distances is given as the weights of a graph's edges, each with some noise; the exact others are the
answer. A model sees no coordinates, so that its answer cannot depend on how the points are turned, mirrored or moved.
The same number gives the same points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saccade.field.network import Network
from saccade.recipe import DistancesConfig

VERSION = 1  # of the generator: raise it when the same number gives other points
SPLITS = ("train", "val", "test")
Row = tuple[Network, np.ndarray]


def example(number: int, config: DistancesConfig, *, split: str = "train", seed: int = 0) -> Row:
    """The graph of known distances and the table of the others (N,N), NaN where they were given."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    points = random.permutation(SHAPES[config.shape](random.standard_normal((config.points, 3))))
    pairs = np.stack(np.triu_indices(config.points, 1), 1)
    picked = np.sort(random.permutation(len(pairs))[: max(1, round(config.given * len(pairs)))])
    return told(points, pairs[picked], config.noise * random.standard_normal(len(picked)))


def told(points: np.ndarray, known: np.ndarray, noise: np.ndarray) -> Row:
    """What is given and what is asked of points (N,3), of which the distances of the pairs `known` (E,2) are told, each
    off by a share `noise` (E,) of it.
    """
    apart = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    one, other = known.T
    weights = (apart[one, other] * (1 + noise)).astype(np.float32)
    wanted = apart.astype(np.float32)
    np.fill_diagonal(wanted, np.nan)
    wanted[one, other] = wanted[other, one] = np.nan
    return Network(np.ones((len(points), 1), np.float32), known, weights), wanted


SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sphere": lambda drawn: drawn / np.sqrt((drawn**2).sum(1, keepdims=True)),
    "ball": lambda drawn: drawn,
    "walk": lambda drawn: drawn.cumsum(0),
}
