"""The mask `neighbours`: where its edges come from, joined with others, alone and in a batch."""

from __future__ import annotations

import pytest
import torch
from attend.graphs import batch

import saccade
from saccade import SaccadeError
from saccade.attend.mask import as_mask
from saccade.attend.neighbours import neighbours


def tensors(B, H, T, D=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, H, T, D, generator=generator, dtype=torch.float64) for _ in range(3)]


def test_a_mask_of_its_own_edges():
    q, k, v = tensors(1, 2, 3)
    seen = saccade.weights(q, k, mask=neighbours([[0, 1], [2, 1], [1, 0]]))
    assert (seen > 0).int()[0, 0].tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert not saccade.attention(q, k, v, mask=neighbours([[0, 1], [2, 1], [1, 0]]))[:, :, 2].any()


def test_loops_let_a_node_look_at_itself():
    q, k, _ = tensors(1, 1, 3)
    seen = saccade.weights(q, k, mask=neighbours([[0, 1], [1, 2]], loops=True))
    assert (seen > 0).int()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize("joined", ["&", "|", "~"])
def test_joined_with_others(joined):
    edges = batch(rows=2, nodes=7)
    q, k, v = tensors(2, 2, 7)
    table, causal = edges.dense().unsqueeze(1), torch.ones(7, 7, dtype=torch.bool).tril()
    mask, wanted = {
        "&": (neighbours(edges) & saccade.causal, table & causal),
        "|": (neighbours(edges) | saccade.causal, table | causal),
        "~": (~neighbours(edges) & saccade.causal, ~table & causal),
    }[joined]
    found = saccade.attention(q, k, v, mask=mask)
    torch.testing.assert_close(found, saccade.attention(q, k, v, mask=wanted, kernel="plain"))


def test_the_spec_takes_its_edges_from_the_call():
    edges = batch(rows=2, nodes=7)
    layer = saccade.Attention(6, 2, mask="neighbours").double()
    x = torch.randn(2, 7, 6, dtype=torch.float64)
    table = saccade.Attention(6, 2).double()
    table.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x, edges=edges), table(x, mask=neighbours(edges)))
    assert repr(as_mask("neighbours(loops=True)")) == "neighbours(loops=True)"


def test_fewer_nodes_than_the_edges_name():
    q, k, v = tensors(1, 1, 3)
    with pytest.raises(SaccadeError, match="the edges are of 2 graphs of 7 nodes; this call has 1 of 3"):
        saccade.attention(q, k, v, mask=neighbours(batch(rows=2, nodes=7)))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: neighbours([[0, 1], "ab"]), "edges are pairs of nodes"),
        (lambda: neighbours([[0, 1]], loops=3), "loops is True or False; got 3"),
        (lambda: neighbours().along, "a bare 'neighbours' takes its edges from the batch"),
    ],
)
def test_what_is_no_mask(make, why):
    with pytest.raises(SaccadeError, match=why):
        make()
