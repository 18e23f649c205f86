"""`edgewise` is `plain` with a table of all pairs, in float64 and with gradients; batches, lonely and broken nodes."""

from __future__ import annotations

import pytest
import torch
from attend.graphs import batch, pairs

import saccade
from saccade import SaccadeError
from saccade.attend import edgewise
from saccade.attend.edges import Edges
from saccade.attend.neighbours import neighbours
from saccade.attend.score import additive, bilinear, gate, leaky

B, H, G, T, D, E = 2, 6, 3, 7, 5, 11
NORMALISERS = ["softmax", "softmax(2.0)", "sigmoid", "sum", "none"]


def tensors(B=B, H=H, G=G, T=T, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, H, T, D), (B, G, T, D), (B, G, T, E)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def scores():
    torch.manual_seed(3)
    made = (additive(D, H), additive(D, H, activation="leaky"), leaky(D, H), bilinear(D, H), gate(D, H))
    return {**{name: name for name in ("scaled_dot", "dot", "cosine")}, **{repr(each): each.double() for each in made}}


def same(inputs, weights, **options):
    """Output and gradients of both kernels."""
    found, law = (saccade.attention(*inputs, kernel=name, **options) for name in ("edgewise", "plain"))
    torch.testing.assert_close(found, law, rtol=1e-10, atol=1e-10)
    parameters = [*inputs, *weights]
    aim = torch.randn(law.shape, generator=torch.Generator().manual_seed(9), dtype=law.dtype)
    both = [torch.autograd.grad(each, parameters, aim, allow_unused=True) for each in (found, law)]
    for one, other in zip(*both, strict=True):
        if one is None or other is None:
            assert one is None or not one.any()
            assert other is None or not other.any()
        else:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("score", list(scores().values()), ids=list(scores()))
def test_every_score(score):
    weights = list(score.parameters()) if isinstance(score, torch.nn.Module) else []
    same(tensors(), weights, mask=neighbours(batch(B, T)), score=score)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_every_normaliser(normaliser):
    score = "dot" if normaliser in ("sum",) else "scaled_dot"
    same(tensors(), [], mask=neighbours(batch(B, T), loops=True), normaliser=normaliser, score=score)


JOINED = {
    "loops": lambda edges: neighbours(edges, loops=True),
    "causal": lambda edges: neighbours(edges) & saccade.causal,
    "window": lambda edges: saccade.window(3) & neighbours(edges),
    "padding": lambda edges: neighbours(edges) & saccade.padding(torch.tensor([7, 4])),
    "left": lambda edges: neighbours(edges) & saccade.padding(torch.tensor([5, 7]), "left"),
    "not": lambda edges: neighbours(edges) & ~saccade.causal,
    "or": lambda edges: neighbours(edges) & (saccade.window(2) | saccade.prefix(2)),
    "document": lambda edges: neighbours(edges) & saccade.document(torch.tensor([[0, 0, 0, 1, 1, 1, 1]]).expand(2, -1)),
    "two graphs": lambda edges: neighbours(edges) & neighbours(batch(B, T, 20, seed=5)),
}


@pytest.mark.parametrize("name", list(JOINED))
def test_joined_with_other_masks(name):
    same(tensors(), [], mask=JOINED[name](batch(B, T)))


@pytest.mark.parametrize("shape", [(B, H, T, T), (1, 1, T, T), (B, 1, 1, T), (1, H, T, 1)])
def test_a_bias_of_the_call(shape):
    inputs, bias = tensors(), torch.randn(shape, dtype=torch.float64, requires_grad=True)
    same(inputs, [bias], mask=neighbours(batch(B, T)), bias=bias)


def test_one_graph_for_all_examples():
    same(tensors(), [], mask=neighbours(Edges.of(pairs(T, 17), T)))


@pytest.mark.parametrize("position", [None, "rotary"])
def test_positions_that_turn_queries_and_keys(position):
    inputs = [torch.randn(B, H, T, 6, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    same(inputs, [], mask=neighbours(batch(B, T)), position=position)


@pytest.mark.parametrize("loops", [False, True])
def test_an_edge_that_is_there_twice_counts_once(loops):
    drawn = pairs(T, 17)
    edges = Edges.of(torch.cat((drawn, drawn[3:9], drawn[:2])), T)
    same(tensors(1), [], mask=neighbours(edges, loops=loops))
    assert torch.equal(edges.distinct.dense(), edges.dense())
    assert len(edges.distinct) == 17


def test_a_batch_of_graphs_is_each_alone():
    q, k, v = tensors()
    edges = batch(B, T)
    together = saccade.attention(q, k, v, mask=neighbours(edges), kernel="edgewise")
    for b in range(B):
        one = [each[b : b + 1] for each in (q, k, v)]
        alone = saccade.attention(*one, mask=neighbours(edges.alone(b)), kernel="edgewise")
        torch.testing.assert_close(together[b : b + 1], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_an_isolated_node_gives_zeros_and_zero_gradients(normaliser):
    inputs = tensors()
    output = saccade.attention(*inputs, mask=neighbours(batch(B, T)), normaliser=normaliser, kernel="edgewise")
    assert not output[:, :, -1].any(), "nobody leads to the last node"
    found = torch.autograd.grad(output[:, :, -1].sum(), inputs)
    assert all(not each.any() for each in found)


def test_a_broken_node_reaches_its_neighbours_alone():
    q, k, v = (each.detach() for each in tensors(1, 1, 1))
    v[0, 0, 3] = torch.nan
    edges = Edges.of(torch.tensor([[3, 0], [1, 0], [1, 2], [2, 4]]), T)
    output = saccade.attention(q, k, v, mask=neighbours(edges), kernel="edgewise")
    assert output[0, 0].isnan().any(1).tolist() == [True, False, False, False, False, False, False]


def test_half_precision_is_computed_in_float32():
    inputs = tensors(dtype=torch.bfloat16)
    found = saccade.attention(*inputs, mask=neighbours(batch(B, T)), kernel="edgewise")
    law = saccade.attention(*inputs, mask=neighbours(batch(B, T)), kernel="plain")
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, law, rtol=2e-2, atol=2e-2)


def test_auto_takes_it_where_the_edges_are_few(monkeypatch):
    called = []
    attend = edgewise.attend
    monkeypatch.setattr(edgewise, "attend", lambda *args, **more: (called.append(1), attend(*args, **more))[1])
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1, 100, 4, generator=generator) for _ in range(3))
    sparse, dense = (neighbours(Edges.of(pairs(100, count), 100)) for count in (300, 5000))
    few = saccade.attention(q, k, v, mask=sparse)
    assert called
    torch.testing.assert_close(few, saccade.attention(q, k, v, mask=sparse, kernel="plain"))
    called.clear()
    saccade.attention(q, k, v, mask=dense)
    assert not called


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "edgewise looks along edges: give the mask 'neighbours'"),
        ({"mask": saccade.causal}, "edgewise looks along edges"),
        ({"mask": neighbours([[0, 6]]) | saccade.causal}, "edgewise looks along edges"),
        ({"mask": neighbours([[0, 6]]) & saccade.causal, "position": "alibi"}, "edgewise adds no alibi to pairs"),
    ],
)
def test_what_it_refuses(options, why):
    with pytest.raises(SaccadeError, match=why):
        saccade.attention(*tensors(), **options, kernel="edgewise")
