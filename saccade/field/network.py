"""Graphs as arrays: read from a file, from JSON or from Python, and checked.

A file is JSON, {"nodes": [[0.5, 1.0], ...], "edges": [[0, 1], ...]}; NPZ with arrays of these names; or a list of
edges, two numbers of nodes in each line (.csv .tsv .txt). Instead of features, "nodes" may say how many nodes there
are; or, where most features are 0, {"features": how many there are, "at": for each node the numbers of those that
are not 0, "values": what these are, by default 1}. Beside them "weights" and "edge_features" belong to the edges,
"names" and "labels" to the nodes.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade.error import SaccadeError, nearest
from saccade.field.field import UnreadableError
from saccade.field.file import Media

ENDINGS = (".json",)
GRAPH = Media("graph", (".json", ".npz", ".csv"), "application", "application/json")
KEYS = ("nodes", "edges", "weights", "edge_features", "names", "labels")
LARGEST = 50_000_000  # bytes of a file
SPARSE = 4  # features of a node for each that is not 0, from which JSON has these alone
AS_JSON = '{"nodes": [[0.5, 1.0], ...], "edges": [[0, 1], ...]}'


class Network(NamedTuple):
    """features (N,F) float32; edges (E,2): from node, to node; of the edges weights (E,) and edge_features (E,K), of
    the nodes names and labels, where there are any.
    """

    features: np.ndarray
    edges: np.ndarray
    weights: np.ndarray | None = None
    edge_features: np.ndarray | None = None
    names: tuple[str, ...] = ()
    labels: tuple[str | None, ...] = ()

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(int(each.nbytes) for each in self if isinstance(each, np.ndarray))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The edges: a graph is one thing, not several."""
        return np.asarray(self.edges, dtype)

    def as_json(self) -> str:
        """It as JSON, with numbers as short as float32 allows."""
        told: dict[str, Any] = {"nodes": _nodes_of(self.features), "edges": self.edges.tolist()}
        told |= {} if self.weights is None else {"weights": self.weights.tolist()}
        told |= {} if self.edge_features is None else {"edge_features": self.edge_features.tolist()}
        return json.dumps(told | ({"names": list(self.names)} if self.names else {}))


def _nodes_of(features: np.ndarray) -> Any:
    """Features as JSON has them: rows, or those that are not 0."""
    if np.count_nonzero(features) * SPARSE > features.size:
        return _short(features)
    at = [np.flatnonzero(row) for row in features]
    told: dict[str, Any] = {"features": features.shape[1], "at": [each.tolist() for each in at]}
    if set(np.unique(features)) <= {0.0, 1.0}:
        return told
    return told | {"values": _short([row[own] for row, own in zip(features, at, strict=True)])}


def _short(rows: Iterable[np.ndarray]) -> list[list[float]]:
    return [[float(str(each)) for each in row] for row in rows]


def network_of(raw: Any) -> Network:
    """A graph from itself, a table of its parts, or a file or the bytes of one."""
    if isinstance(raw, Network):
        return raw
    if isinstance(raw, str | Path):
        return _of_file(Path(raw))
    if isinstance(raw, bytes):
        return _of_bytes(raw, "this")
    if isinstance(raw, Mapping):
        return _of_table(raw, "this graph")
    raise _unreadable(f"a graph is a table of nodes and edges, {AS_JSON}; got {type(raw).__name__}")


