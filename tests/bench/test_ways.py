"""The bench of three ways: exponents and reaches are what they should be, and both sides compute the same."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from saccade.bench import ways
from saccade.model.convolution import Convolution

FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio"}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(ways, "WIDTH", 12)
    monkeypatch.setattr(ways, "STEPS", 3)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_made_up_times(power):
    lengths = [64, 128, 256, 512, 1024, 2048]
    times = [3e-4 * T**power for T in lengths]
    assert ways.exponent(lengths, times) == pytest.approx(power)
    disturbed = [1.0, 1.0, 1.0, *times[3:]]  # short calls cost what every call costs: they do not count
    assert ways.exponent(lengths, disturbed) == pytest.approx(power)
    assert ways.exponent([7, 70], [2.0, 20.0]) == pytest.approx(1.0)


def test_the_exponent_is_the_line_of_least_squares():
    lengths, times = [10, 20, 40, 80], [1.0, 2.0, 3.0, 17.0]
    x, y = torch.tensor(lengths).double().log(), torch.tensor(times).double().log()
    line = torch.linalg.lstsq(torch.stack((x, torch.ones(4)), 1).double(), y[:, None]).solution
    assert ways.exponent(lengths, times) == pytest.approx(float(line[0]))


def test_how_far_a_gradient_reaches():
    assert ways.reach(Convolution(6, 5, dilation=3), 31, 6) == 6
    assert ways.reach(Convolution(6, 4, causal=True), 31, 6) == 3
    assert ways.reach(nn.Identity(), 31, 6) == 0
    assert ways.reach(lambda x: x.cumsum(1), 31, 6) == 30
    assert ways.reach(lambda x: x + x.mean(1, keepdim=True), 31, 6) == 30


def test_gradients_of_a_recurrence_fade_to_nothing(small):
    """In principle its last state sees everything; in float32 what lies far behind leaves no trace."""
    gru = ways._seeded(ways.WAYS["recurrent"].ours)
    assert ways.reach(gru, 23, 12) == 22
    assert 22 < ways.reach(gru, 701, 12) < 700
    attention = ways._seeded(ways.WAYS["attention"].ours)
    assert ways.reach(attention, 701, 12) == 700


@pytest.mark.parametrize("name", ways.WAYS)
def test_both_sides_do_the_same_work(name, small):
    """As many weights; and with the same weights, the same numbers."""
    way, x = ways.WAYS[name], torch.randn(1, 17, 12)
    ours, theirs = ways._seeded(way.ours), ways._seeded(way.theirs)
    assert sum(each.numel() for each in ours.parameters()) == sum(each.numel() for each in theirs.parameters())
    if name.startswith("attention"):
        query, key, value = theirs.module.in_proj_weight.chunk(3)
        own = {"query": query, "key": key, "value": value, "out": theirs.module.out_proj.weight}
        with torch.no_grad():
            for part, weight in own.items():
                getattr(ours, part).weight.copy_(weight)
                getattr(ours, part).bias.zero_()
    else:
        (module,) = ours.children()
        module.load_state_dict(theirs.module.state_dict())
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-6)


def test_the_lines(small, monkeypatch):
    asked = []

    def alone(name, side, lengths):
        asked.append((name, side))
        return [1e-9 * T**2 for T in lengths]

    monkeypatch.setattr(ways, "_alone", alone)
    monkeypatch.setattr(ways, "race", lambda ours, theirs, seconds: (ours(), theirs(), (0.002, 0.003, 1.5))[2])
    found = {each["case"]: each for each in ways.rows(0.0, (5, 7, 11), (8, 16), (13,))}
    assert all(set(each) == FIELDS for each in found.values())
    assert set(asked) == {(name, side) for name in ways.WAYS for side in ("ours", "theirs")}
    assert (found["recurrent T=7, forward"]["ours"], found["recurrent T=7, forward"]["ratio"]) == (2.0, 1.5)
    assert found["attention, peak memory, exponent of T"]["ours"] == pytest.approx(2.0)
    assert found["recurrent, forward, exponent of T"]["ours"] == pytest.approx(0.0)
    steps = {name: found[f"{name} T=11, steps in a row"]["ours"] for name in ways.WAYS}
    assert steps == {"recurrent": 11, "convolution": 1, "attention": 1, "attention, weights kept": 1}
    reaches = {name: found[f"{name} T=13, reach of a gradient"]["theirs"] for name in ways.WAYS}
    assert reaches == {"recurrent": 12, "convolution": 1, "attention": 12, "attention, weights kept": 12}
    assert {"lstm 1 x 3, one step at a time", "lstm 16 x 3, forward+backward"} <= found.keys()


@pytest.mark.proof
def test_memory_is_measured_in_a_process_of_its_own():
    """Weights that are kept grow with the square of the length: 4 heads x 1024 x 1024 x 4 bytes, more than once."""
    short, long = ways._alone("attention, weights kept", "ours", [256, 1024])
    assert 0.0 <= short < long
    assert long > 2 * 4 * 1024**2 * 4 / 1e9
    assert long > 6 * short
