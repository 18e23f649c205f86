"""Frames to vectors: lengths, and that padding on either side changes nothing, through convolutions and LSTMs."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade.model.embed import counted_of
from saccade.model.frames import side_by_side

SPECS = [
    "frames(7)",
    "frames(7, stack=3)",
    "frames(7, steps=(2, 2))",
    "frames(7, stack=2, steps=(1, 3), kernel=5)",
    "pyramid(1, 7)",
    "pyramid(3, 7)",
    "pyramid(2, 7, 'gru')",
]
SIZES = [29, 1, 18, 11]


def model_of(embed, **keys):
    torch.manual_seed(3)
    config = {"width": 12, "heads": 2, "hidden": 17, "encoder": 1, "embed": embed, **keys}
    return saccade.build(saccade.ModelConfig(**config)).double().eval()


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("position", ["sinusoid", None])
@pytest.mark.parametrize("embed", SPECS)
def test_padding_changes_nothing(embed, position, side):
    """Even where it is full of NaN."""
    model = model_of(embed, position=position)
    rows = [torch.randn(size, 7, dtype=torch.double) for size in SIZES]
    whole = torch.full((len(rows), 31, 7), float("nan"), dtype=torch.double)
    for row, own in zip(whole, rows, strict=True):
        row[slice(0, len(own)) if side == "right" else slice(31 - len(own), None)] = own
    said = model.states(saccade.Input({"frames": whole}, torch.tensor(SIZES), side=side)).last
    assert said.shape[1] == counted_of(embed, 31)
    for own, found in zip(rows, said, strict=True):
        alone = model.states(saccade.Input({"frames": own[None]})).last[0]
        assert len(alone) == counted_of(embed, len(own))
        inside = found[: len(alone)] if side == "right" else found[len(found) - len(alone) :]
        torch.testing.assert_close(inside, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("embed", SPECS)
def test_a_sample_becomes_as_many_vectors_as_asked(embed):
    model = model_of(embed)
    x = model.embed.sample(2, 5)
    assert model.states(saccade.Input({name: each.double() for name, each in x.values.items()})).last.shape == (
        2,
        5,
        12,
    )


def test_neighbours_stand_side_by_side():
    x = torch.arange(10.0).view(1, 5, 2)
    found, lengths = side_by_side(x, torch.tensor([5]), 2)
    assert found.tolist() == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 0]]]
    assert lengths.tolist() == [3]


def test_the_pyramid_is_that_of_the_paper():
    """Each layer reads its two neighbours' states below; in one direction at a time, by torch's own LSTM."""
    model = model_of("pyramid(2, 7)")
    part = model.embed.part
    again = torch.randn(1, 8, 7, dtype=torch.double)
    below = again.reshape(1, 4, 14)
    first = torch.cat((part.layers[0].forth(below)[0], part.layers[0].back(below.flip(1))[0].flip(1)), 2)
    pairs = first.reshape(1, 2, 24)
    second = torch.cat((part.layers[1].forth(pairs)[0], part.layers[1].back(pairs.flip(1))[0].flip(1)), 2)
    torch.testing.assert_close(part({"frames": again}), second)


def test_a_learned_position_has_room_for_the_frames_of_its_vectors():
    assert model_of("frames(7, steps=(2, 2))", position="learned(5)").source_room == 20


@pytest.mark.parametrize(
    ("embed", "told"),
    [
        ("frames(0)", "from 1"),
        ("frames(7, kernel=2)", "odd"),
        ("pyramid(9)", "1 to 8"),
        ("pyramid(1, 7, 'lstn')", "gru"),
    ],
)
def test_what_means_nothing_is_refused(embed, told):
    with pytest.raises(saccade.SaccadeError, match=told):
        model_of(embed)


def test_another_number_of_bands_is_refused():
    with pytest.raises(saccade.SaccadeError, match=r"frames are \(batch, time, 7\)"):
        model_of("frames(7)")(saccade.Input({"frames": torch.zeros(2, 3, 5)}))
