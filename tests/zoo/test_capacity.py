"""A model that does not fit into memory is refused with its numbers, before anything is allocated."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.zoo import capacity
from saccade.zoo.capacity import available, out_of_memory, parameters

SMALL = {"vocab": 13, "width": 6, "heads": 3}


@pytest.mark.parametrize(
    "keys",
    [
        {"decoder": 17},
        {"encoder": 14, "decoder": 13, "head": "vocabulary"},
        {"encoder": 2, "experts": 7},
        {"decoder": 13, "experts": 5, "feed": "swiglu"},
        {"encoder": [2, 7, 13], "embed": "patches(2)", "window": 3, "position": "offsets((3, 3))"},
    ],
)
def test_what_is_not_built_is_counted_in_a_straight_line(keys):
    config = ModelConfig(**SMALL, **keys)
    built = saccade.build(config, device="meta")
    assert parameters(config) == sum(each.numel() for each in built.parameters())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"width": 100_002},
            r"240,\d{3},\d{3},\d{3} parameters and takes .* GB \(4 bytes a parameter: weights\), and ",
        ),
        ({"vocab": 10**12}, "parameters and takes 24,"),
        ({"decoder": 10**9}, "1,000,000,000 layers"),
        ({"experts": 10**9}, "parameters and takes"),
        ({"hidden": 10**11}, "parameters and takes"),
        ({"position": "learned(2000000000)"}, "parameters and takes"),
        ({"width": 1_999_999_998}, "too large for any machine"),
        ({"vocab": 10**30}, "too large for any machine"),
    ],
)
def test_a_model_that_fits_nowhere(changes, why):
    values = {**SMALL, "decoder": 2, **changes}
    with pytest.raises(SaccadeError, match=why) as problem:
        saccade.build(ModelConfig(**values))
    assert "\n" not in str(problem.value)


def test_what_there_is_bounds_what_is_built(monkeypatch):
    assert 1 << 28 < available() < 1 << 50
    config = ModelConfig(**SMALL, decoder=2)
    assert capacity.refuse_larger(config, 16, "all") < 100_000
    monkeypatch.setattr(capacity, "available", lambda device: 10_000)
    with pytest.raises(SaccadeError, match=r"takes 0.0 GB \(16 bytes a parameter: all\), and this machine has 0.0 GB"):
        capacity.refuse_larger(config, 16, "all")


def test_a_container_has_less(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("12345678\n")
    (tmp_path / "other").write_text("max\n")
    monkeypatch.setattr(capacity, "LIMITS", tuple(str(tmp_path / each) for each in ("memory.max", "other", "none")))
    assert available() == 12345678


def test_errors_that_mean_memory():
    assert out_of_memory(MemoryError())
    with pytest.raises(RuntimeError) as problem:
        torch.empty(10**14)
    assert out_of_memory(problem.value)
    assert not out_of_memory(RuntimeError("shapes"))
