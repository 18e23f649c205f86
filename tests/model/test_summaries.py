"""Summaries in whole models: one line of a configuration, its weights and costs, and what it does not go with."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.config import read
from saccade.look.watch import watch
from saccade.store.run import Run
from saccade.zoo.size import size

SMALL = {"vocab": 31, "width": 24, "heads": 4, "kv_heads": 2, "hidden": 32, "encoder": 3, "position": "sinusoid"}
LINE = {"summary": "linformer(5, 13)"}


def build(**changes) -> saccade.Model:
    torch.manual_seed(0)
    return saccade.build(read(ModelConfig, SMALL | LINE | changes)).eval()


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(31, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("changes", "matrices"),
    [
        ({}, 2 * 3),
        ({"share_summary": True}, 2),
        ({"share_summary": True, "summary": "linformer(5, 13, keys)"}, 1),
        ({"summary": "linformer(5, 13, none)"}, 2 * 2 * 3),  # two key heads
        ({"decoder": 2, "head": "vocabulary"}, 2 * 3),  # a decoder has none
        ({"encoder_mixer": ["gru", "attention"]}, 2 * 2),
    ],
)
def test_parameters_are_counted(changes, matrices):
    def count(values: dict) -> int:
        made = saccade.build(read(ModelConfig, values), device="meta")
        return sum(each.numel() for each in made.parameters())

    without = {key: each for key, each in changes.items() if "summary" not in key}
    more = count(SMALL | LINE | changes) - count(SMALL | without)
    assert more == matrices * 5 * 13


def test_cost_grows_linearly():
    """Of the products: twice the length costs twice; attention itself would cost more."""
    long = SMALL | {"summary": "linformer(16, 4096)"}
    found = [size(read(ModelConfig, long), length=each) for each in (2048, 4096)]
    assert found[1]["flops_forward"] == pytest.approx(2 * found[0]["flops_forward"], rel=1e-3)  # slots stay as many
    whole = [size(read(ModelConfig, SMALL), length=each)["flops_forward"] for each in (2048, 4096)]
    assert whole[1] > 3 * whole[0]
    assert whole[1] > 10 * found[1]["flops_forward"]
    slots = 4 * 3 * 2 * 16 * 2 * 6
    assert found[1]["bytes_activations"] - slots == 2 * (found[0]["bytes_activations"] - slots)
    assert size(read(ModelConfig, long))["length"] == 4096


@pytest.mark.parametrize("share", ["heads", "keys"])
@pytest.mark.parametrize("shared", [False, True])
def test_it_trains_and_is_kept(share, shared, tmp_path):
    model = build(summary=f"linformer(5, 13, {share})", share_summary=shared, decoder=1, head="vocabulary")
    x, y = tokens(2, 9), tokens(2, 4)
    model(x, y).square().mean().backward()
    for block in model.encoder.blocks:
        assert all(weight.grad.any() for weight in block.attention.summary.parameters())
    assert model.decoder.blocks[0].attention.summary is None
    assert model.decoder.blocks[0].cross.summary is None
    Run(model).save(tmp_path / "run")
    assert torch.equal(saccade.load(tmp_path / "run").model(x, y), model(x, y))


def test_room_is_the_summarys():
    assert build().room == 13
    assert build(position="learned(9)").room == 9
    assert build(position="learned(19)").room == 13
    build()(tokens(1, 13))
    with pytest.raises(SaccadeError, match="built for 13 positions; the sequence has 14"):
        build()(tokens(1, 14))


def test_weights_are_of_slots():
    model, x = build(), tokens(2, 9)
    with watch(model) as seen:
        output = model(x)
    assert torch.equal(output, model(x))
    assert seen.weights("encoder.blocks.0.attention", rows=[3, 4]).shape == (2, 4, 2, 5)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"encoder": 0, "decoder": 2}, "a decoder would see the future: give an encoder"),
        ({"mixer": "gru"}, "belongs to self-attention, and the encoder has 'gru' alone"),
        ({"encoder_mixer": "gru", "decoder": 1}, "belongs to self-attention, and the encoder has 'gru' alone"),
        ({"mask": "window(3)"}, "of which a mask can hide none: leave out mask and pattern"),
        ({"pattern": "l", "masks": {"l": "window(3)"}}, "leave out mask and pattern"),
        ({"memory": 8}, "of one sequence at once: leave out memory, and streams = 2"),
        ({"streams": 2}, "leave out memory, and streams = 2"),
        ({"position": "t5"}, "slots stand at no position, and t5 compares"),
        ({"summary": "linformer(5)"}, r"it is written linformer\(slots, length, share='heads'"),
    ],
)
def test_what_it_does_not_go_with(changes, why):
    with pytest.raises(SaccadeError, match=why):
        build(**changes)
