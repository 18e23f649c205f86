"""Layers for sets: what the order does not change, what padding does not, and the papers' formulas."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import saccade
from saccade.config import ModelConfig
from saccade.model.ask import Asking, Induced, SeedPool
from saccade.model.deepset import DeepSet
from saccade.model.head import make_head
from saccade.model.parts import EncoderOutput, Parts
from saccade.model.pool import Pool

B, T, C, HEADS, HIDDEN, M = 3, 11, 12, 2, 17, 5
LENGTHS = torch.tensor([11, 4, 1])
MIXERS = ["deepset(max)", "deepset(mean, relu)", "deepset(sum)", "induced(5)", "attention"]
POOLS = ["mean", "max", "sum", "attention", "seeds(1)"]


def config(**keys):
    return ModelConfig(
        **{"width": C, "heads": HEADS, "hidden": HIDDEN, "encoder": 2, "embed": "points(3, 2, 4)", **keys}
    )


def model(**keys):
    torch.manual_seed(0)
    return saccade.Model(config(**keys)).double().eval()


def points(count=T):
    return torch.rand(B, count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_states_follow_their_points(mixer, order):
    """Equivariance: whoever reorders the set reorders the states."""
    net, x, new = model(mixer=mixer, order=order), points(), torch.randperm(T)
    states = net.encode({"x": saccade.Input({"points": x})}["x"])
    assert torch.allclose(net.encode(saccade.Input({"points": x[:, new]})), states[:, new], atol=1e-12)
    assert (states[:, 0] - states[:, 1]).abs().max() > 1e-3, "points have states of their own"


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_set_has_no_order(mixer, pool):
    """Invariance of what is told of a set; and it depends on every point."""
    net, x = model(mixer=mixer, pool=pool, head="label(7)"), points()
    said = net(saccade.Input({"points": x}))
    assert torch.allclose(net(saccade.Input({"points": x[:, torch.randperm(T)]})), said, atol=1e-12)
    x[:, 3] += 0.5
    assert (net(saccade.Input({"points": x})) - said).abs().max() > 1e-9


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("mixer", MIXERS)
def test_sets_of_several_sizes_are_as_if_alone(mixer, pool, order):
    """Also their gradients, and whatever stands behind their ends."""
    net, x = model(mixer=mixer, pool=pool, order=order, head="label(7)"), points().requires_grad_()
    garbage = x + 1e3 * (torch.arange(T) >= LENGTHS[:, None])[..., None]
    together = net(saccade.Input({"points": garbage}, LENGTHS))
    (given,) = torch.autograd.grad(together.square().sum(), x)
    for row, length in enumerate(LENGTHS.tolist()):
        own = x[row : row + 1, :length].detach().requires_grad_()
        alone = net(saccade.Input({"points": own}))
        assert torch.allclose(alone[0], together[row], atol=1e-12)
        (wanted,) = torch.autograd.grad(alone.square().sum(), own)
        assert torch.allclose(given[row, :length], wanted[0], atol=1e-12)
        assert not given[row, length:].any()


def test_left_padding_is_right_padding():
    x = torch.rand(B, T, C, dtype=torch.float64)
    for gather in ("max", "mean", "sum"):
        layer = DeepSet(C, gather).double()
        left = torch.stack([row.roll(T - length, 0) for row, length in zip(x, LENGTHS.tolist(), strict=True)])
        here, there = layer(x, mask=saccade.padding(LENGTHS)), layer(left, mask=saccade.padding(LENGTHS, "left"))
        for row, length in enumerate(LENGTHS.tolist()):
            assert torch.allclose(here[row, :length], there[row, T - length :], atol=1e-12)


@pytest.mark.parametrize(
    ("gather", "common"),
    [("max", lambda x: x.max(1).values), ("mean", lambda x: x.mean(1)), ("sum", lambda x: x.sum(1))],
)
def test_deepsets_formula(gather, common):
    """s(W x_i + V pool_j x_j + b), as a loop over the points."""
    layer, x = DeepSet(C, gather, "relu").double(), torch.randn(B, T, C, dtype=torch.float64)
    W, b, V = layer.own.weight, layer.own.bias, layer.shared.weight
    wanted = torch.stack([torch.relu(x[:, i] @ W.T + common(x) @ V.T + b) for i in range(T)], 1)
    assert torch.allclose(layer(x), wanted, atol=1e-12)


def test_deepsets_of_nothing_are_zeros_in_common():
    layer, x = DeepSet(C, "max").double(), torch.randn(2, 3, C, dtype=torch.float64, requires_grad=True)
    said = layer(x, mask=saccade.padding(torch.tensor([0, 2])))
    (given,) = torch.autograd.grad(said.sum(), x)
    assert torch.isfinite(said).all()
    assert not given[0].isnan().any()


def peer(attention):
    """torch's layer with the weights of one of ours."""
    made = nn.MultiheadAttention(C, HEADS, batch_first=True).double()
    parts = (attention.query, attention.key, attention.value)
    made.in_proj_weight.data = torch.cat([each.weight for each in parts])
    made.in_proj_bias.data = torch.cat([each.bias for each in parts])
    made.out_proj.load_state_dict(attention.out.state_dict())
    return made


def mab(ask, x, y, hidden=None):
    """Lee et al. 2019, with torch's attention: H = LN(X + Multihead(X, Y, Y)), LN(H + rFF(H))."""
    found = ask.attention_norm(x + peer(ask.attention)(x, y, y, key_padding_mask=hidden, need_weights=False)[0])
    feed = ask.feed
    return ask.feed_norm(found + feed.down(torch.relu(feed.up(found))))


