"""Pairs: ESMFold's trunk as an outside oracle, and the laws: padded = alone, relabelled, symmetric, watched."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.attend.mask import padding
from saccade.config import read
from saccade.model.block import Block
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.pairs import OuterProduct, PairLayer
from saccade.model.triangle import TriangleAttention, TriangleMultiplication
from saccade.zoo.size import size

C, P, H, T = 15, 12, 3, 7  # the width of states and of pairs, heads, positions
LENGTHS = torch.tensor([7, 4])


def random(module: nn.Module) -> nn.Module:
    """In float64 with all weights random, norms and biases included."""
    torch.manual_seed(0)
    for weight in module.double().parameters():
        nn.init.normal_(weight, std=0.4)
    return module.eval()


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def take(ours: nn.Linear, theirs: nn.Linear) -> None:
    """Their weights in ours; a bias that they do not have is 0."""
    ours.weight.data.copy_(theirs.weight)
    if ours.bias is not None:
        ours.bias.data.copy_(torch.zeros_like(ours.bias) if theirs.bias is None else theirs.bias)


def take_multiplication(ours: TriangleMultiplication, theirs: nn.Module) -> None:
    names = {"left": "linear_a_p", "left_gate": "linear_a_g", "right": "linear_b_p", "right_gate": "linear_b_g"}
    for name, other in {**names, "out": "linear_z", "gate": "linear_g", "out_norm": "layer_norm_out"}.items():
        take(getattr(ours, name), getattr(theirs, other))


def take_attention(ours: TriangleAttention, theirs: nn.Module) -> None:
    for name, letter in {"query": "q", "key": "k", "value": "v", "out": "o", "gate": "g"}.items():
        take(getattr(ours.attention, name), getattr(theirs.mha, f"linear_{letter}"))
    take(ours.bias, theirs.linear)


def same(ours: Tensor, theirs: Tensor, inputs: list[Tensor]) -> None:
    """Equal values, and equal gradients of the inputs."""
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    weight = torch.randn_like(ours)
    mine, yours = (torch.autograd.grad(each, inputs, weight, retain_graph=True) for each in (ours, theirs))
    for one, other in zip(mine, yours, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def esm():
    return pytest.importorskip("transformers.models.esm.modeling_esmfold")


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("incoming", [False, True])
def test_triangle_multiplication_is_that_of_esmfold(esm, incoming, padded):
    theirs = random(esm.EsmFoldTriangleMultiplicativeUpdate(SimpleNamespace(pairwise_state_dim=P), not incoming))
    ours, z = TriangleMultiplication(P, incoming=incoming).double(), numbers(2, T, T, P)
    take_multiplication(ours, theirs)
    real = torch.arange(T) < LENGTHS.view(-1, 1)
    table = (real.unsqueeze(2) & real.unsqueeze(1)).double() if padded else None
    same(ours(theirs.layer_norm_in(z), real if padded else None), theirs(z, table), [z])


def test_triangle_multiplication_is_its_sum():
    """y_ij = sigmoid(W_g z_ij) W norm(sum_k a_ik b_jk), by loops."""
    ours, z = random(TriangleMultiplication(P)), numbers(1, 5, 5, P)
    a, b = (
        torch.sigmoid(gate(z)) * value(z)
        for gate, value in ((ours.left_gate, ours.left), (ours.right_gate, ours.right))
    )
    for i, j in ((0, 3), (4, 1), (2, 2)):
        total = sum(a[0, i, k] * b[0, j, k] for k in range(5))
        wanted = torch.sigmoid(ours.gate(z[0, i, j])) * ours.out(ours.out_norm(total))
        torch.testing.assert_close(ours(z)[0, i, j], wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("ending", [False, True])
def test_triangle_attention_is_that_of_esmfold(esm, ending, padded):
    theirs = random(esm.EsmFoldTriangleAttention(P, P // H, H, starting=not ending))
    ours, z = TriangleAttention(P, H, ending=ending).double(), numbers(2, T, T, P)
    take_attention(ours, theirs)
    real = torch.arange(T) < LENGTHS.view(-1, 1)
    table = (real.unsqueeze(2) & real.unsqueeze(1)).double() if padded else None
    found, wanted = ours(theirs.layer_norm(z), padding(LENGTHS) if padded else None), theirs(z, table)
    if padded:  # beyond the end theirs looks at everything, ours at what is real
        found, wanted = (each * table.unsqueeze(3) for each in (found, wanted))
    same(found, wanted, [z])


@pytest.mark.parametrize("padded", [False, True])
def test_a_layer_is_a_block_of_esmfold(esm, padded):
    """The biased, gated attention, the outer product, all triangles and both feed-forward parts, in their order."""
    sizes = {"sequence_state_dim": C, "sequence_head_width": C // H, "pairwise_state_dim": P}
    theirs = random(
        esm.EsmFoldTriangularSelfAttentionBlock(SimpleNamespace(**sizes, pairwise_head_width=P // H, dropout=0))
    )
    updates = f"outer outgoing incoming starting({H}) ending({H}) feed"
    config = read(ModelConfig, {"width": C, "heads": H, "encoder": 1, "feed": "relu", "gate": True, "pair": P,
                                "pair_updates": updates})  # fmt: skip
    block, layer = Block(config).double().eval(), PairLayer(config).double().eval()
    attention, projections = theirs.seq_attention, ("query", "key", "value")
    stacked = attention.proj.weight.view(H, 3, C // H, C)  # of each head its queries, keys and values
    for number, name in enumerate(projections):
        getattr(block.attention, name).weight.data.copy_(stacked[:, number].reshape(C, C))
    take(block.attention.out, attention.o_proj)
    take(block.attention.gate, attention.g_proj)
    take(block.attention_norm, theirs.layernorm_1)
    for ours, other in ((block, theirs.mlp_seq), (layer.updates[5], theirs.mlp_pair)):
        norm = ours.feed_norm if ours is block else ours.norm
        for mine, yours in ((norm, other.mlp[0]), (ours.feed.up, other.mlp[1]), (ours.feed.down, other.mlp[3])):
            take(mine, yours)
    take(layer.norm, theirs.pair_to_sequence.layernorm)
    take(layer.toward, theirs.pair_to_sequence.linear)
    outer, two = layer.updates[0].product, theirs.sequence_to_pair
    for mine, yours in ((outer.norm, two.layernorm), (outer.both, two.proj), (outer.out, two.o_proj)):
        take(mine, yours)
    for number, name in ((1, "tri_mul_out"), (2, "tri_mul_in")):
        take_multiplication(layer.updates[number].triangle, getattr(theirs, name))
        take(layer.updates[number].norm, getattr(theirs, name).layer_norm_in)
    for number, name in ((3, "tri_att_start"), (4, "tri_att_end")):
        take_attention(layer.updates[number].triangle, getattr(theirs, name))
        take(layer.updates[number].norm, getattr(theirs, name).layer_norm)

    x, z = numbers(2, T, C), numbers(2, T, T, P)
    real = torch.arange(T) < LENGTHS.view(-1, 1) if padded else torch.ones(2, T, dtype=torch.bool)
    hidden = padding(LENGTHS) if padded else None
    states = block(x, mask=hidden, bias=layer.bias(z))
    pairs = layer(z, states, hidden, real if padded else None)
    wanted, tables = theirs(x, z, mask=real.double() if padded else None)
    square = (real.unsqueeze(2) & real.unsqueeze(1)).unsqueeze(3)
    same(states * real.unsqueeze(2), wanted * real.unsqueeze(2), [x, z])
    same(pairs * square, tables * square, [x, z])


def test_the_outer_product_is_its_formula():
    ours, x = random(OuterProduct(C, P)), numbers(2, T, C)
    q, k = ours.both(ours.norm(x)).chunk(2, 2)
    i, j = 5, 2
    wanted = ours.out(torch.cat((q[1, j] * k[1, i], q[1, j] - k[1, i])))
    torch.testing.assert_close(ours(x)[1, i, j], wanted, rtol=1e-12, atol=1e-12)


def model(**changes) -> Model:
    config = {"width": 12, "heads": 3, "encoder": 2, "pair": 8, "embed": "pairs(1)", "head": "pairs(1)", **changes}
    made = Model(read(ModelConfig, config))
    assert isinstance(random(made), Model)
    return made


def graph(count: int = T, rows: int = 2) -> Input:
    """Complete at a third, with weights both ways."""
    torch.manual_seed(1)
    one, other = torch.triu_indices(count, count, 1)
    edges, weights = [], []
    for _ in range(rows):
        picked = torch.randperm(len(one))[: len(one) // 3]
        pairs = torch.stack((one[picked], other[picked]), 1)
        edges.append(torch.cat((pairs, pairs.flip(1))))
        weights.append(torch.rand(len(picked), dtype=torch.float64).repeat(2) * 5)
    features = torch.ones(rows, count, 1, dtype=torch.float64)
    return Input({"features": features, "edges": torch.stack(edges), "weights": torch.stack(weights)})


@pytest.mark.parametrize("updates", ["outer outgoing incoming starting(2) ending(2) feed(3)", "none"])
def test_relabelled_nodes_get_relabelled_pairs(updates):
    ours, x, order = model(pair_updates=updates), graph(), torch.randperm(T)
    where = torch.argsort(order)  # node n stands at where[n] afterwards
    turned = Input({**x.values, "edges": where[x.values["edges"]]})
    found, wanted = ours(turned), ours(x)[:, order][:, :, order]
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    assert not torch.allclose(found, ours(x)), "another order is another answer, or nothing was tested"


@pytest.mark.parametrize("mask", [None, "neighbours(loops=True)"])
def test_features_of_edges_bias_attention(mask):
    """A graph transformer that knows of what kind its edges are: relabelled as well, and of each feature."""
    ours = model(embed="pairs(edge_features=2)", pair_updates="none", mask=mask)
    x, order = graph(), torch.randperm(T)
    kinds = torch.randn(*x.values["edges"].shape[:2], 2, dtype=torch.float64)
    given = {**x.values, "edge_features": kinds}
    turned = ours(Input({**given, "edges": torch.argsort(order)[given["edges"]]}))
    torch.testing.assert_close(turned, ours(Input(given))[:, order][:, :, order], rtol=1e-10, atol=1e-10)
    for feature in range(2):
        other = kinds.clone()
        other[:, 0, feature] += 1.0
        assert not torch.allclose(ours(Input({**given, "edge_features": other})), ours(Input(given)))
    with pytest.raises(SaccadeError, match="edge_features"):
        ours(x)


@pytest.mark.parametrize("symmetric", [True, False])
def test_numbers_of_pairs_are_alike_both_ways_where_they_should(symmetric):
    found = model(head=f"pairs(1, {symmetric})")(graph())
    assert torch.equal(found, found.transpose(1, 2)) == symmetric


@pytest.mark.parametrize("updates", ["outer outgoing incoming starting(2) ending(2) feed", "none"])
def test_padded_pairs_are_those_alone(updates):
    """Nodes and edges of padding, even where they hold NaN's neighbours, change nothing."""
    ours, short = model(pair_updates=updates), graph(4, 1).values
    features = torch.cat((short["features"], torch.full((1, 3, 1), 9.0, dtype=torch.float64)), 1)
    edges = torch.cat((short["edges"], torch.zeros(1, 5, 2, dtype=torch.long)), 1)
    weights = torch.cat((short["weights"], torch.full((1, 5), 7.0, dtype=torch.float64)), 1)
    count = torch.tensor([short["edges"].shape[1]])
    padded = Input({"features": features, "edges": edges, "weights": weights, "edge_counts": count}, [4])
    torch.testing.assert_close(ours(padded)[:, :4, :4], ours(Input(short)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("side", ["right", "left"])
def test_any_encoder_may_have_pairs(side):
    """Of a text, padded on either side."""
    ours = model(embed="tokens", vocab=11, head="tags(3)", position="rotary")
    alone = torch.tensor([[3, 5, 7, 2]])
    rest = torch.zeros(1, 3, dtype=torch.long)
    tokens = torch.cat((alone, rest) if side == "right" else (rest, alone), 1)
    found = ours(Input({"tokens": tokens}, [4], side=side))
    found = found[:, :4] if side == "right" else found[:, 3:]
    torch.testing.assert_close(found, ours(alone), rtol=1e-10, atol=1e-10)
    without = model(embed="tokens", vocab=11, head="tags(3)", position="rotary", pair=0)
    assert len(list(ours.parameters())) > len(list(without.parameters()))


def test_gradients_reach_every_weight_of_pairs():
    ours = model()
    ours(graph()).square().sum().backward()
    for name, weight in ours.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.any() or name.endswith("attention.key.bias"), name  # which no softmax notices


def test_watching_changes_nothing_and_sees_the_bias():
    ours, x = model(), graph()
    with saccade.watch(ours) as seen:
        watched = ours(x)
    assert torch.equal(watched, ours(x))
    name = "encoder.blocks.0.attention"
    weights = seen.weights(name)
    assert weights.shape == (2, 3, T, T)
    ours.encoder.pairs.layers[0].toward.weight.data.zero_()
    with saccade.watch(ours) as unbiased:
        ours(x)
    assert not torch.allclose(unbiased.weights(name), weights)


def test_pairs_without_edges_are_finite():
    x = graph()
    empty = {"edges": x.values["edges"][:, :0], "weights": x.values["weights"][:, :0]}
    assert model()(Input({**x.values, **empty})).isfinite().all()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"encoder": 0, "decoder": 2}, "give an encoder"),
        ({"encoder": [1, 1]}, "stages merge"),
        ({"summary": "linformer(4, 16)"}, "summary"),
        ({"streams": 2}, "streams = 2"),
        ({"mixer": "gru(both=True)"}, "leave out the encoder's mixer"),
    ],
)
def test_what_pairs_do_not_go_with(changes, why):
    with pytest.raises(SaccadeError, match=why):
        read(ModelConfig, {"width": 12, "heads": 3, "encoder": 2, "pair": 8, "vocab": 11, **changes})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pair": 0}, "model.pair = 32"),
        ({"pair_updates": "outgoin"}, "outgoing"),
        ({"pair_updates": "starting(3)"}, "3 heads do not divide the width 8 of a pair"),
        ({"class_tokens": 1}, "leave out class_tokens"),
    ],
)
def test_models_that_pairs_refuse(changes, why):
    with pytest.raises(SaccadeError, match=why):
        model(**changes)(graph())


