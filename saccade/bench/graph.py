"""`saccade bench graph`: graph layers beside torch_geometric's with the same weights, and how their time grows.

Two graphs: one of the size of Cora (2,708 nodes, 10,556 edges), one of 20,000 nodes and 100,000 edges, both drawn. A
layer has what depends on the edges alone prepared on both sides; a model of two layers gets the edges as a tensor in
each call. Growth is an exponent: with the edges at GROWN nodes, and with the nodes at DEGREE edges each. Between NODES
the tables outgrow a processor's caches, which shows in any exponent: both sides' stand beside each other, and those
among MORE nodes, whose tables are out of the caches all along.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.edges import Edges
from saccade.bench.growth import exponent
from saccade.bench.race import raced, row, spent
from saccade.heap import keep_heap
from saccade.model.graph import GraphAttention, GraphConvolution

WIDTH, HEADS, CLASSES = 64, 8, 7
GRAPHS = {"as Cora": (2708, 10_556), "random": (20_000, 100_000)}  # nodes, edges
GROWN, DEGREE = 20_000, 10
EDGES = (100_000, 200_000, 400_000, 800_000)  # of GROWN nodes
NODES = (10_000, 20_000, 40_000, 80_000)  # with DEGREE edges each
MORE = (40_000, 80_000, 160_000)
FITS = 3
PEER = "torch_geometric"

Call = Callable[[Tensor], Tensor]


class GraphPeer(NamedTuple):
    """ours: a layer of so many heads, from a width of inputs to a width; theirs: the same as torch_geometric has it;
    share: gives the weights of theirs to ours.
    """

    ours: Callable[[int, int, int], nn.Module]
    theirs: Callable[[int, int, int, bool], Any]
    share: Callable[[nn.Module, Any], None]


def rows(seconds: float = 1.0) -> Iterator[dict[str, Any]]:
    """All lines, each for about so many seconds. Some minutes."""
    keep_heap()  # as training does; for both sides
    for graph, (nodes, count) in GRAPHS.items():
        pairs = drawn_pairs(nodes, count)
        for name in LAYERS:
            yield from _layer(f"{name} layer, {graph}", name, pairs, nodes, seconds)
            yield from _model(f"{name} model, {graph}", name, pairs, nodes, seconds)
    for name in LAYERS:
        for axis, sizes in (
            ("edges", [(GROWN, count) for count in EDGES]),
            ("nodes", [(n, n * DEGREE) for n in NODES]),
            (f"nodes from {MORE[0]:,}", [(n, n * DEGREE) for n in MORE]),
        ):
            yield from _growth(name, axis, sizes)


def drawn_pairs(nodes: int, count: int) -> Tensor:
    """Different edges (E,2) between nodes drawn at random, without loops, sorted by where they begin."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, nodes * (nodes - 1), (2 * count,), generator=generator).unique()
    codes = codes[torch.randperm(len(codes), generator=generator)[:count]].sort().values
    begin, apart = codes // (nodes - 1), codes % (nodes - 1)
    return torch.stack((begin, (begin + 1 + apart) % nodes), 1)


def both(name: str, inputs: int, width: int, cached: bool, heads: int = HEADS) -> tuple[Any, Any]:
    """The two layers with the same weights; theirs is None where the package is missing. cached: theirs keeps what
    depends on the edges alone.
    """
    torch.manual_seed(0)
    layer = LAYERS[name]
    ours = layer.ours(inputs, width, heads)
    try:
        theirs = layer.theirs(inputs, width, heads, cached)
    except ImportError:
        return ours, None
    layer.share(ours, theirs)
    return ours, theirs


def _layer(case: str, name: str, pairs: Tensor, nodes: int, seconds: float) -> Iterator[dict[str, Any]]:
    """One layer on edges that are prepared."""
    ours, theirs = both(name, WIDTH, WIDTH, cached=True)
    edges, index = Edges.of(pairs, nodes), pairs.T.contiguous()
    x = torch.randn(nodes, WIDTH, generator=torch.Generator().manual_seed(1))
    calls: list[Call | None] = [lambda x: ours(x.unsqueeze(0), edges=edges).squeeze(0)]
    calls.append(None if theirs is None else lambda x: theirs(x, index))
    yield from _raced(case, calls, [ours, theirs], x, seconds)