def parts(**keys):
    made = config(order="post", feed="relu", **keys)
    return Parts(made, source=EncoderOutput(C, "mean"))


HIDDEN_KEYS = torch.arange(T) >= LENGTHS[:, None]


def test_a_block_that_asks_is_the_papers():
    ask, x, y = Asking(parts()).double(), *(torch.randn(B, n, C, dtype=torch.float64) for n in (7, T))
    assert torch.allclose(ask(x, y, saccade.padding(LENGTHS)), mab(ask, x, y, HIDDEN_KEYS), atol=1e-12)


def test_induced_points_are_the_papers():
    """ISAB(X) = MAB(X, MAB(I, X)); the outer one is the block around the mixer."""
    net = saccade.Model(config(mixer=f"induced({M})", order="post", feed="relu", encoder=1)).double().eval()
    block, x = net.encoder.blocks[0], torch.randn(B, T, C, dtype=torch.float64)
    mixer = block.mixer
    assert isinstance(mixer, Induced)
    found = mab(mixer.ask, mixer.points.expand(B, -1, -1), x, HIDDEN_KEYS)
    H = block.mixer_norm(x + peer(mixer.attention)(x, found, found, need_weights=False)[0])
    wanted = block.feed_norm(H + block.feed.down(torch.relu(block.feed.up(H))))
    assert torch.allclose(block(x, mask=saccade.padding(LENGTHS)), wanted, atol=1e-12)


@pytest.mark.parametrize("seeds", [1, 4])
def test_seeds_are_the_papers(seeds):
    """PMA_k(X) = MAB(S, X), and among several SAB(Z) = MAB(Z, Z)."""
    pool, x = SeedPool(parts(), seeds).double(), torch.randn(B, T, C, dtype=torch.float64)
    wanted = mab(pool.ask, pool.vectors.expand(B, -1, -1), x, HIDDEN_KEYS)
    wanted = wanted.squeeze(1) if seeds == 1 else mab(pool.among, wanted, wanted)
    said = pool(x, saccade.padding(LENGTHS))
    assert said.shape == ((B, C) if seeds == 1 else (B, seeds, C))
    assert torch.allclose(said, wanted, atol=1e-12)


def test_pools_of_a_set():
    x = torch.randn(B, T, C, dtype=torch.float64)
    for row, length in enumerate(LENGTHS.tolist()):
        own = x[row, :length]
        assert torch.equal(Pool("max", C)(x, saccade.padding(LENGTHS))[row], own.max(0).values)
        assert torch.allclose(Pool("sum", C)(x, saccade.padding(LENGTHS))[row], own.sum(0), atol=1e-12)


def test_points_become_vectors():
    """W [x; sin(2^n pi c); cos(2^n pi c)] + b, with the waves of each coordinate in a row."""
    part, x = model().embed.part, points()
    waves = [f(2**n * torch.pi * x[..., c]) for f in (torch.sin, torch.cos) for c in (0, 1) for n in range(4)]
    wanted = torch.cat([x, torch.stack(waves, 2)], 2) @ part.out.weight.T + part.out.bias
    assert torch.allclose(part({"points": x}), wanted, atol=1e-12)


def test_a_mixture_is_told_by_as_many_seeds_or_by_one_state():
    for keys, width in (({"pool": "seeds(4)"}, 5), ({"pool": "mean"}, 20)):
        net = model(head="mixture(4, 2)", **keys)
        assert net.head.out.out_features == width
        assert net(saccade.Input({"points": points()})).shape == (B, 4, 5)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"pool": "seeds(3)", "head": "label(7)"}, "'label' reads one vector"),
        ({"pool": "seeds(3)", "head": "mixture(4, 2)"}, "by 4 seeds, or by one state"),
        ({"mixer": "deepset(median)"}, "nothing gathers by 'median'"),
        ({"mixer": "induced(0)"}, "points is a whole number from 1"),
        ({"mixer": "induced(5)", "order": "parallel"}, "order = 'pre' or 'post'"),
        ({"embed": "points(3, 0, 2)"}, "set x.NAME.coordinates"),
        ({"embed": "points(3, 4)"}, "coordinates one from 0 to features"),
    ],
)
def test_what_cannot_be_made(keys, told):
    with pytest.raises(saccade.SaccadeError, match=told):
        saccade.Model(config(**keys))


@pytest.mark.parametrize("pool", ["seeds", "seeds(0)", "median"])
def test_a_pool_that_is_none(pool):
    with pytest.raises(ValueError, match="is no pool: write auto, first"):
        config(pool=pool)


@pytest.mark.parametrize("mixer", ["deepset", "induced"])
def test_a_decoder_has_an_order(mixer):
    with pytest.raises(saccade.SaccadeError, match="an encoder's mixer alone"):
        saccade.Model(ModelConfig(vocab=13, width=C, heads=HEADS, decoder=1, mixer=mixer))


def test_a_head_of_several_seeds_is_made_for_them():
    assert make_head("mixture(4, 3)", config(pool="seeds(4)")).shape == (4, 7)


def test_what_learned_vectors_looked_at_is_shown():
    net = model(mixer="induced(5)", pool="seeds(4)", head="mixture(4, 2)")
    with saccade.watch(net) as seen:
        net(saccade.Input({"points": points()}))
    shapes = {name: tuple(seen.weights(name).shape[2:]) for name in seen.layers}
    assert shapes["encoder.blocks.0.mixer.ask.attention"] == (5, T)
    assert shapes["encoder.blocks.0.mixer.attention"] == (T, 5)
    assert shapes["pooling.seeds.ask.attention"] == (4, T)
    assert shapes["pooling.seeds.among.attention"] == (4, 4)
