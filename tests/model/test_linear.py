"""A handful of rows, turned: the same product."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from saccade.model import linear as room


@pytest.mark.parametrize("shape", [(1, 37), (5, 37), (8, 37), (2, 4, 37), (16, 37), (17, 37), (0, 37)])
@pytest.mark.parametrize("bias", [False, True])
def test_as_torch(shape, bias, monkeypatch):
    """In float32 and outside of gradients it may go another way; elsewhere it is torch's own, bit for bit."""
    monkeypatch.setattr(room, "LARGE", 1)
    torch.manual_seed(0)
    x, weight, offset = torch.randn(shape), torch.randn(53, 37), torch.randn(53) if bias else None
    with torch.no_grad():
        found = room.linear(x, weight, offset)
        torch.testing.assert_close(found, F.linear(x, weight, offset))
        assert found.is_contiguous()
    assert torch.equal(room.linear(x, weight, offset), F.linear(x, weight, offset))
    x, weight, offset = x.double(), weight.double(), None if offset is None else offset.double()
    with torch.no_grad():
        assert torch.equal(room.linear(x, weight, offset), F.linear(x, weight, offset))


def test_rows_of_a_batch_are_turned(monkeypatch):
    calls = []
    mm = torch.mm
    monkeypatch.setattr(torch, "mm", lambda *given: calls.append(1) or mm(*given))
    with torch.no_grad():
        for rows, columns, turned in ((8, 1024, True), (8, 8, False), (12, 8, True), (4, 1024, False), (17, 8, False)):
            calls.clear()
            room.linear(torch.randn(rows, 1024), torch.randn(columns, 1024))
            assert bool(calls) == turned
            calls.clear()
            room.linear(torch.randn(rows, 1024), torch.randn(1024, columns).t())
            assert not calls
