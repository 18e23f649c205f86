"""The feed-forward by its formulas, and experts against the loop that says what they mean."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from texts import texts
from torch import Tensor, nn

import saccade
from saccade import ModelConfig, padding
from saccade.model.feed import GATED, PLAIN, Experts, FeedForward, balance

WIDTH, HIDDEN = 7, 13


def gelu_tanh(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_tanh": gelu_tanh,
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "swiglu": lambda x: x * torch.sigmoid(x),
    "geglu": lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))),
    "geglu_tanh": gelu_tanh,
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", PLAIN | GATED)
def test_formula(kind, bias):
    torch.manual_seed(0)
    feed = FeedForward(WIDTH, HIDDEN, kind, bias=bias).double()
    w = {name: value.detach() for name, value in feed.named_parameters()}
    x = torch.randn(2, 5, WIDTH, dtype=torch.float64)

    def linear(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{name}.weight"].T + (w[f"{name}.bias"] if bias else 0)

    inner = ACTIVATIONS[kind](linear("gate" if kind in GATED else "up", x))
    inner = inner * linear("up", x) if kind in GATED else inner
    torch.testing.assert_close(feed(x), linear("down", inner), rtol=1e-12, atol=1e-12)
    assert ("gate.weight" in w) == (kind in GATED)
    assert any("bias" in name for name in w) == bias


def test_dropout_only_while_training():
    feed, x = FeedForward(WIDTH, HIDDEN, dropout=0.5), torch.randn(2, 5, WIDTH)
    assert torch.equal(feed.eval()(x), feed(x))
    assert not torch.equal(feed.train()(x), feed(x))


def experts(count: int = 5, chosen: int = 2, capacity: float = 1.25, seed: int = 0) -> Experts:
    torch.manual_seed(seed)
    return Experts(lambda: FeedForward(WIDTH, HIDDEN), WIDTH, count, chosen, capacity).double()


def by_loop(layer: Experts, x: Tensor, room: float = math.inf) -> tuple[Tensor, int]:
    """What experts mean, token by token; and how many found no room."""
    tokens, taken, dropped = x.flatten(0, 1), [0] * len(layer.experts), 0
    output = [torch.zeros_like(token) for token in tokens]
    probabilities = [F.softmax(layer.router.weight @ token, 0) for token in tokens]
    ranked = [p.detach().argsort(descending=True).tolist()[: layer.chosen] for p in probabilities]
    for rank in range(layer.chosen):  # first choices of all before the second of any
        for n, token in enumerate(tokens):
            expert = ranked[n][rank]
            if taken[expert] >= room:
                dropped += 1
                continue
            taken[expert] += 1
            whole = sum(probabilities[n][e] for e in ranked[n]) if layer.chosen > 1 else 1.0
            output[n] = output[n] + probabilities[n][expert] / whole * layer.experts[expert](token)
    return torch.stack(output).view_as(x), dropped


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("chosen", [1, 2, 5])
def test_experts_are_the_loop(chosen, training):
    layer = experts(chosen=chosen, capacity=100.0).train(training)
    x = torch.randn(2, 11, WIDTH, dtype=torch.float64, requires_grad=True)
    ours, (theirs, dropped) = layer(x), by_loop(layer, x)
    assert dropped == 0
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    inputs, weight = [x, *layer.parameters()], torch.randn_like(x)
    a, b = (torch.autograd.grad(y, inputs, weight, materialize_grads=True) for y in (ours, theirs))
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    assert (a[1] != 0).any(), "the router learns"


@pytest.mark.parametrize(("chosen", "capacity"), [(1, 0.5), (1, 1.0), (2, 0.3), (2, 0.7), (2, 1.0), (3, 0.9)])
def test_capacity_drops_the_last_and_the_second_choices(chosen, capacity):
    layer = experts(chosen=chosen, capacity=capacity)
    x = torch.randn(3, 7, WIDTH, dtype=torch.float64)
    room = math.ceil(capacity * 21 * chosen / 5)
    theirs, dropped = by_loop(layer, x, room)
    assert dropped
    torch.testing.assert_close(layer(x), theirs, rtol=1e-10, atol=1e-10)


def test_a_token_without_room_passes_by():
    layer = experts(count=3, chosen=1, capacity=1.0)
    x = torch.randn(1, 1, WIDTH, dtype=torch.float64).expand(1, 7, WIDTH)  # all choose the same: room for 7 / 3
    output = layer(x)[0]
    assert (output[:3] != 0).all()
    assert (output[3:] == 0).all()
    assert (layer.eval()(x) != 0).all()


def test_room_is_rounded_up():
    for count, capacity, tokens, room in ((4, 1.5, 3, 2), (4, 1.25, 1, 1), (5, 0.1, 1, 1), (2, 1.0, 6, 3)):
        layer = experts(count=count, chosen=1, capacity=capacity)
        x = torch.randn(1, 1, WIDTH, dtype=torch.float64).expand(1, tokens, WIDTH)
        assert int((layer(x)[0] != 0).any(-1).sum()) == room


def test_in_use_no_token_depends_on_its_neighbours():
    layer = experts(capacity=0.2).eval()
    x = torch.randn(2, 11, WIDTH, dtype=torch.float64)
    alone = torch.stack([layer(token.view(1, 1, -1))[0, 0] for token in x.flatten(0, 1)]).view_as(x)
    torch.testing.assert_close(layer(x), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("training", [True, False])
def test_padding_visits_nobody(side, training):
    """It takes nobody's room, does not count for the balance, and what is broken in it stays there."""
    layer = experts(chosen=1, capacity=0.7).train(training)
    rows = [torch.randn(n, WIDTH, dtype=torch.float64) for n in (3, 11, 0, 7)]
    x = torch.full((4, 11, WIDTH), torch.nan, dtype=torch.float64)
    held = torch.arange(11) < torch.tensor([[3], [11], [0], [7]])
    held = held.flip(1) if side == "left" else held
    x[held] = torch.cat(rows)
    x.requires_grad_()
    lengths = torch.tensor([3, 11, 0, 7])
    with balance(layer) as found:
        ours = layer(x, padding(lengths, side=side))
        theirs = layer(torch.cat(rows).unsqueeze(0))
    torch.testing.assert_close(ours[held], theirs[0], rtol=0, atol=0)
    assert (ours[~held] == 0).all()
    assert found[0] == found[1]
    (gradient,) = torch.autograd.grad(ours.sum(), x)
    assert gradient.isfinite().all()
    assert (gradient[~held] == 0).all()


