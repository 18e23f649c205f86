"""Two passes that should agree: every task, with and without dropout, stopped and gone on with."""

from __future__ import annotations

import pytest
import torch
from tiny import classify, translate, write

import saccade
from saccade.attend.mask import padding
from saccade.learn.loop import Loop
from saccade.learn.prepare import prepare
from saccade.model.dropout import at_rest
from saccade.task.loss import score_loss

TASKS = {
    "translate": lambda path, **more: translate(path, model={"dropout": 0.3}, **more),
    "classify": lambda path, **more: classify(path, model={"dropout": 0.3}, **more),
    "write": lambda path, **more: write(path, model={"dropout": 0.3, "memory": 0, "position": "rotary"}, **more),
}


def drawn(make, tmp_path):
    """A task, its model and one of its batches, with examples of different lengths where there are any."""
    made = prepare(make(tmp_path), lambda _: None)
    recipe = made.run.recipe
    _, _, batch = next(made.task.walk(made.train, recipe.train, 0, 0, 0))
    return made.task, made.run.model.double().train(), batch


@pytest.mark.parametrize("name", TASKS)
def test_without_dropout_it_is_the_loss_itself(name, tmp_path):
    task, model, batch = drawn(TASKS[name], tmp_path)
    with at_rest(model):
        once, twice = (task.loss(model, batch, 0.1, agree) for agree in (0.0, 3.0))
    torch.testing.assert_close(twice, once)


@pytest.mark.parametrize("name", TASKS)
def test_with_dropout_it_is_the_law_of_two_passes(name, tmp_path):
    """The same dropout, drawn again: scores of every prediction, then the formula."""
    task, model, batch = drawn(TASKS[name], tmp_path)
    torch.manual_seed(3)
    ours = task.loss(model, batch, 0.1, 3.0)
    torch.manual_seed(3)
    double = batch.twice()
    hidden = None if double.lengths is None else padding(double.lengths)
    scores = model(double.source, padding=hidden) if double.target is None else None
    scores = model(double.source, double.target, padding=hidden) if scores is None else scores
    scores = scores.reshape(-1, scores.shape[-1])
    scores = scores if double.places is None else scores[double.places]
    first, second = scores.unflatten(0, (2, -1))
    assert not torch.allclose(first, second)
    theirs = score_loss(torch.stack([first, second]), batch.wanted, 0.1, 3.0).sum()
    torch.testing.assert_close(ours, theirs)
    assert ours > score_loss(torch.stack([first, second]), batch.wanted, 0.1).sum()


@pytest.mark.parametrize("name", TASKS)
def test_a_stop_changes_nothing(name, tmp_path, monkeypatch):
    recipe = TASKS[name](tmp_path, train={"agree": 2.0, "steps": 6, "every": 3})
    whole = saccade.train(recipe, run=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_enough", lambda self: self.state["step"] == 3)
        saccade.train(recipe, run=tmp_path / "parts")
    parts = saccade.train(recipe, run=tmp_path / "parts")
    alone = saccade.train(TASKS[name](tmp_path, train={"steps": 6, "every": 3}), run=tmp_path / "alone")
    for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert any(not torch.equal(a, b) for a, b in zip(whole.model.parameters(), alone.model.parameters(), strict=True))
