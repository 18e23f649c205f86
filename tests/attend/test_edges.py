"""`Edges`: sums along edges against loops, gradients of gradients, and edges that cannot be."""

from __future__ import annotations

import pytest
import torch
from attend.graphs import batch, pairs

from saccade import SaccadeError
from saccade.attend.edges import Edges, _ascending


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


def test_an_edge_lets_its_second_node_look_at_its_first():
    edges = Edges.of(torch.tensor([[0, 2], [1, 2], [2, 0]]), 3)
    assert edges.dense().int().tolist() == [[[0, 0, 1], [0, 0, 0], [1, 1, 0]]]
    assert edges.degrees.tolist() == [1, 0, 2]


def test_sums_are_those_of_loops():
    edges = batch(rows=3)
    N, H, D = edges.count, 2, 5
    q, k, weights = draw(H, N, D), draw(H, N, D, seed=1), draw(H, len(edges), seed=2)
    mixed, total, largest = torch.zeros(H, N, D).double(), torch.zeros(H, N).double(), torch.zeros(H, N).double()
    seen = torch.zeros(N, dtype=torch.bool)
    for e, (i, j) in enumerate(zip(edges.query.tolist(), edges.key.tolist(), strict=True)):
        mixed[:, i] += (weights[:, e, None] * k[:, j]).detach()
        total[:, i] += weights[:, e].detach()
        here = weights[:, e].detach()
        largest[:, i] = torch.maximum(largest[:, i], here) if seen[i] else here
        seen[i] = True
        torch.testing.assert_close(edges.products(q, k)[:, e], (q[:, i] * k[:, j]).sum(1))
    torch.testing.assert_close(edges.mixed(weights, k), mixed)
    torch.testing.assert_close(edges.total(weights), total)
    torch.testing.assert_close(edges.largest(weights), largest)
    torch.testing.assert_close(edges.total(edges.of_keys(k)), edges.mixed(torch.ones_like(weights), k))
    sums = edges.total(edges.softmax(weights))
    torch.testing.assert_close(sums, (edges.degrees > 0).double().expand(H, -1))


@pytest.mark.parametrize("what", ["mixed", "products", "total", "total of vectors", "softmax", "of_queries", "of_keys"])
def test_gradients_and_their_gradients(what):
    edges = batch(rows=2, nodes=5, count=9)
    N, E = edges.count, len(edges)
    x, y, weights, vectors = draw(2, N, 3), draw(2, N, 3, seed=1), draw(2, E, seed=2), draw(2, E, 3, seed=3)
    functions = {
        "mixed": (edges.mixed, (weights, x)),
        "products": (edges.products, (x, y)),
        "total": (edges.total, (weights,)),
        "total of vectors": (edges.total, (vectors,)),
        "softmax": (edges.softmax, (weights,)),
        "of_queries": (edges.of_queries, (x,)),
        "of_keys": (edges.of_keys, (x,)),
    }
    function, inputs = functions[what]
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_the_edges_of_a_batch_are_those_of_each_graph():
    edges = batch(rows=3, nodes=7, count=17)
    for b in range(3):
        alone = edges.alone(b)
        assert torch.equal(alone.dense()[0], edges.dense()[b])
        drawn = pairs(7, 17, b)[: 17 - 3 * b]
        assert torch.equal(alone.dense(), Edges.of(drawn, 7).dense())
    assert torch.equal(edges.turned.dense(), edges.dense().mT)
    assert torch.equal(edges.turned.turned.dense(), edges.dense())


def test_weights_follow_their_edges():
    drawn = pairs(7, 17)
    values = torch.arange(17.0)
    edges = Edges.of(drawn, 7).weighing(values)
    table = torch.zeros(7, 7)
    table[drawn[:, 1], drawn[:, 0]] = values
    found = torch.zeros(7, 7)
    found[edges.query, edges.key] = edges.weights
    assert torch.equal(found, table)
    rows = table.sum(1, keepdim=True)
    mean = torch.zeros(7, 7)
    mean[edges.query, edges.key] = edges.averaging
    torch.testing.assert_close(mean, torch.where(rows > 0, table / rows.where(rows > 0, 1), 0.0))


def test_loops_are_added_once():
    edges = Edges.of(torch.tensor([[0, 0], [0, 1], [2, 1]]), 4).looped
    assert edges.dense()[0].int().tolist() == [[1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert len(edges) == 6
    assert edges.symmetric.isfinite().all()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([[0, 1], [1, 7]], "edge 1 joins the nodes 1 and 7, and there are 7, from 0"),
        ([[-1, 1]], "edge 0 joins the nodes -1 and 1"),
        ([[0, 1, 2]], "an edge has two nodes; got edges of 3"),
        ([[0.5, 1.0]], r"edges are whole numbers \(batch, edges, 2\) of nodes from 0; got float32 \(1, 2\)"),
    ],
)
def test_edges_that_cannot_be(wrong, why):
    with pytest.raises(SaccadeError, match=why):
        Edges.of(torch.tensor(wrong), 7)


def test_what_fills_a_row_up_is_no_edge():
    drawn = torch.tensor([[[0, 1], [99, 99]], [[1, 0], [0, 1]]])
    assert len(Edges.of(drawn, 2, torch.tensor([1, 2]))) == 3
    with pytest.raises(SaccadeError, match="edge 1 joins the nodes 99 and 99"):
        Edges.of(drawn, 2)


@pytest.mark.parametrize("nodes", [5, 70_000, 1 << 33, 1 << 60])
def test_edges_are_sorted_as_by_comparing(nodes):
    numbers = torch.randint(0, nodes, (997,), generator=torch.Generator().manual_seed(0))
    assert torch.equal(_ascending(numbers), numbers.argsort(stable=True))


def test_no_edges_at_all():
    edges = Edges.of(torch.empty(0, 2, dtype=torch.long), 3)
    x = draw(1, 3, 2)
    assert not edges.mixed(draw(1, 0), x).any()
    assert len(edges.looped) == 3
    assert edges.softmax(draw(1, 0)).shape == (1, 0)


def test_a_million_edges():
    """Memory and time grow with the edges: all pairs of these nodes would take 40 GB as bools alone."""
    nodes, count = 200_000, 1_000_000
    generator = torch.Generator().manual_seed(0)
    edges = Edges.of(torch.randint(0, nodes, (count, 2), generator=generator), nodes)
    x = torch.ones(1, nodes, 2, requires_grad=True)
    sums = edges.mixed(torch.ones(1, count), x)
    assert torch.equal(sums[0, :, 0].detach(), edges.degrees.float())
    sums.sum().backward()
    assert torch.equal(x.grad[0, :, 0], torch.bincount(edges.key, minlength=nodes).float())
