"""Graphs whose nodes have labels: files that hold both, two tables, and which nodes are held out."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import saccade
from saccade import SaccadeError
from saccade.data.nodes import rows
from saccade.recipes import read as recipes
from saccade.task.pair import pair_of

COUNT = 60


def table(count=COUNT, known=0.8):
    draw = random.Random(0)
    labels = [("odd", "even")[n % 2] if draw.random() < known else None for n in range(count)]
    edges = [[n, (n + 2) % count] for n in range(count)]
    return {"nodes": [[draw.gauss(n % 2, 1), 1.0] for n in range(count)], "edges": edges, "labels": labels}


def two_tables(folder, whole=None, head=True):
    whole = whole or table()
    lines = [
        f"p{n},{a},{b},{label or '?'}"
        for n, ((a, b), label) in enumerate(zip(whole["nodes"], whole["labels"], strict=True))
    ]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = ["from,to"] * head + [f"p{a},p{b}" for a, b in whole["edges"]]
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")
    return [str(folder / "edges.csv"), str(folder / "nodes.csv")]


def supply(files, *options):
    recipe = recipes.recipe("classify-nodes", [f"data.files={json.dumps(files)}", *options])
    return pair_of(recipe).supply(recipe)


@pytest.mark.parametrize("head", [False, True])
def test_two_tables_are_the_graph_in_one_file(tmp_path, head):
    whole = table()
    (tmp_path / "graph.json").write_text(json.dumps(whole))
    (one,), (other,) = rows([str(tmp_path / "graph.json")], []), rows(two_tables(tmp_path, head=head), [])
    assert other[0].edges.tolist() == one[0].edges.tolist()
    np.testing.assert_allclose(other[0].features, one[0].features, rtol=1e-6)
    assert other[0].names[:2] == ("p0", "p1")
    assert one[1] == other[1] == tuple(whole["labels"])


def test_nodes_without_features_and_edges_with_weights(tmp_path):
    (tmp_path / "nodes.tsv").write_text("ann\ta\nbob\tb\ncy\t?\n")
    (tmp_path / "edges.tsv").write_text("ann\tbob\t0.5\nbob\tcy\t2\n")
    ((found, labels),) = rows([str(tmp_path / "edges.tsv"), str(tmp_path / "nodes.tsv")], [])
    assert found.features.tolist() == [[1.0]] * 3
    assert found.edges.tolist() == [[0, 1], [1, 2]]
    assert found.weights.tolist() == [0.5, 2.0]
    assert labels == ("a", "b", None)


def test_a_share_of_the_labelled_nodes_is_held_out(tmp_path):
    whole = table()
    (tmp_path / "graph.json").write_text(json.dumps(whole))
    made = supply([str(tmp_path / "graph.json")], "data.share=0.3")
    ((_, train),), ((graph, val),) = made.rows("train"), made.rows("val")
    assert len(graph.features) == COUNT, "the whole graph is there in every split"
    assert [one or other for one, other in zip(train, val, strict=True)] == whole["labels"]
    assert not any(one and other for one, other in zip(train, val, strict=True))
    assert 0.15 < sum(map(bool, val)) / sum(map(bool, whole["labels"])) < 0.45
    assert [each.learned for each in made.seen(every=True)] == [True, False]
    again = supply([str(tmp_path / "graph.json")], "data.share=0.3")
    assert next(again.rows("val"))[1] == val
    other = supply([str(tmp_path / "graph.json")], "data.share=0.3", "seed=5")
    assert next(other.rows("val"))[1] != val


def test_graphs_of_ones_own_to_validate_on(tmp_path):
    for name, count in (("a", 30), ("b", 20)):
        (tmp_path / f"{name}.json").write_text(json.dumps(table(count, 1.0)))
    made = supply([str(tmp_path / "a.json")], f'data.validation=["{tmp_path / "b.json"}"]')
    assert all(next(made.rows("train"))[1])
    assert len(next(made.rows("val"))[1]) == 20


def test_trained_from_two_tables_and_asked_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["train.steps=4", "train.every=2", "model.width=16"]
    run = saccade.train("classify-nodes", files=two_tables(tmp_path), run="run", options=options)
    assert list(run.task.target.names) == ["even", "odd"]
    (tmp_path / "new.json").write_text(json.dumps({"nodes": [[0.0, 1.0], [1.0, 1.0]], "edges": [[0, 1]]}))
    (found,) = run.predict([str(tmp_path / "new.json")])
    assert len(found.value) == 2
    assert set(found.value) <= {"odd", "even"}
    assert all(sum(each.values()) == pytest.approx(1, abs=1e-5) for each in found.probabilities)


@pytest.mark.parametrize(
    ("edges", "nodes", "why"),
    [
        ("p0,p1\np0,zoe\n", "p0,1,a\np1,2,b\n", "edges.csv, line 2: .*nodes.csv has no node 'zoe'"),
        ("p0,p1\n", "p0,1,a\np0,2,b\n", "nodes.csv has two nodes with the name 'p0'"),
        ("p0,p1\n", "p0,x,a\np1,2,b\n", "line 1: these should be numbers: x .is it a header"),
        ("p0,p1\n", "p0,1,a\np1,nan,b\n", "line 2: a number is not finite"),
        ("p0,p1\n", "p0\np1\n", "a line has a node's name, its features and its label"),
        ("p0,p1,1,2\n", "p0,1,a\np1,2,b\n", "a line has the names of two nodes, and perhaps a weight; here it has 4"),
        ("p0,p1,x\n", "p0,1,a\np1,2,b\n", "line 1: these should be numbers: x"),
        ("p0,\n", "p0,1,a\np1,2,b\n", "line 1: a side is blank"),
    ],
)
def test_tables_that_are_no_graph(tmp_path, edges, nodes, why):
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "nodes.csv").write_text(nodes)
    with pytest.raises(SaccadeError, match=why):
        list(rows([str(tmp_path / "edges.csv"), str(tmp_path / "nodes.csv")], []))


def test_a_graph_without_labels(tmp_path):
    (tmp_path / "graph.json").write_text(json.dumps({"nodes": 3, "edges": [[0, 1]]}))
    with pytest.raises(SaccadeError, match=r'graph.json has no labels of its nodes: give it "labels"'):
        list(supply([str(tmp_path / "graph.json")]).rows("train"))


def test_classify_finds_the_recipe_for_a_graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.json").write_text(json.dumps(table()))
    run = saccade.train("classify", files="graph.json", run="run", options=["train.steps=2", "train.every=1"])
    assert run.recipe.x["source"]["kind"] == "graph"
