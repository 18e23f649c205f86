"""Learning from whole translations: the score is GLEU, and the gradient is that of its expectation."""

from __future__ import annotations

import json
from itertools import product

import pytest
import torch

import saccade
from saccade.field.loss import token_loss
from saccade.recipes.read import from_values
from saccade.task.reward import TranslationSampling, advantages, draw, gleu, regret, unlikelihood

BEGIN, END, MOST = 1, 2, 3
SOURCES, REFERENCES = [[3, 4, 2], [4, 2]], [[3, 4], [4]]


def model_of(dropout=0.0):
    torch.manual_seed(0)
    config = saccade.ModelConfig(
        vocab=5,
        width=8,
        heads=2,
        hidden=11,
        encoder=1,
        decoder=1,
        position="sinusoid",
        head="vocabulary",
        dropout=dropout,
    )
    model = saccade.build(config).double()
    with torch.no_grad():  # further from even, so that a wrong sign shows
        for each in model.parameters():
            each += 0.3 * torch.randn_like(each)
    return model


@pytest.mark.parametrize(
    ("written", "reference", "score"),
    [
        ([3, 4], [3, 4], 1.0),
        ([], [], 1.0),
        ([], [3], 0.0),
        ([5, 6], [3, 4], 0.0),
        ([3, 4, 5], [3, 4], 3 / 6),  # 3 4 34 of 3 4 5 34 45 345
        ([3], [3, 4], 1 / 3),
        ([3, 3, 3], [3], 1 / 6),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], 1.0),
    ],
)
def test_gleu(written, reference, score):
    assert gleu(written, reference) == pytest.approx(score)


def everything():
    """All that may be written: tokens up to the end, or as many as there may be."""
    for length in range(1, MOST + 1):
        for tokens in product(range(5), repeat=length):
            if END not in tokens[:-1] and (tokens[-1] == END or length == MOST):
                yield list(tokens)


def exact(model) -> torch.Tensor:
    """Minus the expected score, by enumeration."""
    total = torch.zeros((), dtype=torch.double)
    for source, reference in zip(SOURCES, REFERENCES, strict=True):
        for said in everything():
            shown = torch.tensor([[BEGIN, *said[:-1]]])
            logs = model(torch.tensor([source]), shown)[0].log_softmax(-1)
            likely = logs[range(len(said)), said].sum().exp()
            total = total - likely * gleu([each for each in said if each != END], reference)
    return total


def gradients(model, loss):
    return torch.cat(
        [
            each.flatten()
            for each in torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
            if each is not None
        ]
    )


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_the_gradient_is_that_of_exact_enumeration(dropout):
    """Of the model that writes, which drops nothing, also while it trains."""
    model = model_of(dropout).eval()
    wanted = gradients(model, exact(model))
    sources, said, worth = [], [], []
    for source, reference in zip(SOURCES, REFERENCES, strict=True):
        for each in everything():
            logs = model(torch.tensor([source]), torch.tensor([[BEGIN, *each[:-1]]]))[0].log_softmax(-1)
            likely = float(logs[range(len(each)), each].sum().exp().detach())
            sources, said = [*sources, source], [*said, each]
            worth.append(likely * (gleu([token for token in each if token != END], reference) - 0.37))  # any baseline
    model.train()
    found = gradients(model, unlikelihood(model, sources, said, torch.tensor(worth, dtype=torch.double), BEGIN))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_samples_estimate_it_without_bias():
    model = model_of()
    wanted = gradients(model, exact(model))
    torch.manual_seed(7)
    draws = [
        gradients(model, regret(model, SOURCES, REFERENCES, TranslationSampling(BEGIN, END, 200, MOST)))
        for _ in range(12)
    ]
    mean, error = torch.stack(draws).mean(0), torch.stack(draws).std(0) / len(draws) ** 0.5
    away = ((mean - wanted) / error.clamp(min=1e-6)).abs()
    assert away.median() < 1.5
    assert torch.dot(mean, wanted) / mean.norm() / wanted.norm() > 0.97


