"""Every architecture trains, goes on after a stop as if there had been none, and answers."""

from __future__ import annotations

import pytest
import torch
from architectures import ARCHITECTURES
from examples import proofs
from tiny import translate

import saccade
from saccade.learn.alignment import attends
from saccade.learn.loop import Loop

QUICK = ("recurrent", "feeding", "convs2s", "memory", "favor", "window")


@pytest.mark.parametrize("name", proofs(ARCHITECTURES, but=QUICK))
def test_a_stop_changes_nothing(name, tmp_path, monkeypatch):
    recipe = translate(
        tmp_path, model={"encoder": 2, "decoder": 2, "position": "sinusoid", "dropout": 0.1, **ARCHITECTURES[name]}
    )
    whole = saccade.train(recipe, run=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 3)
        assert saccade.train(recipe, run=tmp_path / "parts").step == 3
    parts = saccade.train(recipe, run=tmp_path / "parts")
    assert parts.step == whole.step == 6
    for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert parts.predict(["abc", "gf"], beam=3) == whole.predict(["abc", "gf"], beam=3)
    if attends(whole.model):
        assert whole.look("abc").map("alignment").columns == ["a", "b", "c", "<end>"]
