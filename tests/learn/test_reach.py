"""How much context a model makes use of: exact losses, and the definition of the effective context."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tiny import translate, write
from typer.testing import CliRunner

import saccade
from saccade import SaccadeError
from saccade.cli import app
from saccade.config import ModelConfig
from saccade.learn.reach import doubled, effective, ends, loss_given, reach


def model_of(**more):
    torch.manual_seed(2)
    given = {"vocab": 13, "width": 12, "heads": 2, "decoder": 2, "hidden": 16, "head": "vocabulary", **more}
    return saccade.build(ModelConfig(**given)).double().eval()


def one_by_one(model, stream, given, places):
    found = []
    for end in places:
        scores = model(torch.from_numpy(stream[end - given : end])[None])[0, -1]
        found.append(float(-scores.log_softmax(-1)[stream[end]]))
    return sum(found) / len(found)


@torch.no_grad()
def test_the_loss_is_that_of_each_token_from_so_many_before_it():
    stream, model = np.random.default_rng(1).integers(13, size=90), model_of(position="rotary")
    places = ends(90, 32, 7)
    assert places[0] == 32
    assert places[-1] == 89
    for given in (1, 5, 32):
        assert loss_given(model, stream, given, places) == pytest.approx(one_by_one(model, stream, given, places))


@torch.no_grad()
def test_a_model_that_remembers_is_given_segments():
    """With a memory that holds all, segments are one text; with a shorter one, what is out of reach does not count."""
    stream = np.random.default_rng(1).integers(13, size=90)
    places, plain = ends(90, 32, 5), model_of(position="xl")
    for given in (3, 12, 32):
        whole = one_by_one(plain, stream, given, places)
        assert loss_given(model_of(position="xl", memory=40), stream, given, places, 6) == pytest.approx(whole)
    short = model_of(position="xl", memory=2, decoder=1)  # one layer sees 2 and its own segment of 6
    near = loss_given(short, stream, 8, places, 6)
    assert loss_given(short, stream, 32, places, 6) == pytest.approx(near, rel=1e-12)
    assert loss_given(short, stream, 6, places, 6) != pytest.approx(near, rel=1e-6)


def test_the_effective_context_is_where_doubling_stops_to_gain():
    losses = {16: 2.0, 32: 1.8, 64: 1.7, 128: 1.695, 256: 1.5}
    assert effective(losses) == 64  # what comes after a step that gains nothing does not count
    assert effective(losses, 0.001) == 256
    assert effective(losses, 0.2) == 16
    assert effective({5: 1.0}) == 5


def test_lengths_double_as_far_as_they_fit():
    assert doubled(100) == [16, 32, 64]
    assert doubled(5000) == [16, 32, 64, 128, 256, 512, 1024]
    assert doubled(9) == [9]
    with pytest.raises(SaccadeError, match="a context of 90 does not fit into a text of 90 tokens"):
        ends(90, 90, 3)


def test_a_run_is_asked_by_function_and_command(tmp_path):
    run = saccade.train(write(tmp_path, train={"steps": 2, "every": 2}), run=tmp_path / "run")
    found = reach(run, places=9)
    assert list(found.losses) == [16, 32, 64]
    assert found.effective in found.losses
    assert reach(run, lengths=[4, 2], places=9).losses.keys() == {2, 4}
    said = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--context", "--json"])
    assert json.loads(said.stdout)["context"]["losses"].keys() == {"16", "32", "64"}
    said = CliRunner().invoke(app, ["evaluate", str(tmp_path / "run"), "--context"])
    assert "effective context" in said.stdout


def test_only_texts_have_a_context(tmp_path):
    run = saccade.train(translate(tmp_path, train={"steps": 1, "every": 1}), run=tmp_path / "run")
    with pytest.raises(SaccadeError, match="give a run whose task is write"):
        reach(run)
