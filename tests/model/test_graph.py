"""Graph layers: the lecture's formula, torch_geometric's layers, relabelled nodes, and graphs that cannot be."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from attend.graphs import batch, pairs

import saccade
from saccade import Input, SaccadeError
from saccade.attend.edges import Edges
from saccade.config import read
from saccade.model.graph import GraphAttention, GraphConvolution
from saccade.model.nodes import laplacian, nodes

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch_geometric, when imported

N, C = 11, 6
LAYERS = {
    "sum": lambda: GraphConvolution(C),
    "mean": lambda: GraphConvolution(C, "mean"),
    "symmetric": lambda: GraphConvolution(C, "symmetric"),
    "own and symmetric": lambda: GraphConvolution(C, "symmetric", own=True, activation="tanh"),
    "without a product": lambda: GraphConvolution(C, "symmetric", project=False),
    "narrower": lambda: GraphConvolution(C, inputs=13),
    "wider": lambda: GraphConvolution(C, "mean", inputs=5),
    "gat": lambda: GraphAttention(C, 3),
    "gat without a product": lambda: GraphAttention(C, 2, project=False),
}


def made(name, seed=0):
    torch.manual_seed(seed)
    return LAYERS[name]().double()


def graph(count=31, nodes=N, seed=0):
    return Edges.of(pairs(nodes, count, seed), nodes)


def states(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def width_of(layer):
    return getattr(layer.shared, "in_features", C)


def test_the_lectures_formula():
    """s(theta_1 x_j + sum over the neighbours i of j of theta_2 x_i), node by node."""
    layer, edges, x = made("sum"), graph(), states(1, N, C)
    layer.bias.data.normal_()
    found = layer(x, edges=edges)[0]
    for j in range(N):
        near = [key for query, key in zip(edges.query.tolist(), edges.key.tolist(), strict=True) if query == j]
        total = layer.own.weight @ x[0, j] + sum((layer.shared.weight @ x[0, i] for i in near), layer.bias)
        torch.testing.assert_close(found[j], torch.relu(total))


def test_a_graph_convolution_is_attention_with_fixed_weights():
    """The mean over neighbours is attention to `neighbours` whose scores are all the same."""
    layer, edges, x = made("mean"), graph(), states(1, N, C)
    values = layer.shared(x).unsqueeze(1)
    looked = saccade.attention(torch.zeros_like(values), values, values, mask=saccade.neighbours(edges))
    torch.testing.assert_close(layer(x, edges=edges), torch.relu(looked[:, 0] + layer.own(x) + layer.bias))


def geometric():
    from torch_geometric import nn  # takes a second

    return nn


@pytest.mark.parametrize(("gather", "aggregated"), [("sum", "add"), ("mean", "mean")])
def test_sums_and_means_are_those_of_torch_geometric(gather, aggregated):
    peer = geometric().GraphConv(C, C, aggr=aggregated).double()
    layer, edges, x = made(gather), graph(), states(1, N, C)
    layer.shared.weight.data, layer.own.weight.data = peer.lin_rel.weight.data, peer.lin_root.weight.data
    layer.bias.data = peer.lin_rel.bias.data
    theirs = torch.relu(peer(x[0], torch.stack((edges.key, edges.query))))
    torch.testing.assert_close(layer(x, edges=edges)[0], theirs)


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_is_that_of_torch_geometric(weighted):
    peer = geometric().GCNConv(C, C).double()
    layer, edges, x = made("symmetric"), graph(), states(1, N, C)
    layer.shared.weight.data, layer.bias.data = peer.lin.weight.data, peer.bias.data
    weights = None
    if weighted:
        weights = torch.rand(len(edges), generator=torch.Generator().manual_seed(5), dtype=torch.float64) + 0.1
        edges = Edges(edges.query, edges.key, 1, N, None, weights)
    x.requires_grad_()
    theirs = torch.relu(peer(x[0], torch.stack((edges.key, edges.query)), weights))
    ours = layer(x, edges=edges)[0]
    torch.testing.assert_close(ours, theirs)
    one, other = (torch.autograd.grad(each.square().sum(), x)[0] for each in (ours, theirs))
    torch.testing.assert_close(one, other)


def test_gat_is_that_of_torch_geometric():
    peer = geometric().GATConv(C, C // 3, heads=3).double()
    layer, edges, x = made("gat"), graph(), states(1, N, C)
    layer.shared.weight.data, layer.bias.data = peer.lin.weight.data, torch.randn(C).double()
    peer.bias.data = layer.bias.data
    score = layer.attention.score
    score.query.data = peer.att_dst.data.view(score.query.shape)
    score.key.data = peer.att_src.data.view(score.key.shape)
    x.requires_grad_()
    theirs = F.elu(peer(x[0], torch.stack((edges.key, edges.query))))
    ours = layer(x, edges=edges)[0]
    torch.testing.assert_close(ours, theirs)
    one, other = (torch.autograd.grad(each.square().sum(), x)[0] for each in (ours, theirs))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", list(LAYERS))
def test_relabelled_nodes_give_relabelled_states(name):
    layer, drawn = made(name), pairs(N, 31)
    x = states(1, N, width_of(layer))
    order = torch.randperm(N, generator=torch.Generator().manual_seed(1))
    number = order.argsort()  # what the node that was i is called now
    before = layer(x, edges=Edges.of(drawn, N))
    after = layer(x[:, order], edges=Edges.of(number[drawn], N))
    torch.testing.assert_close(after, before[:, order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", list(LAYERS))
def test_a_batch_of_graphs_is_each_alone(name):
    layer, edges = made(name), batch(3, N, 31)
    x = states(3, N, width_of(layer))
    together = layer(x, edges=edges)
    for b in range(3):
        alone = layer(x[b : b + 1], edges=edges.alone(b))
        torch.testing.assert_close(together[b : b + 1], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", list(LAYERS))
def test_without_edges_every_state_is_finite(name):
    layer = made(name)
    x = states(2, N, width_of(layer)).requires_grad_()
    output = layer(x, edges=Edges.of(torch.empty(2, 0, 2, dtype=torch.long), N))
    assert output.isfinite().all()
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient.isfinite().all()


def test_a_node_without_neighbours_keeps_its_own_part_alone():
    layer = GraphConvolution(C, "sum", own=False, activation="none").double()
    x = states(1, N, C)
    assert not layer(x, edges=graph())[0, -1].any(), "zeros, since nobody leads to the last node"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: GraphConvolution(C, "median"), "neighbours are gathered by sum, mean, symmetric; got 'median'"),
        (lambda: GraphConvolution(C, activation="rleu"), "there is no activation 'rleu'; did you mean 'relu'"),
        (lambda: GraphConvolution(C, own=2), "own is True or False; got 2"),
        (lambda: GraphConvolution(C, project=False, inputs=3), "without a product 3 numbers do not become 6"),
        (lambda: GraphAttention(C, project=1), "gat: project is True or False; got 1"),
        (lambda: made("sum")(states(1, N, C)), "this input has no edges: give it a graph"),
        (lambda: made("gat")(states(1, N - 1, C), edges=graph()), r"the edges are of 1 graphs of 11 nodes; x is"),
    ],
)
def test_what_is_no_layer(make, why):
    with pytest.raises(SaccadeError, match=why):
        make()


def model(mixer, seed=0, **keys):
    torch.manual_seed(seed)
    values = {
        "width": 12,
        "heads": 2,
        "hidden": 16,
        "encoder": 2,
        "mixer": mixer,
        "embed": "nodes(3)",
        "head": "tags(5)",
    }
    return saccade.Model(read(saccade.ModelConfig, {**values, **keys})).double().eval()


def given(rows, counts, seed=0):
    """A batch of graphs with so many nodes, each with fewer edges than the one before."""
    T = max(counts)
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, T, 3, generator=generator, dtype=torch.float64)
    edges = torch.zeros(rows, 2 * T, 2, dtype=torch.long)
    sizes = torch.tensor([2 * n - row for row, n in enumerate(counts)])
    for row, n in enumerate(counts):
        edges[row, : int(sizes[row])] = pairs(n, int(sizes[row]), seed + row)
    values = {"features": features, "edges": edges, "edge_counts": sizes}
    return Input(values, torch.tensor(counts))


MODELS = {
    "graph": {"mixer": "graph"},
    "gcn": {"mixer": "graph(symmetric)", "order": "plain", "feed": "none"},
    "gat": {"mixer": "gat(2)"},
    "graph transformer": {"mixer": "attention", "mask": "neighbours"},
    "everyone": {"mixer": "attention"},
}


@pytest.mark.parametrize("name", list(MODELS))
def test_a_model_of_graphs_batched_is_alone(name):
    made, x, counts = model(**MODELS[name]), given(3, [9, 5, 7]), [9, 5, 7]
    together = made(x)
    for row, n in enumerate(counts):
        values = {"features": x.values["features"][row : row + 1, :n]}
        count = int(x.values["edge_counts"][row])
        values |= {"edges": x.values["edges"][row : row + 1, :count], "edge_counts": torch.tensor([count])}
        alone = made(Input(values))
        torch.testing.assert_close(together[row : row + 1, :n], alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("pool", ["mean", "sum", "max", "attention"])
def test_a_pooled_graph_does_not_know_the_names_of_its_nodes(pool):
    made = model("graph", pool=pool, head="label(4)")
    x = given(1, [9])
    order = torch.randperm(9, generator=torch.Generator().manual_seed(2))
    moved = {**x.values, "features": x.values["features"][:, order], "edges": order.argsort()[x.values["edges"]]}
    one, other = (made(each) for each in (x, Input(moved, x.lengths[0])))
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pool", ["mean", "sum", "max", "attention"])
def test_a_pool_counts_no_padding(pool):
    made, x = model("graph", pool=pool, head="label(4)"), given(2, [9, 5])
    together = made(x)
    count = int(x.values["edge_counts"][1])
    values = {"features": x.values["features"][1:, :5], "edges": x.values["edges"][1:, :count]}
    alone = made(Input(values))
    torch.testing.assert_close(together[1:], alone, rtol=1e-10, atol=1e-10)


def test_laplacian_positions_tell_two_parts_apart():
    edges = torch.tensor([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]])
    found = laplacian(edges, 6, 2)
    assert found.shape == (6, 2)
    assert len({bool(each > 0) for each in found[:3, 0]}) == 1
    assert bool(found[0, 0] > 0) != bool(found[5, 0] > 0)
    assert not laplacian(torch.empty(0, 2, dtype=torch.long), 1, 3).any(), "one node has no further eigenvectors"


def test_features_that_are_mostly_zero_are_multiplied_as_any():
    """The same product and gradients, and dropout leaves each of the others out as often, scaled."""
    config = read(saccade.ModelConfig, {"width": 12, "heads": 2, "encoder": 1})
    made = nodes(101, dropout=0.3, config=config).double().eval()
    made.out.bias.data.normal_()
    x = torch.zeros(2, 7, 101, dtype=torch.float64)
    x[0, :3, [5, 17, 100]] = states(3, 3)
    x[1, 6, 9] = 2.0
    found, wanted = made({"features": x}), made.out(x)
    torch.testing.assert_close(found, wanted)
    aim = states(*found.shape, seed=2)
    weights = list(made.parameters())
    for one, other in zip(*(torch.autograd.grad(each, weights, aim) for each in (found, wanted)), strict=True):
        torch.testing.assert_close(one, other)
    made.train()
    torch.manual_seed(0)
    mean = torch.stack([made({"features": x}) for _ in range(3000)]).mean(0)
    torch.testing.assert_close(mean, wanted, rtol=0.1, atol=0.05)
    assert torch.equal(made({"features": x})[0, 5], made.out.bias), "a node without any feature"


def test_features_of_another_width():
    config = read(saccade.ModelConfig, {"width": 12, "heads": 2, "encoder": 1})
    with pytest.raises(SaccadeError, match=r"features are \(batch, nodes, 3\); got \(1, 4, 2\)"):
        nodes(3, config=config)({"features": torch.zeros(1, 4, 2)})
