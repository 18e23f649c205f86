"""Several inputs of which the last looks at the others: alone or in company, pooled, decoded, refused."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade.config import ModelConfig, read

EMBED = {"picture": "convolutions((5,), channels=3)", "note": "tokens", "question": "tokens"}
BASE = {"width": 12, "heads": 2, "hidden": 17, "encoder": 2, "vocab": 23, "position": "sinusoid", "join": "context"}
VARIANTS = {
    "context alone": {},
    "layers of its own": {"context": 2},
    "pooled": {"context_pool": "mean"},
    "layers, then attention pools": {"context": 1, "context_pool": "attention"},
    "post-norm": {"order": "post", "norm": "rms", "context": 1},
    "a recurrent question": {"encoder_mixer": "gru(both=True)"},
}


def made(embed=("picture", "question"), **keys):
    torch.manual_seed(0)
    given = {**BASE, "embed": {name: EMBED[name] for name in embed}, **keys}
    return saccade.Model(ModelConfig(**given)).double().eval()


def text(rows):
    """Rows of tokens of these lengths."""
    draw = torch.Generator().manual_seed(sum(rows))
    return saccade.Input({"tokens": torch.randint(0, 23, (len(rows), max(rows)), generator=draw)}, torch.tensor(rows))


def pictures(count):
    return saccade.Input({"pixels": torch.randn(count, 3, 12, 20, generator=torch.Generator().manual_seed(2)).double()})


def row(x, number):
    """One row alone, without its padding."""
    length = None if not x.lengths else int(x.lengths[0][number])
    return saccade.Input({name: each[number : number + 1, :length] for name, each in x.values.items()})


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("embed", [("picture", "question"), ("note", "question"), ("picture", "note", "question")])
def test_batched_is_alone(variant, embed):
    model = made(embed, head="label(3)", **VARIANTS[variant])
    every = {"picture": pictures(3), "note": text([2, 5, 3]), "question": text([7, 3, 5])}
    x = {name: every[name] for name in embed}
    together = model(x)
    assert together.shape == (3, 3)
    for number in range(3):
        alone = model({name: row(each, number) for name, each in x.items()})
        torch.testing.assert_close(alone[0], together[number], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_answer_depends_on_both(variant):
    model = made(head="label(3)", **VARIANTS[variant])
    x = {"picture": pictures(2), "question": text([4, 4])}
    before = model(x)
    other = saccade.Input({"pixels": x["picture"].values["pixels"].flip(0)})
    assert not torch.allclose(model({**x, "picture": other}), before)
    asked = saccade.Input({"tokens": x["question"].values["tokens"].flip(0)})
    assert not torch.allclose(model({**x, "question": asked}), before)


def test_every_weight_learns():
    model = made(head="label(3)", context=1).train()
    model({"picture": pictures(2), "question": text([4, 6])}).square().sum().backward()
    unused = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.abs().sum()]
    assert unused == []


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_watching_changes_nothing_and_sees_the_grid(pool):
    model = made(context=1, context_pool=pool)
    x = {"picture": pictures(2), "question": text([4, 6])}
    before = model.encode(x)
    with saccade.watch(model) as seen:
        assert torch.equal(model.encode(x), before)
    looked = seen.weights("encoder.blocks.1.cross")
    assert looked.shape == (2, 2, 6, 15 if pool == "none" else 1)  # 12 x 20 pixels, halved twice: 3 x 5 cells
    torch.testing.assert_close(looked.sum(-1), torch.ones_like(looked.sum(-1)))
    assert seen.weights("context.layers.blocks.0.attention").shape == (2, 2, 15, 15)


def test_with_a_decoder_cached_is_uncached():
    model = made(decoder=2, decoder_keys={"embed": "tokens"}, head="vocabulary", tie=False)
    x = {"picture": pictures(3), "question": text([7, 3, 5])}
    y = torch.randint(0, 23, (3, 6), generator=torch.Generator().manual_seed(3))
    whole = model(x, y)
    state = model.start(x)
    steps = [model.decode_step(y[:, place : place + 1], state) for place in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=1e-9, atol=1e-9)


def test_pooled_has_the_same_weights_as_the_grid():
    grid, pooled = (dict(made(context_pool=pool).named_parameters()) for pool in ("none", "mean"))
    assert {name: each.shape for name, each in grid.items()} == {name: each.shape for name, each in pooled.items()}


def test_layers_of_the_context_are_counted():
    from saccade.zoo.capacity import parameters

    config = made(context=15).config
    assert parameters(config) == sum(each.numel() for each in saccade.Model(config).parameters())


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"join": "one", "context": 2}, "join = 'context'"),
        ({"join": "one", "context_pool": "mean"}, "join = 'context'"),
        ({"encoder": 0, "decoder": 2, "embed": "tokens"}, "give the encoder a depth"),
        ({"memory": 7}, "leave out memory"),
        ({"streams": 2}, "leave out memory"),
        ({"encoder": [1, 1]}, "leave out memory"),
        ({"join": "contexts"}, "context"),
    ],
)
def test_what_does_not_go_together_is_told(keys, told):
    with pytest.raises(saccade.SaccadeError, match=told):
        read(ModelConfig, {**BASE, "embed": {name: EMBED[name] for name in ("picture", "question")}, **keys})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"picture": pictures(2)}, "'question' is missing"),
        ({"question": text([3, 4])}, "'picture' is missing"),
        ({"picture": pictures(2), "question": text([3, 4]), "note": text([3, 4])}, "no input 'note'"),
        ({"picture": pictures(3), "question": text([3, 4])}, "as many rows each; got picture 3, question 2"),
        (text([3, 4]), "a table of them, picture, question"),
    ],
)
def test_other_inputs_are_refused(given, told):
    with pytest.raises(saccade.SaccadeError, match=told):
        made().encode(given)


def test_one_input_has_no_context():
    with pytest.raises(saccade.SaccadeError, match="name two of them or more"):
        saccade.Model(ModelConfig(**BASE)).encode(text([3, 4]))
