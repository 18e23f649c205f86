"""Distances: the same number gives the same points; what is given is not asked for; shapes and shares as they say."""

from __future__ import annotations

import numpy as np
import pytest

from saccade.data import distances
from saccade.recipe import DistancesConfig


def distances_of(graph, wanted):
    """All distances in one table: the noisy ones that were given among the exact ones."""
    table = wanted.copy()
    one, other = graph.edges.T
    assert np.isnan(table[one, other]).all(), "what is given is not asked for"
    table[one, other] = table[other, one] = graph.weights
    assert np.isnan(table).sum() == len(table), "all but the diagonal"
    return table


@pytest.mark.parametrize("shape", distances.SHAPES)
def test_an_example(shape):
    config = DistancesConfig(points=13, shape=shape, given=0.3, noise=0.0)
    graph, wanted = distances.example(5, config)
    assert graph.features.shape == (13, 1)
    assert len(graph.edges) == round(0.3 * 78)
    table = distances_of(graph, wanted)
    np.fill_diagonal(table, 0)
    assert np.allclose(table, table.T)
    centred = np.eye(13) - 1 / 13
    spectrum = np.linalg.eigvalsh(-0.5 * centred @ table.astype(np.float64) ** 2 @ centred)
    assert (spectrum[-3:] > 1e-3).all(), "three axes"
    assert abs(spectrum[:-3]).max() < 1e-4, "and no more: the distances are those of points in space"
    assert (table.max() <= 2) == (shape == "sphere")


def test_noise_is_a_share_of_each_distance():
    config = DistancesConfig(points=40, noise=0.05)
    off = []
    for number in range(20):
        exact, noisy = (distances.example(number, config.model_copy(update={"noise": each}))[0] for each in (0, 0.05))
        off.append(noisy.weights / exact.weights - 1)
    assert np.std(off) == pytest.approx(0.05, rel=0.05)
    assert abs(np.mean(off)) < 0.005


def test_the_same_number_is_the_same_row_and_others_differ():
    made = [distances.example(n, DistancesConfig(), split=split, seed=seed)[0].weights.tobytes()
            for n, split, seed in ((0, "train", 0), (1, "train", 0), (0, "val", 0), (0, "train", 1))]  # fmt: skip
    assert len(set(made)) == 4
    assert distances.example(0, DistancesConfig())[0].weights.tobytes() == made[0]
