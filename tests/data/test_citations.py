"""Cora and Citeseer: the public split, of whose nodes each split knows its own labels alone."""

from __future__ import annotations

import numpy as np
import pytest
from absent import data_set

from saccade import SaccadeError
from saccade.data import named
from saccade.data.citations import rows

COUNTS = {"cora": (2708, 1433, 5278, 7, (140, 500, 1000)), "citeseer": (3327, 3703, 4552, 6, (120, 500, 1000))}


@pytest.mark.parametrize("name", list(COUNTS))
def test_the_public_split(name):
    data_set(name)
    nodes, features, edges, classes, sizes = COUNTS[name]
    found = {split: next(iter(named.rows_of(name, split, None, None))) for split in ("train", "val", "test")}
    for graph, labels in found.values():
        assert graph.features.shape == (nodes, features)
        assert set(np.unique(graph.features)) == {0.0, 1.0}
        assert graph.edges.shape == (edges, 2)
        assert len(labels) == nodes
    known = [{n for n, each in enumerate(labels) if each is not None} for _, labels in found.values()]
    assert tuple(map(len, known)) == sizes
    assert len(set.union(*known)) == sum(sizes)
    assert len({each for _, labels in found.values() for each in labels if each is not None}) == classes


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "cora.npz").write_bytes(b"nothing")
    with pytest.raises(SaccadeError, match="cannot be read as a graph of citations"):
        list(rows(tmp_path / "cora.npz", "train"))
    np.savez(tmp_path / "other.npz", y=np.zeros(3))
    with pytest.raises(SaccadeError, match="cannot be read as a graph of citations"):
        list(rows(tmp_path / "other.npz", "train"))