def test_a_model_tells_its_experts_of_padding():
    """Encoder and decoder: while training, tokens behind a row's end change nothing of what is said before it."""
    torch.manual_seed(0)
    config = ModelConfig(vocab=11, width=12, heads=3, encoder=2, decoder=2, experts=3, capacity=0.5)
    model, lengths = saccade.build(config).train(), torch.tensor([2, 7])
    source, target = torch.randint(11, (2, 7)), torch.randint(11, (2, 7))
    told = []
    for filler in (0, 5):
        a, b = (torch.where(torch.arange(7) < lengths[:, None], each, filler) for each in (source, target))
        told.append(model(texts(a, lengths), texts(b, lengths))[1])
    torch.testing.assert_close(told[0], told[1], rtol=0, atol=0)


@pytest.mark.parametrize("training", [True, False])
def test_empty_meta_and_half(training):
    layer = experts().train(training)
    with balance(layer) as found:
        assert layer(torch.zeros(0, 3, WIDTH, dtype=torch.float64)).shape == (0, 3, WIDTH)
    assert found == []
    assert layer.to("meta")(torch.empty(2, 3, WIDTH, dtype=torch.float64, device="meta")).shape == (2, 3, WIDTH)
    half, x = experts().to(torch.bfloat16).train(training), torch.randn(2, 3, WIDTH, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert half(x).dtype == torch.bfloat16


def test_balance_is_its_formula():
    layer = experts()
    x = torch.randn(2, 11, WIDTH, dtype=torch.float64)
    with balance(layer) as found:
        layer(x)
        layer(2 * x)
    for loss, tokens in zip(found, (x, 2 * x), strict=True):
        p = F.softmax(tokens.flatten(0, 1) @ layer.router.weight.T, -1)
        share = [float((p.argmax(-1) == e).sum()) / 22 for e in range(5)]
        torch.testing.assert_close(loss, 5 * sum(share[e] * p[:, e].mean() for e in range(5)))


def test_balance_is_one_when_even_and_more_when_not():
    layer = experts(count=7, chosen=1)
    with torch.no_grad():
        layer.router.weight.copy_(torch.eye(7))
    even, uneven = (
        3 * torch.eye(7, dtype=torch.float64).unsqueeze(0),
        torch.eye(7, dtype=torch.float64)[:1].view(1, 1, 7),
    )
    with balance(layer) as found:
        layer(even)
        layer(3 * uneven)
    torch.testing.assert_close(found[0], torch.tensor(1.0, dtype=torch.float64))
    e = math.exp(3)
    torch.testing.assert_close(found[1], torch.tensor(7 * e / (e + 6), dtype=torch.float64))


def test_balance_reaches_the_router_and_leaves_nothing_behind():
    layer, x = experts(), torch.randn(2, 11, WIDTH, dtype=torch.float64)
    before = set(vars(layer))
    with balance(layer) as outer:
        with balance(nn.Sequential(layer)) as inner:
            output = layer(x)
        layer(x)
    assert (len(outer), len(inner)) == (2, 1)
    layer(x)
    assert len(outer) == 2
    assert set(vars(layer)) == before
    assert torch.equal(output, layer(x)), "to listen changes nothing"
    inner[0].backward()
    assert (layer.router.weight.grad != 0).any()
    assert all(each.grad is None for expert in layer.experts for each in expert.parameters())
    with pytest.raises(RuntimeError, match="stop"), balance(layer):
        raise RuntimeError("stop")
    assert set(vars(layer)) == before


@pytest.mark.parametrize("chosen", [1, 2])
def test_a_model_with_experts_learns(chosen):
    torch.manual_seed(0)
    config = ModelConfig(vocab=11, width=12, heads=3, decoder=2, experts=3, chosen=chosen, head="vocabulary")
    model, tokens = saccade.build(config), torch.randint(11, (5, 7))
    routers = [block.feed.router.weight for block in model.decoder.blocks]
    before = [router.detach().clone() for router in routers]
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(20):
        with balance(model) as found:
            loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        assert len(found) == 2
        optimiser.zero_grad()
        (loss + 0.01 * torch.stack(found).mean()).backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert all(not torch.equal(a, b) for a, b in zip(routers, before, strict=True))
