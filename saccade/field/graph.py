"""A graph as X: nodes with features, and edges between them (Scarselli et al. 2009)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field

from saccade import spec
from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, Taken
from saccade.field.file import FileSource
from saccade.field.layout import layout
from saccade.field.network import ENDINGS, GRAPH, Network, network_of, of_json
from saccade.field.unit import Lengths, Side, Unit
from saccade.model.embed import EMBEDS
from saccade.model.input import Input
from saccade.model.nodes import laplacian

BYTES = 56  # of an edge in a pass: its two nodes, its place and its weight, sorted by either node
MANY = 100_000  # edges from which their memory is told
FLAT = 1e-6  # spread of a feature below which it is left as it is


class GraphConfig(Config):
    """The keys of a graph in a recipe."""

    kind: Literal["graph"] = Field("graph", description="graph")
    directed: bool = Field(False, description="whether an edge is looked along one way; else both ways")
    loops: bool = Field(True, description="whether edges from a node to itself are kept")
    normalise: Literal["none", "rows", "spread"] = Field(
        "none", description="of features: rows, each node's sum to 1; spread, each by its mean and spread in training"
    )
    positions: int = Field(
        0, ge=0, description="features of where a node stands: eigenvectors of the Laplacian, their signs at random"
    )
    degrees: bool = Field(False, description="a feature more: the logarithm of 1 + how many edges a node has")
    embed: str = Field("nodes", description="how features become vectors: nodes, nodes(dropout=0.5)")


class GraphShape(NamedTuple):
    """What was learned from the training graphs: how many features a node and an edge have, whether edges have weights,
    and the mean and spread of the nodes' features.
    """

    features: int
    edge_features: int
    weighted: bool
    mean: list[float]
    spread: list[float]


class Graph(FileSource):
    """features (N,F) and edges (E,2) of each graph; node j is looked at by i where there is an edge from j to i."""

    kind: ClassVar[str] = "graph"
    media, inside = GRAPH, "nodes and edges"
    keys: ClassVar[type[GraphConfig]] = GraphConfig
    held: ClassVar[str | None] = "graphs"
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    repeats: ClassVar[bool] = False
    inherited: ClassVar[tuple[str, ...]] = ("directed", "loops", "normalise", "positions", "degrees", "embed")
    unit, noun = "nodes", "graph"

    def __init__(self, shape: GraphShape, config: GraphConfig) -> None:
        self.shape, self.config = shape, config
        self.width = shape.features + config.positions + config.degrees

    @staticmethod
    def made(config: GraphConfig, raws: Iterable[Any]) -> bytes:
        """How many features there are, their mean and their spread."""
        kinds: set[tuple[int, int, bool]] = set()
        total = squares = np.zeros(1)
        count = 0
        for raw in raws:
            found = network_of(raw)
            more = 0 if found.edge_features is None else found.edge_features.shape[1]
            kinds.add((found.features.shape[1], more, found.weights is not None))
            if len(kinds) > 1:
                one, other = sorted(kinds)
                raise SaccadeError(
                    f"graphs should be alike, in features of nodes and edges, and weights: {one}, {other}"
                )
            values = found.features.astype(np.float64)
            total, squares, count = total + values.sum(0), squares + (values**2).sum(0), count + len(values)
        if not kinds:
            raise SaccadeError("there is no graph to learn from: all are in the validation split, or there is none")
        mean = total / max(count, 1)
        spread = np.sqrt(np.maximum(squares / max(count, 1) - mean**2, 0))
        spread[spread < FLAT] = 1.0
        return json.dumps(GraphShape(*kinds.pop(), mean.tolist(), spread.tolist())._asdict()).encode()

    @classmethod
    def load(cls, config: GraphConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Graph:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows the features of the graphs")
        return cls(GraphShape(**json.loads(files[name])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        found = {
            "features": Array("<f4", (self.width,), ragged=True),
            "edges": Array("<i4", (2,), ragged=True, axis="edges"),
        }
        if self.shape.weighted:
            found["weights"] = Array("<f4", (), ragged=True, axis="edges")
        if self.shape.edge_features:
            found["edge_features"] = Array("<f4", (self.shape.edge_features,), ragged=True, axis="edges")
        return found

    @property
    def model(self) -> Mapping[str, Any]:
        """Vectors of nodes. The states are averaged where one must stand for all."""
        name, keys = spec.arguments(self.config.embed, EMBEDS, "embed")
        sizes = {"features": self.width, "edge_features": self.shape.edge_features}
        if sizes["edge_features"] and "edge_features" not in keys:
            told = f"edges have features here ({sizes['edge_features']} each), which {name!r} does not read: "
            raise SaccadeError(f"{told}write embed = 'pairs', with model.pair and pair_updates, or leave them out")
        known = {key: size for key, size in sizes.items() if key in keys}
        embed = spec.completed(self.config.embed, EMBEDS, "embed", **known)
        return {"embed": embed, "pool": "mean", "pooler": False}

    @property
    def lengths(self) -> Lengths:
        return Lengths("nodes", (10, 20, 50, 200))

    def bucket(self, raw: Any) -> int:
        return len(network_of(raw).features)

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Features, with degrees and positions beside them, and edges both ways."""
        encoded = [self._encoded(network_of(each)) for each in raws]
        return {name: [each[name] for each in encoded] for name in self.arrays}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """features (B,N,F), edges (B,E,2), how many each graph has of them, and their weights and features. The signs
        of positions are drawn anew for each graph in training.
        """
        lengths = torch.tensor([len(each) for each in taken["features"]])
        values = {name: _padded(taken[name]) for name in self.arrays}
        values["edges"] = values["edges"].long()
        values["edge_counts"] = torch.tensor([len(each) for each in taken["edges"]])
        if draw is not None and self.config.positions:
            signs = draw.choice(np.array([-1.0, 1.0], np.float32), (len(lengths), 1, self.config.positions))
            values["features"][..., -self.config.positions :] *= torch.from_numpy(signs)
        full = bool((lengths == values["features"].shape[1]).all())
        return Input(values, () if full else lengths)

    @staticmethod
    def opened(raw: Any) -> Any:
        return network_of(raw)

    @staticmethod
    def digest(raw: Any) -> bytes:
        found = network_of(raw)
        parts = (each.tobytes() for each in found if isinstance(each, np.ndarray))
        return hashlib.sha256(b"".join(parts)).digest()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        lengths, edges = column.lengths(), len(column.array("edges"))
        median, longest = np.quantile(lengths, [0.5, 1.0], method="inverted_cdf")
        several = f", {median} nodes (median), {longest} (most)" if len(lengths) > 1 else ""
        count = f"{len(lengths):,} graph{'' if len(lengths) == 1 else 's'}"
        ways = "one way" if self.config.directed else "both ways"
        takes = f", {BYTES * edges / 1e6:,.0f} MB in a pass at least" if edges >= MANY else ""
        nodes = f"{int(lengths.sum()):,} nodes with {self.width:,} features"
        return f"{count}, {nodes}, {edges:,} edges {ways}{takes}{several}"

    def show(self, raw: Any) -> str:
        """The name of its file, or how large it is."""
        if isinstance(raw, str | Path):
            return str(raw)
        found = network_of(raw)
        return f"a graph of {len(found.features):,} nodes and {len(found.edges):,} edges"

    def sample(self, raw: Any) -> str:
        return network_of(raw).as_json()

    @classmethod
    def cell(cls, text: str, folder: Path) -> Any:
        """A graph written as JSON, or the path of its file, relative to the folder of the table."""
        return of_json(text, "this cell") if text.lstrip().startswith("{") else super().cell(text, folder)

    def line(self, text: str) -> Any:
        """A graph written as JSON, or the path of its file."""
        return of_json(text, "this") if str(text).lstrip().startswith("{") else super().line(text)

    def received(self, value: Any) -> Network:
        """A table of nodes and edges, or the same as JSON in a string; never a path."""
        if isinstance(value, Mapping):
            return network_of(value)
        if isinstance(value, str):
            return of_json(value, "this")
        raise SaccadeError('this run reads graphs: give one as {"nodes": [[...], ...], "edges": [[0, 1], ...]}')

    def side(self, x: Input) -> Side:
        """The nodes, each with a place of a drawing in which neighbours lie near each other."""
        count = int(x.lengths[0][0]) if x.lengths else x.values["features"].shape[1]
        edges = x.values["edges"][0, : int(x.values["edge_counts"][0])].numpy()
        names = [str(n) for n in range(count)]
        places = layout(count, edges).tolist()
        units = [
            Unit(n, name, n, False, tuple(place)) for n, (name, place) in enumerate(zip(names, places, strict=True))
        ]
        once = edges[edges[:, 0] <= edges[:, 1]] if not self.config.directed else edges
        shown = {"edges": once.tolist()}
        return Side(units, names, f"a graph of {count:,} nodes", "graph", shown)

    def _encoded(self, found: Network) -> dict[str, np.ndarray]:
        """The arrays of one graph."""
        count, wide = found.features.shape
        if wide != self.shape.features:
            raise SaccadeError(f"a node has {self.shape.features:,} features here; this graph's have {wide:,}")
        more = 0 if found.edge_features is None else found.edge_features.shape[1]
        if more != self.shape.edge_features or (found.weights is None) == self.shape.weighted:
            weights = "weights" if self.shape.weighted else "no weights"
            told = f"an edge has {self.shape.edge_features} features and {weights} here"
            raise SaccadeError(f"{told}; this graph's have {more} and {'none' if found.weights is None else 'some'}")
        edges, picked = _directions(found.edges, self.config)
        columns = [NORMALISED[self.config.normalise](found.features, self.shape)]
        if self.config.degrees:
            columns.append(np.log1p(np.bincount(edges[:, 1], minlength=count))[:, None])
        if self.config.positions:
            columns.append(laplacian(torch.from_numpy(edges), count, self.config.positions).numpy())
        arrays = {"features": np.concatenate(columns, 1).astype(np.float32), "edges": edges.astype(np.int32)}
        for name, values in (("weights", found.weights), ("edge_features", found.edge_features)):
            if values is not None:
                arrays[name] = values[picked].astype(np.float32)
        return arrays


