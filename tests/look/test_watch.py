"""Watching changes nothing, and what it shows is exact."""

from __future__ import annotations

import pytest
import torch
from kernels import EXACT
from torch import Tensor, nn

import saccade
from saccade.attend import plain
from saccade.attend.seen import Log
from saccade.look.watch import twin


class Block(nn.Module):
    """Nested: one layer used twice, and a cross-attention."""

    def __init__(self, **options) -> None:
        super().__init__()
        self.own = saccade.Attention(24, 6, kv_heads=2, mask="causal", **options)
        self.cross = nn.ModuleDict({"source": saccade.Attention(24, 3, context_width=7)})

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        x = x + self.own(x)
        x = x + self.cross["source"](x, context, mask=saccade.padding([3, 5]))
        return x + self.own(x)


def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(2, 11, 24), torch.randn(2, 5, 7)


@pytest.mark.parametrize("kernel", EXACT)
def test_watched_is_unwatched_bit_for_bit(kernel):
    model = Block(kernel=kernel)
    plain = model(*inputs())
    plain.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with saccade.watch(model) as seen:
        watched = model(*inputs())
    watched.sum().backward()
    assert torch.equal(plain, watched)
    assert all(torch.equal(a, p.grad) for a, p in zip(gradients, model.parameters(), strict=True))
    assert seen.layers == ["own", "cross.source"]
    assert [seen.calls(name) for name in seen.layers] == [2, 1]


def test_weights_are_exact_for_each_call():
    model = Block(position="rotary").double().eval()
    x, context = (each.double() for each in inputs())
    with saccade.watch(model) as seen, torch.no_grad():
        model(x, context)
    kept = []
    hook = model.own.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
    with torch.no_grad():
        model(x, context)
    hook.remove()
    for call, each in enumerate(kept):
        q = model.own.position.on_heads(model.own.query(each).view(2, 11, 6, 4).transpose(1, 2), torch.arange(11)[None])
        k = model.own.position.on_heads(model.own.key(each).view(2, 11, 2, 4).transpose(1, 2), torch.arange(11)[None])
        expected = saccade.weights(q, k, mask="causal")
        found = seen.weights("own", call=call)
        assert found.shape == (2, 6, 11, 11)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(seen.weights("own", head=2, call=call), found[:, 2])
        torch.testing.assert_close(seen.weights("own", rows=[3, -1], call=call), found[:, :, [3, 10]])
        torch.testing.assert_close(seen.weights("own", head=-1, rows=slice(2, 9, 3), call=call), found[:, 5, 2:9:3])
        torch.testing.assert_close(seen.weights("own", rows=4, call=call), found[:, :, 4:5])
        torch.testing.assert_close(seen.weights("own", rows=torch.tensor(4), call=call), found[:, :, 4:5])
        late = torch.arange(11) > 7
        for rows in (late, late.numpy(), torch.arange(8, 11), [8, 9, 10]):
            torch.testing.assert_close(seen.weights("own", rows=rows, call=call), found[:, :, 8:])
    torch.testing.assert_close(seen.weights("own"), seen.weights("own", call=1))
    cross = seen.weights("cross.source")
    assert cross.shape == (2, 3, 11, 5)
    assert (cross[0, :, :, 3:] == 0).all()
    torch.testing.assert_close(cross.sum(-1), torch.ones(2, 3, 11, dtype=torch.float64))


def test_nothing_is_left_behind():
    model = Block()
    attributes = {name: set(vars(each)) for name, each in model.named_modules()}
    with pytest.raises(saccade.SaccadeError, match="got"), saccade.watch(model):
        model(inputs()[1], inputs()[0])
    assert {name: set(vars(each)) for name, each in model.named_modules()} == attributes
    with saccade.watch(model) as outer:
        with saccade.watch(model, layers=["own"]) as inner:
            model(*inputs())
        model(*inputs())
    assert (outer.calls("own"), inner.calls("own"), inner.layers) == (4, 2, ["own"])
    assert {name: set(vars(each)) for name, each in model.named_modules()} == attributes


def test_a_twin_is_watched_by_nobody():
    model = Block()
    with saccade.watch(model) as seen:
        other = twin(model)
        with saccade.watch(other) as own:
            other(*inputs())
        other(*inputs())
        model(*inputs())
    assert (seen.calls("own"), own.calls("own")) == (2, 2)
    assert not any("watchers" in vars(each) for each in other.modules())


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.proof
def test_compiled_blocks_are_watched(fullgraph):
    torch._dynamo.reset()
    model = Block()
    compiled = torch.compile(model, backend="eager", fullgraph=fullgraph)
    with torch.no_grad():
        before = compiled(*inputs())
        with saccade.watch(compiled) as seen:
            during = compiled(*inputs())
        with saccade.watch(model) as plain:
            model(*inputs())
        after = compiled(*inputs())
    assert torch.equal(before, during)
    assert torch.equal(before, after)
    assert seen.layers == ["own", "cross.source"]
    assert seen.calls("own") == 2
    torch.testing.assert_close(seen.weights("own"), plain.weights("own"))
    torch.testing.assert_close(seen.weights("cross.source"), plain.weights("cross.source"))


