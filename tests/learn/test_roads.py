"""Every road trains, goes on after a stop as if there had been none, and answers."""

from __future__ import annotations

import pytest
import torch
from tiny import translate

import saccade
from saccade.learn.alignment import attends
from saccade.learn.loop import Loop

ROADS = {
    "rnn": {"mixer": "gru", "encoder_mixer": "gru(both=True)", "cross": "fixed", "order": "plain", "feed": "none"},
    "rnn-attention": {"mixer": "gru", "cross": "feeding", "score": "additive", "feed": "none"},
    "gnmt": {
        "mixer": "lstm",
        "encoder_mixer": ["lstm(both=True)"],
        "cross": "lowest",
        "order": "residual",
        "decoder": 2,
    },
    "convs2s": {"mixer": "convolution(3)", "score": "dot", "order": "half", "feed": "none"},
    "bytenet": {"mixer": "dilated(3)", "cross": "beside", "feed": "none"},
    "memory": {"mixer": "gated", "encoder_mixer": "forgetting(both=True)"},
    "features": {
        "score": "feature(favor, 6, seed=0, redraw=2)",
        "normaliser": "sum",
        "attention_dropout": 0.0,
    },
    "sparse": {"mask": "bigbird(2, 1, 1, 1)"},
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ROADS)
def test_a_stop_changes_nothing(name, tmp_path, monkeypatch):
    recipe = translate(tmp_path, model={"position": "sinusoid", "dropout": 0.1, **ROADS[name]})
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
