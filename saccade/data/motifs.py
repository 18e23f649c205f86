"""`motifs`: small graphs to tell apart, made here: one tree, or a ring with trees beside a tree.

Both have as many edges as nodes less one, and their nodes similar degrees, so that only the way along the edges tells
which it is. The same number gives the same graph.
"""

from __future__ import annotations

import numpy as np

from saccade.field.network import Network

VERSION = 1  # of the generator: raise it when the same number gives another graph
SPLITS = ("train", "val", "test")
LABELS = ("cycle", "tree")
NODES = (12, 30)  # from, and to
RING = (3, 8)


def example(number: int, *, split: str = "train", seed: int = 0) -> tuple[Network, str]:
    """The graph and label of this number."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, SPLITS.index(split), number])))
    count, label = int(random.integers(NODES[0], NODES[1] + 1)), LABELS[int(random.integers(2))]
    edges = _ring_and_tree(count, random) if label == "cycle" else _tree(0, count, random)
    names = random.permutation(count)  # the numbers of nodes tell nothing
    return Network(np.ones((count, 1), np.float32), names[np.array(edges)]), label


def _tree(first: int, count: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """A tree of so many nodes from number `first` on: each is joined to an earlier one."""
    return [(first + int(random.integers(each)), first + each) for each in range(1, count)]


def _ring_and_tree(count: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """A ring with trees that grow on it, and a tree by itself."""
    ring = int(random.integers(RING[0], RING[1] + 1))
    alone = int(random.integers(2, count - ring + 1))
    edges = [(each, (each + 1) % ring) for each in range(ring)]
    edges += [(int(random.integers(each)), each) for each in range(ring, count - alone)]
    return edges + _tree(count - alone, alone, random)
