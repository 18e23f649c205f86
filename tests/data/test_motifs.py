"""`motifs`: rings among trees and trees alone, which no count of nodes, edges or degrees tells apart."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from saccade.data.motifs import LABELS, NODES, example


def has_ring(graph):
    """Whether there are more edges than a forest of as many parts has."""
    count, ends = len(graph.features), graph.edges
    parts, _ = connected_components(coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(count, count)))
    return len(ends) > count - parts


def test_the_label_says_whether_there_is_a_ring():
    made = [example(number) for number in range(200)]
    assert [has_ring(graph) for graph, _ in made] == [label == "cycle" for _, label in made]
    assert {label for _, label in made} == set(LABELS)


def test_nothing_that_can_be_counted_tells():
    made = [example(number) for number in range(400)]
    assert all(len(graph.edges) == len(graph.features) - 1 for graph, _ in made)
    assert all(NODES[0] <= len(graph.features) <= NODES[1] for graph, _ in made)
    leaves = {label: [] for label in LABELS}
    for graph, label in made:
        degrees = np.bincount(graph.edges.flatten(), minlength=len(graph.features))
        leaves[label].append((degrees == 1).mean())
    cycle, tree = (np.array(leaves[each]) for each in LABELS)
    apart = max(((cycle < at).mean() - (tree < at).mean() + 1) / 2 for at in np.linspace(0, 1, 50))
    assert apart < 0.8, "the share of leaves alone tells few of them"


def test_a_number_is_always_the_same_graph_and_splits_differ():
    one, other = example(7), example(7)
    assert one[0].edges.tolist() == other[0].edges.tolist()
    assert one[0].edges.tolist() != example(7, split="test")[0].edges.tolist()
    assert one[0].edges.tolist() != example(7, seed=1)[0].edges.tolist()
