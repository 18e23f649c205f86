"""Dropout: the right share, the right mean, the same mask both ways, repeatable."""

from __future__ import annotations

import pytest
import torch

from saccade.model.dropout import dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_share_and_mean(p):
    torch.manual_seed(0)
    x = torch.ones(499, 1009)
    y = dropout(x, p, True)
    zero = (y == 0).double().mean().item()
    assert abs(zero - p) < 1 / 512 + 4 * (p * (1 - p) / x.numel()) ** 0.5
    assert abs(y.double().mean().item() - 1) < 0.01
    assert len(y.unique()) == 2


def test_gradients_pass_where_values_did():
    torch.manual_seed(1)
    x = torch.randn(7, 13, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.4, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)


def test_repeatable_and_independent():
    x = torch.ones(64, 64)
    torch.manual_seed(5)
    a, b = dropout(x, 0.5, True), dropout(x, 0.5, True)
    torch.manual_seed(5)
    assert torch.equal(a, dropout(x, 0.5, True))
    assert 0.4 < (a == b).double().mean().item() < 0.6


def test_nothing_at_rest_or_at_zero():
    x = torch.randn(3, 5)
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0, True) is x