def of_json(text: str, name: str) -> Network:
    """A graph written as JSON."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _unreadable(f"{name} is no JSON ({problem}): a graph is {AS_JSON}", name) from None
    if not isinstance(table, dict):
        raise _unreadable(f"{name} holds a {type(table).__name__}: a graph is {AS_JSON}", name)
    return _of_table(table, name)


def _of_file(path: Path) -> Network:
    content = GRAPH.content(GRAPH.existing(path, str(path)))
    if len(content) > LARGEST:
        raise _unreadable(f"{path} has {len(content):,} bytes, and a graph has {LARGEST:,} at most", str(path))
    return _of_bytes(content, str(path))


def _of_bytes(content: bytes, name: str) -> Network:
    if content[:2] == b"PK":
        return _of_npz(content, name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(f"{name} is no graph: neither JSON, nor NPZ, nor a list of edges", name) from None
    return of_json(text, name) if text.lstrip()[:1] in ("{", "[") else _of_lines(text, name)


def _of_npz(content: bytes, name: str) -> Network:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            return _of_table({key: found[key] for key in found.files if key in KEYS}, name)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as problem:
        if isinstance(problem, SaccadeError):
            raise
        raise _unreadable(f"{name} is damaged, or holds pickles, which are not read: {problem}", name) from None


def _of_lines(text: str, name: str) -> Network:
    """A list of edges: two nodes in a line, and perhaps a weight; a first line without numbers is a header."""
    rows = [line.replace(",", " ").replace(";", " ").split() for line in text.splitlines() if line.strip()]
    if rows and not rows[0][0].lstrip("-").isdigit():
        rows = rows[1:]
    widths = {len(row) for row in rows}
    try:
        table = np.array(rows, np.float64).reshape(len(rows), -1)
    except ValueError:
        table = np.empty((0, 0))
    if widths - {2, 3} or len(widths) > 1 or table.shape[1] not in (2, 3):
        raise _unreadable(f"{name} is no list of edges: each line has two numbers of nodes, and perhaps a weight", name)
    count = int(table[:, :2].max()) + 1
    weights = {"weights": table[:, 2]} if table.shape[1] == 3 else {}
    return _of_table({"nodes": count, "edges": table[:, :2], **weights}, name)


def _of_table(table: Mapping[str, Any], name: str) -> Network:
    for key in table:
        if key not in KEYS:
            raise _unreadable(f"{name}: a graph has no {key!r}; {nearest(str(key), KEYS)}", name)
    if "nodes" not in table:
        raise _unreadable(f"{name} says nothing of its nodes: a graph is {AS_JSON}", name)
    for key, value in table.items():
        if key != "nodes" and not (value is None or isinstance(value, list | tuple | np.ndarray)):
            raise _unreadable(f"{name}: {key} is a list; got {value!r:.40}", name)
    features = _features(table["nodes"], name)
    edges = _edges(_given(table, "edges"), len(features), name)
    weights = None if table.get("weights") is None else _numbers(table["weights"], (len(edges),), "weights", name)
    more = None
    if table.get("edge_features") is not None:
        more = _numbers(table["edge_features"], (len(edges), -1), "edge_features", name)
    names = _texts(_given(table, "names"), len(features), "names", name)
    labels = _texts(_given(table, "labels"), len(features), "labels", name)
    edges, weights, more = _distinct(edges, weights, more)
    return Network(features, edges, weights, more, tuple(str(each) for each in names), labels)


def _given(table: Mapping[str, Any], key: str) -> Any:
    found = table.get(key)
    return () if found is None else found


def _features(nodes: Any, name: str) -> np.ndarray:
    if isinstance(nodes, Mapping):
        return _scattered(nodes, name)
    if not isinstance(nodes, list | tuple | np.ndarray) or (isinstance(nodes, np.ndarray) and not nodes.ndim):
        count = int(nodes) if isinstance(nodes, int | np.integer | np.ndarray) and not isinstance(nodes, bool) else -1
        if count < 0:
            raise _unreadable(f"{name}: nodes are rows of features, or how many there are; got {nodes!r:.40}", name)
        return np.ones((count, 1), np.float32)
    if not len(nodes):
        return np.ones((0, 1), np.float32)
    return _finite(_numbers(nodes, (-1, -1), "nodes", name), name)


def _finite(features: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(features).all():
        row = int((~np.isfinite(features)).any(1).argmax())
        raise _unreadable(f"{name}: node {row} has a feature that is no finite number", name)
    return features


def _scattered(nodes: Mapping[str, Any], name: str) -> np.ndarray:
    """Features of which those that are not 0 were told."""
    count, at, values = nodes.get("features"), nodes.get("at"), nodes.get("values")
    told = f'{name}: nodes are rows of features, or {{"features": how many, "at": [[numbers of those that are not 0]]}}'
    if not isinstance(count, int) or count < 1 or not isinstance(at, Sequence) or len(at) * count > LARGEST:
        raise _unreadable(told, name)
    if values is not None and (not isinstance(values, Sequence) or len(values) != len(at)):
        raise _unreadable(f"{name}: values have a row for each of {len(at):,} nodes", name)
    found = np.zeros((len(at), count), np.float32)
    for row, (own, which) in enumerate(zip(found, at, strict=True)):
        numbers = _numbers(which, (-1,), "numbers of features", name, np.float64).astype(np.int64)
        outside = numbers[(numbers < 0) | (numbers >= count)]
        if len(outside):
            raise _unreadable(f"{name}: node {row} has a feature {outside[0]}, and there are {count:,}, from 0", name)
        own[numbers] = 1.0 if values is None else _numbers(values[row], (len(numbers),), "values of features", name)
    return _finite(found, name)


def _edges(edges: Any, nodes: int, name: str) -> np.ndarray:
    if not len(edges):
        return np.empty((0, 2), np.int64)
    found = _numbers(edges, (-1, 2), "edges", name, np.float64)
    if not np.isfinite(found).all() or (found != np.floor(found)).any():
        raise _unreadable(f"{name}: an edge is a pair of numbers of nodes, from 0", name)
    found = found.astype(np.int64)
    outside = ((found < 0) | (found >= nodes)).any(1)
    if outside.any():
        wrong = int(outside.argmax())
        one, other = found[wrong].tolist()
        told = (
            f"{name}: edge {wrong} goes from node {one} to node {other}, and there are {nodes:,} nodes, counted from 0"
        )
        raise UnreadableError(told, "an edge to a node that is not there", name)
    return found


def _distinct(
    edges: np.ndarray, weights: np.ndarray | None, features: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Each edge once, the first of equal ones, in the order they came in."""
    if not len(edges):
        return edges, weights, features
    _, first = np.unique(edges[:, 0] * (edges.max() + 1) + edges[:, 1], return_index=True)
    kept = np.sort(first)
    weights, features = (None if each is None else each[kept] for each in (weights, features))
    return edges[kept], weights, features


