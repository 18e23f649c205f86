"""A past that was folded into a state writes what the whole past would have written."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade.attend import cache as room

SCORES = ["feature(favor, 9, seed=0)", "feature(fourier, 10, seed=0)", "feature(elu)"]
PROMPTS = [[3, 4, 5, 3, 4, 5, 3], [7], [5, 6] * 20]


def model(score: str) -> saccade.Model:
    torch.manual_seed(0)
    config = {"vocab": 29, "width": 16, "heads": 4, "kv_heads": 2, "hidden": 17, "decoder": 2, "head": "vocabulary"}
    made = saccade.build(saccade.ModelConfig(**config, score=score, normaliser="sum", position="rotary"))
    return made.double().eval()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    "options",
    [{}, {"beam": 3, "n": 2}, {"draft": "lookup"}, {"temperature": 0.8, "seed": 1, "n": 3}],
    ids=lambda options: "-".join(options) or "greedy",
)
def test_folding_changes_no_text(score, options, monkeypatch):
    ours = model(score)

    def write():
        found = saccade.generate(ours, PROMPTS, max_tokens=40, **options)
        return [each if isinstance(each, list) else [each] for each in found]

    kept = write()
    monkeypatch.setattr(room, "FOLD", 2)
    monkeypatch.setattr(room, "SLACK", 12)
    for a, b in zip(kept, write(), strict=True):
        assert [each.tokens for each in a] == [each.tokens for each in b]
        for one, other in zip(a, b, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-9)


def test_the_memory_of_a_long_text_does_not_grow():
    ours = model(SCORES[0])
    with torch.inference_mode():
        state = ours.start()
        ours.decode_step(torch.randint(0, 29, (1, 500)), state)
        sizes = []
        for _ in range(200):
            ours.decode_step(torch.randint(0, 29, (1, 1)), state)
            sizes.append(state.caches[0].own._keys.shape[2])
    assert state.length == 700
    assert max(sizes[50:]) <= room.SLACK + room.FORGET + room.BLOCK
