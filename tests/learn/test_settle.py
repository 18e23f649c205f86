"""State that has no gradient: taken over once a step from all its micro-batches, kept with the weights."""

from __future__ import annotations

import shutil

import pytest
import torch
from tiny import classify

import saccade
from saccade import disk


class Counting(torch.nn.Module):
    """A mixer that knows the mean of all that it was shown: a state without a gradient."""

    window = 1

    def __init__(self, width, causal):
        super().__init__()
        self.out = torch.nn.Linear(width, width)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(width))
        self.sum, self.count = None, 0

    def forward(self, x, *, mask=None, cache=None):
        if self.training:
            flat = x.detach().flatten(0, 1)
            self.sum = flat.sum(0) if self.sum is None else self.sum + flat.sum(0)
            self.count += len(flat)
        return self.out(x - self.mean)

    def settle(self):
        self.steps += 1
        self.mean.lerp_(self.sum / self.count, 0.5)
        self.sum, self.count = None, 0


@pytest.mark.parametrize("average", ["none", "ema(0.9)", "last(2)"])
def test_state_without_a_gradient_is_settled_kept_and_gone_on_with(tmp_path, average):
    train = {"accumulate": 2, "batch": 40, "average": average, "keep": 5}
    asked = classify(tmp_path, model={"mixer": "mine", "position": None, "dropout": 0.2}, train=train)
    with saccade.spec.knowing({"mine": Counting}):
        run = saccade.train(asked, run=tmp_path / "one")
        mixer = run.model.encoder.blocks[0].mix
        assert mixer.steps == 6, "once a step, not once a micro-batch"
        assert mixer.mean.abs().sum() > 0
        assert not mixer.mean.requires_grad
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        shutil.rmtree(tmp_path / "two/checkpoints/step-6")
        saccade.train(tmp_path / "two")
        kept = [
            {file.name: disk.digest(file) for file in (tmp_path / name / "checkpoints/step-6").glob("*.safetensors")}
            for name in ("one", "two")
        ]
        assert kept[0] == kept[1]
        again = saccade.load(run.save(tmp_path / "saved")).model.encoder.blocks[0].mix
        early = run.at(run.snapshots[0]).model.encoder.blocks[0].mix
        assert torch.equal(again.mean, mixer.mean)
        assert early.steps == run.snapshots[0]