def test_a_gated_decoder_writes_as_it_reads():
    """With a cache, and by the search's fast path, which leaves gates to the layer."""
    torch.manual_seed(0)
    config = read(ModelConfig, {"width": 12, "heads": 3, "decoder": 2, "vocab": 11, "gate": True, "head": "vocabulary"})
    ours = random(saccade.build(config))
    tokens, state = torch.randint(11, (2, 5)), ours.start()
    with torch.no_grad():
        steps = [ours.decode_step(tokens[:, n : n + 1], state) for n in range(5)]
        torch.testing.assert_close(torch.cat(steps, 1), ours(tokens), rtol=1e-10, atol=1e-10)
        said = [1, 2]
        for _ in range(4):
            said.append(int(ours(torch.tensor([said]))[0, -1].argmax()))
    (written,) = saccade.generate(ours, [[1, 2]], max_tokens=4)
    assert [1, 2, *written.tokens] == said


def test_the_size_counts_pairs():
    """FLOPs and activations of pairs grow with the square of the length."""
    tokens = {"embed": "tokens", "vocab": 11, "head": "tags(3)", "width": 6, "hidden": 6}
    few, many = (size(model(**tokens).config, length=length) for length in (16, 64))
    bare = size(model(**tokens, pair_updates="none").config, length=64)
    for key in ("flops_forward", "bytes_activations"):
        assert few[key] * 12 < many[key] < few[key] * 64, "between the length's square and cube"
        assert bare[key] * 2 < many[key]
