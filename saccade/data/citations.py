"""`cora` and `citeseer`: papers and who cites whom, each one graph whose nodes are split (Sen et al. 2008; the public
split of Yang et al. 2016).

A split is the whole graph with the labels of its own nodes; of the others it knows none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from saccade.error import SaccadeError
from saccade.field.network import Network


def rows(path: Path, split: str) -> Iterator[tuple[Network, tuple[str | None, ...]]]:
    """The one row of a split: the graph, and the labels of the split's nodes."""
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {key: found[key] for key in found.files}
        features = _dense(arrays["x_indptr"], arrays["x_indices"], arrays["x_shape"])
        labels, chosen = arrays["y"], set(arrays[f"{split}_idx"].tolist())
    except (ValueError, OSError, KeyError) as problem:
        raise SaccadeError(f"{path} cannot be read as a graph of citations: {problem}") from None
    known = tuple(str(each) if node in chosen else None for node, each in enumerate(labels.tolist()))
    yield Network(features, arrays["edges"].astype(np.int64)), known


def _dense(begins: np.ndarray, columns: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Which words each paper has, (N,F), from the compressed rows."""
    found = np.zeros(tuple(shape.tolist()), np.float32)
    found[np.repeat(np.arange(len(found)), np.diff(begins)), columns] = 1.0
    return found