def _model(case: str, name: str, pairs: Tensor, nodes: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Two layers and a training step of them, from the edges as a tensor."""
    first, their_first = both(name, WIDTH, WIDTH, cached=False)
    last, their_last = both(name, WIDTH, CLASSES, cached=False, heads=1)
    index = pairs.T.contiguous()
    x = torch.randn(nodes, WIDTH, generator=torch.Generator().manual_seed(1))

    def ours(x: Tensor) -> Tensor:
        edges = Edges.of(pairs, nodes)
        found: Tensor = last(first(x.unsqueeze(0), edges=edges).relu(), edges=edges).squeeze(0)
        return found

    def theirs(x: Tensor) -> Tensor:
        found: Tensor = their_last(their_first(x, index).relu(), index)
        return found

    models = [nn.ModuleList([first, last]), None if their_first is None else nn.ModuleList([their_first, their_last])]
    yield from _raced(case, [ours, None if their_first is None else theirs], models, x, seconds)


def _raced(
    case: str, calls: Sequence[Call | None], models: Sequence[nn.Module | None], x: Tensor, seconds: float
) -> Iterator[dict[str, Any]]:
    """A pass without gradients, and a step of AdamW."""
    forward = [None if call is None else _forward(call, x) for call in calls]
    steps = [
        None if call is None or model is None else _step(call, model, x)
        for call, model in zip(calls, models, strict=True)
    ]
    for what, (ours, theirs) in (("forward", forward), ("training step", steps)):
        assert ours is not None
        if theirs is None:
            yield row(f"{case}, {what}", PEER, spent(ours, 3), None)
        else:
            mine, other, ratio, spread = raced(ours, theirs, seconds=seconds)
            yield row(f"{case}, {what}", PEER, mine, other, ratio, spread=spread)


def _forward(call: Call, x: Tensor) -> Callable[[], object]:
    def run() -> Tensor:
        with torch.no_grad():
            return call(x)

    return run


def _step(call: Call, model: nn.Module, x: Tensor) -> Callable[[], object]:
    """Forward, backward and an update, as in training: towards drawn classes."""
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    wanted = torch.randint(0, CLASSES, (len(x),), generator=torch.Generator().manual_seed(2))

    def run() -> None:
        optimiser.zero_grad()
        F.cross_entropy(call(x), wanted).backward()
        optimiser.step()

    return run


def _growth(name: str, axis: str, sizes: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """The exponents of the time of a layer, edges and all, on both sides; sizes: nodes and edges."""
    lengths = [edges if axis == "edges" else nodes for nodes, edges in sizes]
    runs: dict[str, list[list[Callable[[], object]]]] = {"forward": [], "training step": []}
    for nodes, count in sizes:
        layers = [each for each in both(name, WIDTH, WIDTH, cached=False) if each is not None]
        pairs, x = drawn_pairs(nodes, count), torch.randn(nodes, WIDTH)
        calls = [_ours(layers[0], pairs, nodes), *(_theirs(each, pairs) for each in layers[1:])]
        runs["forward"].append([_forward(call, x) for call in calls])
        runs["training step"].append([_step(call, layer, x) for call, layer in zip(calls, layers, strict=True)])
    for what, some in runs.items():
        for run in (each for size in some for each in size):
            run()  # what torch does once
        fits: list[list[float]] = []
        for _ in range(FITS):
            turns = [[[spent(run) for run in size] for size in some] for _ in range(3)]
            least = [[min(times) for times in zip(*size, strict=True)] for size in zip(*turns, strict=True)]
            fits.append([exponent(lengths, side) for side in zip(*least, strict=True)])
        ours, *theirs = (statistics.median(side) for side in zip(*fits, strict=True))
        line = row(f"{name} layer, {what}, exponent of {axis}", PEER, ours, theirs[0] if theirs else None, 0.0, unit="")
        yield {**line, "ratio": None}  # each is of its own time, so neither is better


def _ours(layer: Any, pairs: Tensor, nodes: int) -> Call:
    def call(x: Tensor) -> Tensor:
        found: Tensor = layer(x.unsqueeze(0), edges=Edges.of(pairs, nodes)).squeeze(0)
        return found

    return call


def _theirs(layer: Any, pairs: Tensor) -> Call:
    index = pairs.T.contiguous()

    def call(x: Tensor) -> Tensor:
        found: Tensor = layer(x, index)
        return found

    return call


def _their_gcn(inputs: int, width: int, heads: int, cached: bool) -> Any:
    from torch_geometric.nn import GCNConv

    return GCNConv(inputs, width, cached=cached)


def _their_sum(inputs: int, width: int, heads: int, cached: bool) -> Any:
    from torch_geometric.nn import GraphConv

    return GraphConv(inputs, width)


def _their_gat(inputs: int, width: int, heads: int, cached: bool) -> Any:
    from torch_geometric.nn import GATConv

    return GATConv(inputs, width // heads, heads=heads)


def _share_gcn(ours: Any, theirs: Any) -> None:
    ours.shared.weight.data = theirs.lin.weight.data.clone()


def _share_sum(ours: Any, theirs: Any) -> None:
    ours.shared.weight.data, ours.own.weight.data = (
        theirs.lin_rel.weight.data.clone(),
        theirs.lin_root.weight.data.clone(),
    )
    ours.bias.data = theirs.lin_rel.bias.data.clone()


def _share_gat(ours: Any, theirs: Any) -> None:
    ours.shared.weight.data = theirs.lin.weight.data.clone()
    score = ours.attention.score
    score.query.data = theirs.att_dst.data.view(score.query.shape).clone()
    score.key.data = theirs.att_src.data.view(score.key.shape).clone()


LAYERS = {
    "GCN": GraphPeer(
        lambda inputs, width, heads: GraphConvolution(width, "symmetric", activation="none", inputs=inputs),
        _their_gcn,
        _share_gcn,
    ),
    "graph convolution": GraphPeer(
        lambda inputs, width, heads: GraphConvolution(width, "sum", activation="none", inputs=inputs),
        _their_sum,
        _share_sum,
    ),
    "GAT": GraphPeer(
        lambda inputs, width, heads: GraphAttention(width, heads, "none", inputs=inputs), _their_gat, _share_gat
    ),
}
