"""Two passes that should agree: every task, with and without dropout, stopped and gone on with."""

from __future__ import annotations

import pytest
import torch
from tiny import classify, translate, write

import saccade
from saccade.field.loss import score_loss
from saccade.learn.loop import Loop
from saccade.learn.prepare import prepare
from saccade.model.dropout import evaluating

TASKS = {
    "translate": lambda path, **more: translate(path, model={"dropout": 0.3}, **more),
    "classify": lambda path, **more: classify(path, model={"dropout": 0.3}, **more),
    "write": lambda path, **more: write(path, model={"dropout": 0.3, "memory": 0, "position": "rotary"}, **more),
}


def drawn(make, tmp_path, agree):
    """The loss that is learned from, a model and a batch, with examples of different lengths where there are any."""
    made = prepare(make(tmp_path, train={"smoothing": 0.1, "agree": agree}), lambda _: None)
    train = made.run.recipe.train
    _, _, batch = next(made.task.walk(made.train, train, 0, 0, 0))

    def loss(model):
        (term,) = made.task.terms(model, batch, train).values()
        return term.sum

    return loss, made.run.model.double().train(), batch


@pytest.mark.parametrize("name", TASKS)
def test_without_dropout_it_is_the_loss_itself(name, tmp_path):
    (once, model, _), (twice, _, _) = (drawn(TASKS[name], tmp_path, agree) for agree in (0.0, 3.0))
    with evaluating(model):
        once, twice = once(model), twice(model)
    torch.testing.assert_close(twice, once)


@pytest.mark.parametrize("name", TASKS)
def test_with_dropout_it_is_the_law_of_two_passes(name, tmp_path):
    """The same dropout, drawn again: scores of every prediction, then the formula."""
    loss, model, batch = drawn(TASKS[name], tmp_path, 3.0)
    torch.manual_seed(3)
    ours = loss(model)
    torch.manual_seed(3)
    double = batch.twice()
    shown = [each for each in (*double.x.values(), double.given) if each is not None]
    (wanted,) = (each.flatten() for key, each in batch.y.values.items() if key != "tokens")
    first, second = model(*shown).flatten(0, -2).unflatten(0, (2, -1))[:, wanted >= 0]
    assert not torch.allclose(first, second)
    theirs = score_loss(torch.stack([first, second]), wanted[wanted >= 0], 0.1, 3.0).sum()
    torch.testing.assert_close(ours, theirs)
    assert ours > score_loss(torch.stack([first, second]), wanted[wanted >= 0], 0.1).sum()


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
