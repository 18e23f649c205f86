"""Layers and models whose masks are sparse: what a cache remembers of them, and what is seen by who watches."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade.attend.mask import as_mask
from saccade.config import ModelConfig

CACHED = [
    "causal & window(7)",
    "causal & dilated(3, 4)",
    "causal & bigbird(4, 1, 1, 1)",
    "causal & blocks(5, before=1)",
]


@pytest.mark.parametrize("mask", CACHED)
@pytest.mark.parametrize("kernel", ["auto", "block"])
@pytest.mark.parametrize("position", [None, "rotary", "alibi"])
def test_cached_is_uncached(mask, kernel, position, monkeypatch):
    monkeypatch.setattr("saccade.attend.cache.FORGET", 4)
    monkeypatch.setattr("saccade.attend.cache.SLACK", 2)
    torch.manual_seed(0)
    layer = saccade.Attention(12, 6, kv_heads=3, mask=mask, position=position, kernel=kernel).double()
    x = torch.randn(2, 41, 12, dtype=torch.float64)
    with torch.no_grad():
        whole, cache, parts = layer(x), saccade.Cache(layer.window), []
        for step in (13, 1, 1, 8, *[1] * 18):
            parts.append(layer(x[:, sum(part.shape[1] for part in parts) :][:, :step], cache=cache))
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-10, atol=1e-10)
    assert layer.window == {CACHED[0]: 7, CACHED[1]: 9}.get(mask)
    assert layer.window is None or cache.held < 41


@pytest.mark.parametrize("mask", CACHED[:3])
def test_a_model_decodes_as_it_reads(mask):
    torch.manual_seed(0)
    config = ModelConfig(
        decoder=2, width=16, heads=2, hidden=16, vocab=23, head="vocabulary", mask=mask, position="rotary"
    )
    model = saccade.build(config).double().eval()
    prompts = [[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1]]
    written = saccade.generate(model, prompts, max_tokens=20)
    for prompt, found in zip(prompts, written, strict=True):
        tokens = list(prompt)
        with torch.no_grad():
            for token in found.tokens:
                assert int(model(torch.tensor([tokens]))[0, -1].argmax()) == token
                tokens.append(token)


@pytest.mark.parametrize("mask", CACHED[:3])
def test_watching_changes_nothing(mask):
    torch.manual_seed(0)
    layer = saccade.Attention(12, 6, kv_heads=3, mask=mask, kernel="block").double()
    x = torch.randn(2, 41, 12, dtype=torch.float64)
    before = layer(x)
    with saccade.watch(layer) as seen:
        assert torch.equal(layer(x), before)
    (name,) = seen.layers
    weights = seen.weights(name)
    assert torch.equal(weights > 0, as_mask(mask)(41).expand(2, 6, 41, 41))
    torch.testing.assert_close(seen.weights(name, head=4, rows=[7, 40]), weights[:, 4, [7, 40]], rtol=1e-10, atol=1e-10)