def test_compiled_parts_of_a_model_are_watched():
    torch._dynamo.reset()
    model = nn.Sequential(torch.compile(saccade.Attention(24, 3), backend="eager"), saccade.Attention(24, 2))
    with saccade.watch(model) as seen:
        model(inputs()[0])
    assert seen.layers == ["0", "1"]
    assert seen.weights("0").shape == (2, 3, 11, 11)


def test_what_was_seen_survives_the_cache():
    layer = saccade.Attention(24, 6, kv_heads=2, mask="causal", position="rotary").double()
    x = inputs()[0].double()
    cache = saccade.Cache()
    with torch.no_grad(), saccade.watch(layer) as seen:
        layer(x[:, :6], cache=cache)
        expected = [seen.weights("attention")]
        layer(x[:, 6:7], cache=cache)
        expected.append(seen.weights("attention"))
        cache.rewind(4)
        layer(x[:, 8:], cache=cache)
        cache.reorder(torch.tensor([1, 0]))
        layer(x[:, :1], cache=cache)
    for call, weights in enumerate(expected):
        assert torch.equal(seen.weights("attention", call=call), weights)
    assert expected[1].shape == (2, 6, 1, 7)


@pytest.mark.parametrize("options", [{"score": "additive"}, {"score": "bilinear"}, {"position": "t5(8, 16)"}])
def test_changed_parameters_are_noticed(options):
    layer = saccade.Attention(24, 6, **options)
    with saccade.watch(layer) as seen:
        loss = layer(inputs()[0]).square().sum()
    before = seen.weights("attention")
    loss.backward()
    assert torch.equal(before, seen.weights("attention"))
    torch.optim.SGD(layer.parameters(), 0.1).step()
    with pytest.raises(saccade.SaccadeError, match="have changed since it was watched"):
        seen.weights("attention")


def test_dropout_is_left_out():
    layer = saccade.Attention(24, 6, dropout=0.5)
    with saccade.watch(layer) as seen:
        layer(inputs()[0])
    torch.testing.assert_close(seen.weights("attention").sum(-1), torch.ones(2, 6, 11))


def test_bad_questions():
    model = Block()
    with pytest.raises(saccade.SaccadeError, match=r"no saccade\.Attention layer"), saccade.watch(nn.Linear(2, 3)):
        pass
    with (
        pytest.raises(saccade.SaccadeError, match=r"did you mean 'cross\.source'"),
        saccade.watch(model, ["cross.sorce"]),
    ):
        pass
    with saccade.watch(model) as seen:
        with pytest.raises(saccade.SaccadeError, match="was not called"):
            seen.weights("own")
        model(*inputs())
    for call, why in (
        (lambda: seen.weights("owm"), "did you mean 'own'"),
        (lambda: seen.weights("own", head=6), "head 6 does not exist: 'own' has 6"),
        (lambda: seen.weights("own", rows=[11]), "row 11 does not exist: there are 11"),
        (lambda: seen.weights("own", call=2), "call 2 does not exist: 'own' was called 2"),
        (lambda: seen.weights("own", rows=[1.7]), r"row is a whole number; got 1\.7"),
        (lambda: seen.weights("own", rows=torch.ones(2, 11)), "row is a whole number"),
        (lambda: seen.weights("own", rows=torch.ones(7, dtype=torch.bool)), "one for each of the 11 rows; got 7"),
        (lambda: seen.weights("own", head=True), "head is a whole number; got True"),
        (lambda: seen.weights("own", head=1.0), r"head is a whole number; got 1\.0"),
        (lambda: seen.weights("own", call=0.5), r"call is a whole number; got 0\.5"),
    ):
        with pytest.raises(saccade.SaccadeError, match=why):
            call()


def test_one_padding_for_all_rows_is_told_apart():
    layer = saccade.Attention(16, 2)
    log = Log()
    layer.watchers = (log,)
    layer(torch.randn(2, 6, 16), torch.randn(2, 5, 16), mask=saccade.padding([4]))
    seen = log.calls[-1].apart(3)
    found = plain.weights(seen.q, seen.k, seen.meaning, seen.grid)
    assert found.shape == (6, 2, 2, 5)
    assert not found[..., 4:].any()
