"""The weights of a run under a mask beside their own: what attention to others is worth."""

from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

import saccade
from saccade.cli import app
from saccade.config import ModelConfig
from saccade.store.run import Run

TOKENS = torch.tensor([[1, 2, 3, 4, 5]])


def made(**keys):
    torch.manual_seed(0)
    return Run(saccade.build(ModelConfig(vocab=11, width=12, heads=3, hidden=17, encoder=2, head="tags(5)", **keys)))


def test_everybody_sees_itself_alone():
    run = made()
    alone, own = run.masked("window(1)"), [parameter.clone() for parameter in run.model.parameters()]
    other = TOKENS.clone()
    other[0, 4] = 9
    with torch.no_grad():
        assert not torch.equal(run.model(TOKENS)[:, :4], run.model(other)[:, :4])
        assert torch.equal(alone.model(TOKENS)[:, :4], alone.model(other)[:, :4])
        one = alone.model(TOKENS[:, 2:3])
        assert torch.allclose(alone.model(TOKENS)[:, 2:3], one, atol=1e-6), "as if it were alone"
    assert all(map(torch.equal, own, run.model.parameters()))
    assert run.model.config.mask is None


def test_both_masks_count():
    both = made(mask="causal").masked("window(2)")
    assert both.model.config.mask == "(causal) & (window(2))"
    other = TOKENS.clone()
    other[0, 0] = 9
    with torch.no_grad():
        assert torch.equal(both.model(TOKENS)[:, 3:], both.model(other)[:, 3:]), "two layers reach two back"


def test_what_is_no_mask_is_refused():
    with pytest.raises(saccade.SaccadeError, match="did you mean 'window'"):
        made().masked("windw(1)")


@pytest.mark.proof
def test_evaluate_tells_the_mask(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keys = ["data.examples=60", "data.held=10", "model.encoder=1", "train.steps=2", "train.every=1", "train.warmup=1"]
    run = saccade.train("lanes-tracks", run="run", options=keys)
    found = CliRunner().invoke(app, ["evaluate", "run", "--mask", "window(1)"])
    assert "looking where window(1) allows it" in found.stdout
    plain, masked = (
        json.loads(CliRunner().invoke(app, ["evaluate", "run", "--json", *more]).stdout)
        for more in ([], ["--mask", "window(1)"])
    )
    assert masked["mask"] == "window(1)"
    assert masked["baseline"] == plain["baseline"]
    assert masked["metrics"] != plain["metrics"]
    assert masked["metrics"]["ade"] == pytest.approx(run.masked("window(1)").evaluate()["metrics"]["ade"])
