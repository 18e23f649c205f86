"""Graphs as JSON: what is written is read again, whole rows or only what is not 0."""

from __future__ import annotations

import json

import numpy as np
import pytest

import saccade
from saccade.field.network import Network, network_of, of_json

EDGES = np.array([[0, 1], [2, 1]])


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("numbers", ["ones", "any"])
def test_a_graph_comes_back_from_json(share, numbers):
    random = np.random.default_rng(0)
    features = (random.random((3, 40)) < share).astype(np.float32)
    if numbers == "any":
        features *= random.standard_normal((3, 40)).astype(np.float32)
    text = Network(features, EDGES).as_json()
    found = of_json(text, "this")
    assert np.array_equal(found.features, features)
    assert np.array_equal(found.edges, EDGES)
    assert isinstance(json.loads(text)["nodes"], dict) == (share < 0.25)


def test_a_node_without_features_has_zeros():
    found = network_of({"nodes": {"features": 3, "at": [[], [2]]}, "edges": []})
    assert found.features.tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"features": 3, "at": [[0], [1, 3]]}, "node 1 has a feature 3, and there are 3, from 0"),
        ({"features": 3, "at": [[0], [1]], "values": [[1.0]]}, "values have a row for each of 2 nodes"),
        ({"features": 3, "at": [[0, 1]], "values": [[1.0]]}, "values of features should be 2 numbers"),
        ({"features": 3, "at": [[0]], "values": [[float("nan")]]}, "node 0 has a feature that is no finite number"),
        ({"features": 0, "at": [[0]]}, "nodes are rows of features, or"),
        ({"at": [[0]]}, "nodes are rows of features, or"),
    ],
)
def test_features_that_are_none(nodes, message):
    with pytest.raises(saccade.SaccadeError, match=message):
        network_of({"nodes": nodes, "edges": []})