@pytest.mark.proof
def test_what_is_drawn_is_worth_what_the_model_expects():
    model = model_of()
    found, scores = draw(model, SOURCES, REFERENCES, TranslationSampling(BEGIN, END, 4000, MOST), seed=1)
    assert [len(row) for row in found] == [4000, 4000]
    assert float(scores.mean(1).sum()) == pytest.approx(-float(exact(model).detach()), abs=0.03)


def test_the_baseline_is_the_mean_of_the_others():
    assert advantages(torch.tensor([[1.0, 0.0, 0.5]])).tolist() == [[0.75, -0.75, 0.0]]


def test_weights_of_rows_in_the_loss():
    model = model_of().float()
    states, targets, weights = torch.randn(7, 8, requires_grad=True), torch.randint(5, (7,)), torch.randn(7)
    found = token_loss(model, states, targets, 0.1, weights)
    logits = model.answer(states[None])[0]
    wanted = (torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="none") * weights).sum()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    (a,), (b,) = (torch.autograd.grad(each, states, retain_graph=True) for each in (found, wanted))
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.proof
def test_a_recipe_learns_from_rewards_and_resumes_exactly(tmp_path, monkeypatch):
    values = {
        "task": "translate",
        "data": {"name": "copy", "examples": 300, "held": 20, "tokenizer": "words", "limit": 60},
        "model": {"width": 12, "heads": 2, "hidden": 17, "encoder": 1, "decoder": 1, "position": "sinusoid"},
        "train": {"steps": 4, "batch": 300, "every": 2, "reward": 0.7, "samples": 2},
        "decode": {"max_tokens": 60},
    }
    whole = saccade.train(from_values(values), run=tmp_path / "whole")
    monkeypatch.setattr("saccade.learn.loop.Loop._enough", lambda self: self.state["step"] == 2)
    saccade.train(from_values(values), run=tmp_path / "parts")
    monkeypatch.undo()
    parts = saccade.train(from_values(values), run=tmp_path / "parts")
    assert parts.step == whole.step == 4
    told = [json.loads(line) for line in (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()]
    validations = [each for each in told if "validation" in each]
    assert [each["step"] for each in validations] == [0, 2, 4]  # and once before the first step
    assert all(0 <= each["validation"]["sampled_gleu"] <= 1 for each in validations)
    for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("objective", "why"),
    [
        ("reward(0)", "a share above 0 and up to 1, and 2 samples or more; got 0, 4"),
        ("reward(1.5)", "got 1.5, 4"),
        ("reward(0.5, samples=1)", "got 0.5, 1"),
        ("reward(half)", "got half, 4"),
        ("rewards(0.5)", "no objective is called 'rewards'; did you mean 'reward'"),
    ],
)
def test_a_wrong_objective_is_told_before_anything_is_read(tmp_path, monkeypatch, objective, why):
    monkeypatch.setattr("saccade.learn.prepare.survey", lambda *_: pytest.fail("the data were read"))
    model = {"width": 8, "heads": 2, "encoder": 1, "decoder": 1}
    values = {"task": "translate", "data": {"name": "copy"}, "model": model}
    with pytest.raises(saccade.SaccadeError, match=why):
        saccade.train(from_values({**values, "train": {"steps": 2, "objective": objective}}), run=tmp_path / "run")


def test_rewards_are_for_translations(tmp_path):
    (tmp_path / "text.txt").write_text("the eye jumps\n" * 50)
    values = {
        "task": "write",
        "data": {"files": [str(tmp_path / "text.txt")], "tokenizer": "characters", "share": 0.2},
        "model": {"width": 8, "heads": 2, "decoder": 1},
        "train": {"steps": 2, "length": 7, "reward": 0.5},
    }
    with pytest.raises(saccade.SaccadeError, match="'reward' scores translations of a text, and the task is write"):
        saccade.train(from_values(values), run=tmp_path / "run")
