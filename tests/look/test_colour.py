"""Colours: lightness tells the order, whoever looks."""

from __future__ import annotations

import pytest
import torch

from saccade.error import SaccadeError
from saccade.look.colour import NOTHING, diverging, from_lab, scale_of, sequential, to_lab

# What is left of linear red, green and blue to who lacks red cones, green cones, all colours (Vienot et al. 1999).
BLIND = {
    "protan": [[0.1121, 0.8853, -0.0005], [0.1127, 0.8897, -0.0001], [0.0045, 0.0085, 0.9868]],
    "deutan": [[0.2920, 0.7054, -0.0003], [0.2934, 0.7089, 0.0000], [-0.0210, 0.0253, 0.9984]],
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}


def linear(colours):
    share = colours.double() / 255
    return torch.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def test_a_screen_shows_every_colour_of_a_scale():
    for name in ("sequential", "diverging"):
        colours = scale_of(name)
        assert colours.shape == (255, 3)
        assert colours.dtype == torch.uint8
        torch.testing.assert_close(from_lab(to_lab(colours)) * 255, colours.double(), rtol=0, atol=1e-3)


def test_lightness_grows_with_the_value():
    lightness = to_lab(scale_of("sequential"))[:, 0]
    assert bool((lightness.diff() > 0).all())
    assert float(lightness.diff().max()) < 3 * float(lightness.diff().mean())  # no step that one would take for an edge


def test_lightness_falls_to_both_sides_of_zero():
    lightness = to_lab(scale_of("diverging"))[:, 0]
    assert abs(int(lightness.argmax()) - 127) <= 2  # colours are rounded to bytes
    assert bool((lightness[:128:3].diff() > 0).all())
    assert bool((lightness[127::3].diff() < 0).all())
    assert float((lightness - lightness.flip(0)).abs().max()) < 0.06  # as much minus looks as far away as as much plus


@pytest.mark.parametrize("name", BLIND)
def test_who_sees_fewer_colours_sees_the_same_order(name):
    seen = linear(scale_of("sequential")) @ torch.tensor(BLIND[name], dtype=torch.float64).T
    bright = seen @ torch.tensor([0.2126, 0.7152, 0.0722], dtype=torch.float64)
    assert bool((bright[::8].diff() > 0).all())


@pytest.mark.parametrize("name", ["protan", "deutan"])
def test_who_sees_no_red_and_green_tells_minus_from_plus(name):
    seen = linear(scale_of("diverging")) @ torch.tensor(BLIND[name], dtype=torch.float64).T
    blue = seen[:, 2] / seen.sum(-1)
    assert float(blue[:100].min()) > float(blue[156:].max())


def test_ends_and_what_is_no_number():
    values = torch.tensor([[0.0, 1.0, 7.0], [-3.0, float("nan"), float("inf")]])
    first, last, grey = scale_of("sequential")[0], scale_of("sequential")[-1], torch.tensor(NOTHING).byte()
    expected = torch.stack((torch.stack((first, last, last)), torch.stack((first, grey, grey))))
    assert torch.equal(sequential(values), expected)
    assert torch.equal(diverging(torch.tensor([-1.0, 1.0])), scale_of("diverging")[[0, -1]])


def test_an_unknown_scale_is_told():
    with pytest.raises(SaccadeError, match="did you mean 'diverging'"):
        scale_of("divergin")
