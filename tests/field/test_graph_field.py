"""Graphs as X: files, JSON and arrays; directions, degrees and positions; what is no graph is told in one sentence."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import torch

from saccade import SaccadeError
from saccade.data import corpus
from saccade.field import graph
from saccade.field.field import UnreadableError
from saccade.field.graph import Graph, GraphConfig
from saccade.field.layout import layout
from saccade.field.network import Network, network_of, of_json

PLAIN = {"nodes": [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]], "edges": [[0, 1], [1, 2]]}
WHOLE = PLAIN | {"weights": [0.5, 2.0], "edge_features": [[1.0, 2.0], [3.0, 4.0]], "names": ["a", "b", "c"]}


def field(raws=(PLAIN,), **keys):
    config = GraphConfig(**keys)
    return Graph.load(
        config, {"graph.json": Graph.made(config, raws), Graph.stored("x"): Graph.made(config, raws)}, "x", None
    )


def encoded(raw=PLAIN, **keys):
    return {name: each[0] for name, each in field([raw], **keys).encode([raw]).items()}


@pytest.mark.parametrize("table", [PLAIN, WHOLE])
def test_files_json_and_arrays_are_the_same_graph(tmp_path, table):
    (tmp_path / "a.json").write_text(json.dumps(table))
    np.savez(tmp_path / "a.npz", **table)
    content = io.BytesIO()
    np.savez(content, **table)
    wanted = network_of(table)
    assert wanted.as_json() == of_json(wanted.as_json(), "this").as_json()
    for raw in (tmp_path / "a.json", str(tmp_path / "a.npz"), content.getvalue(), json.dumps(table).encode(), wanted):
        assert Graph.digest(raw) == Graph.digest(wanted)
        assert network_of(raw).as_json() == wanted.as_json()


@pytest.mark.parametrize("text", ["0,1\n1,2\n", "from\tto\n0\t1\n1\t2\n", "0 1\n\n1 2"])
def test_a_list_of_edges(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    found = network_of(tmp_path / "a.csv")
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert found.features.tolist() == [[1.0]] * 3
    assert found.weights is None


def test_a_list_of_edges_with_weights(tmp_path):
    (tmp_path / "a.csv").write_text("0,1,0.5\n2,1,2\n")
    assert network_of(tmp_path / "a.csv").weights.tolist() == [0.5, 2.0]


def test_edges_are_looked_along_both_ways_unless_they_have_a_direction():
    assert encoded()["edges"].tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert encoded(directed=True)["edges"].tolist() == [[0, 1], [1, 2]]


def test_equal_edges_are_one_and_loops_may_stay():
    raw = {"nodes": 3, "edges": [[0, 1], [1, 0], [0, 1], [2, 2]]}
    assert encoded(raw)["edges"].tolist() == [[0, 1], [1, 0], [2, 2]]
    assert encoded(raw, loops=False)["edges"].tolist() == [[0, 1], [1, 0]]


def test_weights_and_features_go_with_their_edges():
    found = encoded(WHOLE)
    assert found["edges"].tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert found["weights"].tolist() == [0.5, 0.5, 2.0, 2.0]
    assert found["edge_features"].tolist() == [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [3.0, 4.0]]


def test_features_of_edges_are_for_an_embed_that_reads_them():
    with pytest.raises(
        SaccadeError, match=r"features here \(2 each\), which 'nodes' does not read: write embed = 'pairs'"
    ):
        _ = field([WHOLE]).model
    wide = np.shape(WHOLE["nodes"])[1]
    assert field([WHOLE], embed="pairs").model["embed"] == f"pairs({wide}, 6.0, 16, 2)"


def test_the_report_tells_what_many_edges_take(tmp_path, monkeypatch):
    made = field()
    column = corpus.build(tmp_path / "corpus", [(PLAIN,)], {"c": made}, key="k").column("c")
    assert made.report(column).endswith("4 edges both ways")
    monkeypatch.setattr(graph, "MANY", 4)
    monkeypatch.setattr(graph, "BYTES", 500_000)
    assert made.report(column).endswith("4 edges both ways, 2 MB in a pass at least")


def test_degrees_and_positions_stand_behind_the_features():
    made = field(degrees=True, positions=2)
    assert made.width == 5
    features = made.encode([PLAIN])["features"][0]
    np.testing.assert_allclose(features[:, 2], np.log1p([1, 2, 1]), rtol=1e-6)
    assert features[0, 3] * features[2, 3] < 0, "the ends of a path lie on two sides"


@pytest.mark.parametrize(
    ("normalise", "wanted"),
    [
        ("none", [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]]),
        ("rows", [[1 / 3, 2 / 3], [0.4, 0.6], [4 / 9, 5 / 9]]),
        ("spread", (np.array(PLAIN["nodes"]) - np.mean(PLAIN["nodes"], 0)) / np.std(PLAIN["nodes"], 0)),
    ],
)
def test_features_are_normalised(normalise, wanted):
    np.testing.assert_allclose(encoded(normalise=normalise)["features"], wanted, rtol=1e-5)


def test_the_signs_of_positions_are_drawn_in_training_alone():
    made = field(positions=1)
    taken = made.encode([PLAIN] * 40)
    used = made.collate(taken).values["features"]
    learned = made.collate(made.encode([PLAIN] * 40), np.random.default_rng(0)).values["features"]
    torch.testing.assert_close(used.abs(), learned.abs())
    assert len(used[:, 0, 2].unique()) == 1
    assert len(learned[:, 0, 2].unique()) == 2


def test_an_empty_graph():
    found = network_of({"nodes": [], "edges": []})
    assert found.features.shape == (0, 1)
    assert found.edges.shape == (0, 2)
    assert field([{"nodes": 2}]).fault(0, None) == "no nodes"


BAD = {
    "a node that is not there": (
        {"nodes": 3, "edges": [[0, 1], [1, 7]]},
        "edge 1 goes from node 1 to node 7, and there are 3",
    ),
    "a node below 0": ({"nodes": 3, "edges": [[-1, 1]]}, "edge 0 goes from node -1 to node 1"),
    "half a node": ({"nodes": 3, "edges": [[0.5, 1]]}, "an edge is a pair of numbers of nodes, from 0"),
    "three nodes": ({"nodes": 3, "edges": [[0, 1, 2]]}, "edges should be any x 2 numbers"),
    "edges that are words": ({"nodes": 3, "edges": [["a", "b"]]}, "edges are rows of numbers"),
    "NaN": ({"nodes": [[1.0], [float("nan")]], "edges": []}, "node 1 has a feature that is no finite number"),
    "infinity": ({"nodes": [[1.0, 2.0], [3.0, float("inf")]]}, "node 1 has a feature that is no finite number"),
    "ragged features": ({"nodes": [[1.0], [1.0, 2.0]]}, "nodes are rows of numbers, all equally long"),
    "fewer weights": ({"nodes": 2, "edges": [[0, 1]], "weights": [1, 2]}, "weights should be 1 numbers"),
    "fewer labels": ({"nodes": 3, "labels": ["a"]}, "there are 3 nodes and 1 labels"),
    "no nodes": ({"edges": [[0, 1]]}, "says nothing of its nodes"),
    "a word for nodes": ({"nodes": "three"}, "nodes are rows of features, or how many there are"),
    "another key": ({"nodes": 2, "egdes": []}, "a graph has no 'egdes'; did you mean 'edges'"),
    "edges that are a number": ({"nodes": 2, "edges": 5}, "edges is a list; got 5"),
    "names that are a text": ({"nodes": 2, "names": "ab"}, "names is a list; got 'ab'"),
    "a number": (7, "a graph is a table of nodes and edges"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_what_is_no_graph(name):
    raw, why = BAD[name]
    with pytest.raises(UnreadableError, match=why) as problem:
        network_of(raw)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[1, 2]", "holds a list: a graph is"),
        (b'{"nodes": ', "is no JSON"),
        (b"\xff\xfe\x00", "neither JSON, nor NPZ, nor a list of edges"),
        (b"PK\x03\x04broken", "is damaged, or holds pickles"),
        (b"0,1\n1\n", "is no list of edges: each line has two numbers of nodes"),
        (b"0,1\na,b\n", "is no list of edges"),
        (b"", "is no list of edges"),
    ],
)
def test_files_that_are_no_graph(tmp_path, content, why):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=why):
        network_of(path)


def test_a_pickle_is_not_opened(tmp_path):
    np.savez(tmp_path / "a.npz", nodes=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UnreadableError, match="holds pickles, which are not read"):
        network_of(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"nodes": [[1.0, 2.0, 3.0]]}, "a node has 2 features here; this graph's have 3"),
        (WHOLE, "an edge has 0 features and no weights here; this graph's have 2 and some"),
    ],
)
def test_a_graph_unlike_those_of_training(raw, why):
    with pytest.raises(SaccadeError, match=why):
        field().encode([raw])


def test_training_graphs_are_alike():
    with pytest.raises(SaccadeError, match="graphs should be alike"):
        field([PLAIN, {"nodes": 3}])
    with pytest.raises(SaccadeError, match="there is no graph to learn from"):
        field([])


@pytest.mark.parametrize("value", ["/etc/passwd", "graph.json", 7, None, [PLAIN]])
def test_over_the_network_a_string_is_no_path(value):
    with pytest.raises(SaccadeError, match="graph"):
        field().received(value)
    assert field().received(json.dumps(PLAIN)).edges.tolist() == field().received(PLAIN).edges.tolist()


def test_what_is_shown_of_a_graph():
    made = field()
    assert made.show(PLAIN) == "a graph of 3 nodes and 2 edges"
    side = made.side(made.collate(made.encode([PLAIN])))
    assert [each.text for each in side.tokens] == ["0", "1", "2"]
    assert side.shown == {"edges": [[0, 1], [1, 2]]}


def test_a_drawing_keeps_neighbours_near():
    """Two rings of eight, joined by nothing: each stays together."""
    ring = [[n, (n + 1) % 8] for n in range(8)]
    places = layout(16, np.array(ring + [[a + 8, b + 8] for a, b in ring]))
    assert places.min() >= 0
    assert places.max() <= 1
    near = np.linalg.norm(places - np.roll(places, 1, 0), axis=1)[1:8].mean()
    everywhere = np.linalg.norm(places[:, None] - places[None], axis=2).mean()
    assert near < everywhere / 2
    assert np.array_equal(places, layout(16, np.array(ring + [[a + 8, b + 8] for a, b in ring])))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_drawing_of_hardly_anything(count):
    assert layout(count, np.empty((0, 2), np.int64)).shape == (count, 2)


def test_labels_beside_nodes_without_one():
    found = network_of({"nodes": 4, "labels": ["a", None, "", "b"]})
    assert found.labels == ("a", None, None, "b")
    assert isinstance(found, Network)
