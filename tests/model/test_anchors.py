"""Queries and anchors: decoders of sets, their symmetries, and what denoising queries may change."""

from __future__ import annotations

import pytest
import torch

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError
from saccade.field.elements.denoise import Denoising, denoising
from saccade.model.anchors import Gaze, around_points
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.queries import axes_of, sines

EMBEDS = {
    "image": ("convolutions((5,), channels=3)", {"pixels": torch.randn(3, 3, 20, 28)}, 2),
    "sound": ("frames(7, steps=(2,))", {"frames": torch.randn(3, 26, 7)}, 1),
    "points": ("points(4, 3)", {"points": torch.rand(3, 17, 4)}, 3),
}


def model(embed: str, queries: str, **keys) -> Model:
    torch.manual_seed(0)
    decoder = {"depth": 2, "embed": queries}
    given = {"width": 20, "heads": 5, "encoder": 1, "decoder": decoder, "embed": embed, "head": "elements(3)", **keys}
    made = Model(read(ModelConfig, given)).double()
    for each in made.parameters():  # what begins at zero must not hide what it does
        torch.nn.init.normal_(each, std=0.2)
    return made.eval()


def values(kind: str) -> Input:
    return Input({name: each.double() for name, each in EMBEDS[kind][1].items()})


@pytest.mark.parametrize("kind", EMBEDS)
def test_anchors_along_any_axes(kind):
    embed, _, axes = EMBEDS[kind]
    made = model(embed, f"anchors(7, {axes}, 3)")
    assert axes_of(made.config) == axes
    states = made.states(values(kind))
    assert states.decoder.shape == (3, 7, 20)
    assert [each.shape for each in states.spans] == [(3, 7, 2 * axes)] * 2
    assert made.say(states).shape == (2, 3, 7, 3)
    assert states.spots.shape[2] == axes
    assert ((states.spots >= 0) & (states.spots <= 1)).all()


def test_a_gaussian_around_a_point():
    """The squares, multiplied out, are those of the formula."""
    config = read(ModelConfig, {"width": 12, "heads": 3, "encoder": 1})
    gaze = Gaze(config, 2, around_points(3, 2), 0.5).double()
    torch.nn.init.normal_(gaze.out.weight, std=0.3)
    x, shares, spots = (
        torch.randn(2, 5, 12).double(),
        torch.rand(2, 5, 4).double() * 0.8 + 0.1,
        torch.rand(2, 11, 2).double(),
    )
    found = gaze(x, *shares.chunk(2, 2), spots)
    around, wide = gaze.out(gaze.norm(x)).view(2, 5, 2, 3, 2).unbind(2)
    for b, h, n, s in ((0, 0, 0, 0), (1, 2, 4, 10), (0, 1, 3, 7)):
        middle = shares[b, n, :2] + shares[b, n, 2:] * around[b, n, h]
        spread = shares[b, n, 2:] * wide[b, n, h].exp()
        wanted = -(((spots[b, s] - middle) / spread) ** 2).sum() / 2
        torch.testing.assert_close(found[b, h, n, s], wanted)


def test_queries_are_a_set():
    """Queries in another order give the same answers in that order: none of them sees a place in a row."""
    made = model(EMBEDS["image"][0], "anchors(7, 2)")
    before = made.states(values("image"))
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    part = made.decoder_embed.part
    with torch.no_grad():
        part.vectors.copy_(part.vectors[order])
        part.places.copy_(part.places[order])
    after = made.states(values("image"))
    torch.testing.assert_close(after.decoder, before.decoder[:, order])
    torch.testing.assert_close(after.spans[-1], before.spans[-1][:, order])


def shown(axes: int = 2) -> tuple[Input, Denoising]:
    import numpy as np

    draw = np.random.default_rng(0)
    labels = torch.tensor([[0, 2], [1, 0], [2, 1]])
    spans = torch.rand(3, 2, 2 * axes) * 0.3 + 0.3
    made = denoising(labels, spans, torch.tensor([2, 1, 0]), 2, 3, draw)
    return Input({"labels": made.shown, "noised": made.noised.double(), "groups": made.groups}), made


def test_denoising_queries_change_nothing_for_the_others():
    made = model(EMBEDS["image"][0], "anchors(7, 2, 3)")
    alone = made.states(values("image"))
    given, asked = shown()
    beside = made.states(values("image"), given)
    torch.testing.assert_close(beside.decoder[:, :7], alone.decoder)
    torch.testing.assert_close(beside.spans[-1][:, :7], alone.spans[-1])
    other = given.values["noised"].clone()
    other[:, :4] = 0.5  # of the first group
    changed = made.states(values("image"), Input({**given.values, "noised": other}))
    later = (asked.groups == 2) & asked.real
    torch.testing.assert_close(changed.decoder[:, 7:][later], beside.decoder[:, 7:][later])
    first = (asked.groups == 1) & asked.real
    assert not torch.allclose(changed.decoder[:, 7:][first], beside.decoder[:, 7:][first])


def test_a_row_is_the_same_alone():
    made = model(EMBEDS["sound"][0], "anchors(5, 1)", position="sinusoid")
    x = EMBEDS["sound"][1]["frames"].double()
    lengths = torch.tensor([26, 13, 20])
    padded = x * (torch.arange(26)[:, None] < lengths[:, None, None])
    together = made.states(Input({"frames": padded}, lengths))
    for row, length in enumerate(lengths.tolist()):
        alone = made.states(Input({"frames": x[row : row + 1, :length]}))
        torch.testing.assert_close(together.spans[-1][row : row + 1], alone.spans[-1])
        torch.testing.assert_close(together.decoder[row : row + 1], alone.decoder)


def test_plain_queries_have_a_head_for_places():
    made = model(EMBEDS["image"][0], "queries(7)", named_heads={"spans": "spans(2)"})
    states = made.states(values("image"))
    assert states.spans == ()
    assert made.say(states, "spans").shape == (2, 3, 7, 4)
    assert not made.config.stack(decoder=True).position


def test_gradients_reach_every_weight():
    made = model(EMBEDS["image"][0], "anchors(7, 2, 3)").train()
    states = made.states(values("image"), shown()[0])
    (made.say(states).square().sum() + torch.stack(states.spans).sum()).backward()
    assert [name for name, each in made.named_parameters() if each.grad is None or not each.grad.abs().sum()] == []


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"class_tokens": 1}, "lie nowhere"),
        ({"embed": {"one": "frames(7)", "two": "frames(7)"}}, "look at the places of one input"),
    ],
)
def test_what_anchors_cannot_look_at(keys, told):
    made = model(keys.pop("embed", EMBEDS["image"][0]), "anchors(7, 2)", **keys)
    x = values("image") if "class_tokens" in keys else {name: values("sound") for name in ("one", "two")}
    with pytest.raises(SaccadeError, match=told):
        made.states(x)


def test_other_axes_are_refused():
    with pytest.raises(SaccadeError, match="along 1 axes look at what lies along as many; this lies along 2"):
        model(EMBEDS["image"][0], "anchors(7, 1)").states(values("image"))
    with pytest.raises(SaccadeError, match="their number is whole, from 1"):
        model(EMBEDS["image"][0], "anchors(0)")


def test_sines_tell_near_places_apart():
    near = sines(torch.tensor([[0.5], [0.505]]))
    assert (near[0] - near[1]).abs().max() > 0.1