def _directions(edges: np.ndarray, config: GraphConfig) -> tuple[np.ndarray, np.ndarray]:
    """Each edge once and, where they have no direction, both ways; with the number of the edge it was made of."""
    numbers = np.arange(len(edges))
    if not config.loops:
        numbers = numbers[edges[:, 0] != edges[:, 1]]
    picked, made = numbers, edges[numbers]
    if not config.directed:
        made, picked = np.concatenate([made, made[:, ::-1]]), np.concatenate([picked, picked])
    if len(made):
        _, first = np.unique(made[:, 0] * (int(made.max()) + 1) + made[:, 1], return_index=True)
        made, picked = made[first], picked[first]
    return made, picked


def _padded(rows: Sequence[np.ndarray]) -> torch.Tensor:
    """Arrays (n,...) as one (B,most,...), filled up with zeros."""
    if len(rows) == 1:
        return torch.from_numpy(np.array(rows[0])[None])
    most = max(map(len, rows), default=0)
    found = np.zeros((len(rows), most, *rows[0].shape[1:]), rows[0].dtype)
    for row, own in zip(found, rows, strict=True):
        row[: len(own)] = own
    return torch.from_numpy(found)


def _by_rows(features: np.ndarray, shape: GraphShape) -> np.ndarray:
    total = features.sum(1, keepdims=True)
    return features / np.where(total == 0, 1, total)


NORMALISED = {
    "none": lambda features, shape: features,
    "rows": _by_rows,
    "spread": lambda features, shape: (features - np.array(shape.mean)) / np.array(shape.spread),
}
