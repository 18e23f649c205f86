"""The loss in slices against torch's, values and gradients, in float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from saccade import Model, ModelConfig
from saccade.field import loss
from saccade.field.loss import score_loss, token_loss

SMALL = {"vocab": 53, "width": 6, "heads": 3, "decoder": 1, "head": "vocabulary"}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("change", [{}, {"output_bias": True}, {"scale_output": True}, {"tie": False}])
def test_as_torch_computes_it(change, smoothing, monkeypatch):
    monkeypatch.setattr(loss, "SLICE", 53 * 5)  # several slices, the last one shorter
    torch.manual_seed(0)
    model = Model(ModelConfig(**(SMALL | change))).double()
    states = torch.randn(29, 6, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 53, (29,))
    inputs = [states, *model.head.parameters()]
    ours = token_loss(model, states, targets, smoothing) / 29
    theirs = F.cross_entropy(model.answer(states[None])[0], targets, label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b)


def test_without_gradients():
    model = Model(ModelConfig(**SMALL))
    states, targets = torch.randn(7, 6), torch.randint(0, 53, (7,))
    with torch.no_grad():
        found = token_loss(model, states, targets)
    torch.testing.assert_close(found, F.cross_entropy(model.answer(states[None])[0], targets, reduction="sum"))


def test_other_heads_take_the_long_way():
    model = Model(ModelConfig(**(SMALL | {"head": "masked", "decoder": 0, "encoder": 1})))
    states, targets = torch.randn(7, 6), torch.randint(0, 53, (7,))
    found = token_loss(model, states, targets, 0.1)
    scores = model.answer(states[None])[0]
    torch.testing.assert_close(found, F.cross_entropy(scores, targets, label_smoothing=0.1, reduction="sum"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("change", [{}, {"output_bias": True}, {"scale_output": True}])
def test_two_passes_agree(change, smoothing, monkeypatch):
    """Values and gradients of the slices, against torch's own divergence."""
    monkeypatch.setattr(loss, "SLICE", 53 * 5)
    torch.manual_seed(0)
    model = Model(ModelConfig(**(SMALL | change))).double()
    states = torch.randn(2 * 17, 6, dtype=torch.float64, requires_grad=True)
    targets, weights = torch.randint(0, 53, (17,)), torch.rand(17, dtype=torch.float64)
    p, q = model.answer(states[None])[0].unflatten(0, (2, 17)).log_softmax(-1)
    apart = [F.kl_div(a, b, log_target=True, reduction="none").sum(-1) for a, b in ((p, q), (q, p))]
    said = [F.cross_entropy(each, targets, label_smoothing=smoothing, reduction="none") for each in (p, q)]
    theirs = ((said[0] + said[1]) / 2 + 1.5 * (apart[0] + apart[1]) / 2) * weights
    ours = token_loss(model, states, targets, smoothing, weights, agree=1.5)
    torch.testing.assert_close(ours, theirs.sum())
    inputs = [states, *model.head.parameters()]
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs.sum(), inputs), strict=True):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        torch.testing.assert_close(token_loss(model, states, targets, smoothing, weights, agree=1.5), ours.detach())


def test_passes_that_say_the_same_cost_nothing_more():
    scores, targets = torch.randn(1, 5, 7), torch.randint(0, 7, (5,))
    once, twice = score_loss(scores, targets, 0.1), score_loss(scores.repeat(2, 1, 1), targets, 0.1, agree=3.0)
    torch.testing.assert_close(twice, once)


def test_without_gradients_none_are_made(monkeypatch):
    """Validation pays for the loss alone, though the weights could learn."""
    monkeypatch.setattr(loss, "_loss_and_gradient", lambda *_: pytest.fail("gradients were made"))
    model = Model(ModelConfig(**SMALL))
    with torch.inference_mode():
        token_loss(model, torch.randn(7, 6), torch.randint(0, 53, (7,)), 0.1)


def test_half_precision_is_summed_in_float32():
    torch.manual_seed(0)
    model = Model(ModelConfig(**SMALL)).bfloat16()
    states, targets = torch.randn(3000, 6).bfloat16().requires_grad_(), torch.randint(0, 53, (3000,))
    wanted = F.cross_entropy(model.answer(states[None])[0].float(), targets, reduction="sum")
    found = token_loss(model, states, targets)
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)
    with torch.no_grad():
        torch.testing.assert_close(token_loss(model, states, targets), wanted, rtol=1e-5, atol=0)
    assert score_loss(torch.randn(1, 5, 7).bfloat16(), torch.randint(0, 7, (5,))).dtype is torch.float32
    assert score_loss(torch.randn(1, 5, 7).double(), torch.randint(0, 7, (5,))).dtype is torch.float64