def _numbers(values: Any, shape: tuple[int, ...], what: str, name: str, dtype: Any = np.float32) -> np.ndarray:
    """Numbers of a shape, in which -1 is any size."""
    try:
        found = np.asarray(values, dtype)
    except (TypeError, ValueError):
        raise _unreadable(f"{name}: {what} are rows of numbers, all equally long", name) from None
    if found.ndim == 1 and len(shape) == 2 and shape[1] == -1:
        found = found[:, None]
    if found.ndim != len(shape) or any(size not in (-1, each) for size, each in zip(shape, found.shape, strict=True)):
        wanted = " x ".join("any" if size == -1 else str(size) for size in shape)
        raise _unreadable(f"{name}: {what} should be {wanted} numbers; got {found.shape}", name)
    return found


def _texts(values: Any, count: int, what: str, name: str) -> tuple[str | None, ...]:
    """A text for each node; empty ones, null and NaN are none."""
    if not len(values):
        return ()
    if len(values) != count:
        raise _unreadable(f"{name}: there are {count:,} nodes and {len(values):,} {what}", name)
    return tuple(None if each is None or each != each or str(each).strip() == "" else str(each) for each in values)


def _unreadable(message: str, name: str = "") -> UnreadableError:
    return UnreadableError(message, "no graph", name)
