"""The bench of graph layers: both sides compute the same, and the lines say what they measure."""

from __future__ import annotations

import pytest
import torch

from saccade.attend.edges import Edges
from saccade.bench import graph

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch_geometric, when imported
FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio", "spread"}


@pytest.fixture
def small(monkeypatch):
    sizes = {"GRAPHS": {"small": (23, 60)}, "GROWN": 31, "EDGES": (60, 120), "NODES": (11, 23), "MORE": (13, 29)}
    for name, value in sizes.items():
        monkeypatch.setattr(graph, name, value)
    monkeypatch.setattr(graph, "spent", lambda run, repeats=1: run() is None or 0.25)
    monkeypatch.setattr(
        graph, "raced", lambda ours, theirs, seconds: (ours(), theirs(), (2.0, 3.0, 1.5, (1.4, 1.6)))[2]
    )


@pytest.mark.parametrize("name", list(graph.LAYERS))
def test_both_sides_are_the_same_layer(name):
    pairs = graph.drawn_pairs(23, 60)
    ours, theirs = graph.both(name, 64, 64, cached=False)
    x = torch.randn(23, 64, generator=torch.Generator().manual_seed(0))
    found = ours(x.unsqueeze(0), edges=Edges.of(pairs, 23))[0]
    torch.testing.assert_close(found, theirs(x, pairs.T), rtol=1e-4, atol=1e-4)


def test_the_lines(small):
    found = {each["case"]: each for each in graph.rows(0.0)}
    assert len(found) == 3 * (4 + 6)
    line = found["GAT model, small, training step"]
    assert set(line) == FIELDS
    assert (line["ratio"], line["spread"]) == (1.5, [1.4, 1.6])
    assert found["GCN layer, forward, exponent of edges"]["ours"] == pytest.approx(0.0)
    line = found["GCN layer, training step, exponent of nodes from 13"]
    assert (line["ours"], line["theirs"], line["ratio"]) == (pytest.approx(0.0), pytest.approx(0.0), None)


def test_without_the_peer_there_is_no_ratio(small, monkeypatch):
    def missing(*arguments):
        raise ImportError("no such package")

    layers = {name: each._replace(theirs=missing) for name, each in graph.LAYERS.items()}
    monkeypatch.setattr(graph, "LAYERS", layers)
    found = {each["case"]: each for each in graph.rows(0.0)}
    assert found["GCN layer, small, forward"]["theirs"] is None
    assert found["GCN layer, small, forward"]["ours"] == 250.0
    assert found["GCN layer, forward, exponent of nodes"]["theirs"] is None


def test_drawn_edges_are_different_and_no_loops():
    pairs = graph.drawn_pairs(230, 997)
    assert len(pairs) == len(pairs.unique(dim=0)) == 997
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert pairs.min() >= 0
    assert pairs.max() < 230
