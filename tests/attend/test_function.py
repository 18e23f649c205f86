"""The free functions: what they refuse, each in one clear sentence, and what a call's defaults mean."""

from __future__ import annotations

import pytest
import torch
from examples import proofs
from torch._dynamo.testing import CompileCounter

import saccade
from saccade.attend.normaliser import sigmoid
from saccade.attend.position import alibi


def t(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    return torch.zeros(*shape, dtype=dtype, device=device)


@pytest.mark.parametrize(
    ("q", "k", "v", "options", "why"),
    [
        (t(2, 3, 5), t(2, 3, 7, 11), t(2, 3, 7, 11), {}, r"q must have the axes .* got shape \(2, 3, 5\)"),
        (t(2, 3, 5, 11), t(2, 3, 7), t(2, 3, 7, 11), {}, "k must have the axes"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), [1.0], {}, "v must be a tensor, not list"),
        (t(2, 3, 5, 11), t(2, 3, 7, 13), t(2, 3, 7, 11), {}, "q has heads of width 11 and k of 13"),
        (t(2, 3, 5, 11), t(3, 3, 7, 11), t(3, 3, 7, 11), {}, "q has a batch of 2 and k of 3"),
        (t(2, 3, 5, 11), t(2, 2, 7, 11), t(2, 2, 7, 11), {}, "2 key heads do not divide 3 query heads"),
        (t(2, 3, 5, 11), t(2, 0, 7, 11), t(2, 0, 7, 11), {}, "0 key heads do not divide 3"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 8, 11), {}, "k and v must have the same heads and length"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 1, 7, 11), {}, "k and v must have the same heads and length"),
        (t(2, 3, 5, 11).int(), t(2, 3, 7, 11).int(), t(2, 3, 7, 11).int(), {}, "q must be floating point; got int32"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11).double(), t(2, 3, 7, 11), {}, "q is float32 and k is float64"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11, device="meta"), t(2, 3, 7, 11), {}, "q is on cpu and k on meta"),
        (t(2, 3, 7, 11), t(2, 3, 5, 11), t(2, 3, 5, 11), {}, "7 queries over 5 keys: .* start=0"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"start": -1}, "cannot be negative"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"start": 1.5}, "start must be an integer"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"start": t(3).long()}, "start must be .* 2 integers"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": t(5, 7)}, "a mask is bool"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": t(5, 5).bool()}, "does not broadcast"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": t(1, 1, 1, 5, 7).bool()}, "got 5 axes"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": t(5, 7, device="meta").bool()}, "mask is on meta"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": 3}, "not int"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": "padding"}, "takes its lengths from the batch"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": saccade.padding([1, 2, 3])}, "3 entries .* of 2"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": saccade.document([0, 1])}, "covers 2 positions"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"mask": "causl"}, "did you mean 'causal'"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"score": "additive"}, "has weights: pass a module"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"score": 7}, "score is a spec string or a function"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"normaliser": "softmaxx"}, "did you mean"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"normaliser": 7}, "normaliser is a spec string"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"position": "learned(5)"}, "has weights"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"position": "sinusoid"}, "belongs to the input"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"position": "rotary"}, "even number"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"position": 7}, "position is a spec string"),
        (t(2, 3, 5, 11), t(2, 3, 7, 11), t(2, 3, 7, 11), {"dropout": 1.0}, "dropout is a share"),
    ],
)
def test_bad_input_is_told_in_one_sentence(q, k, v, options, why):
    with pytest.raises(saccade.SaccadeError, match=why) as problem:
        saccade.attention(q, k, v, **options)
    assert "\n" not in str(problem.value)


def test_the_last_query_stands_at_the_last_key():
    q, k, v = torch.randn(2, 3, 2, 5), torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5)
    seen = saccade.weights(q, k, mask="causal") > 0
    assert seen[0, 0].tolist() == [[True] * 6 + [False], [True] * 7]
    first = saccade.weights(q, k, mask="causal", start=0) > 0
    assert first[0, 0].tolist() == [[True] + [False] * 6, [True] * 2 + [False] * 5]
    each = saccade.weights(q, k, mask="causal", start=torch.tensor([0, 5])) > 0
    assert torch.equal(each[0], first[0])
    assert torch.equal(each[1], seen[1])
    torch.testing.assert_close(
        saccade.attention(q, k, v, mask="causal", start=torch.tensor(5)), saccade.attention(q, k, v, mask="causal")
    )


def test_autocast_brings_types_together():
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8).bfloat16(), torch.randn(2, 3, 5, 8).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert saccade.attention(q, k, v).shape == (2, 3, 5, 8)


@pytest.mark.parametrize("position", [None, alibi()], ids=repr)
@pytest.mark.parametrize("mask", proofs([None, "causal", "causal & window(3)"], but=["causal & window(3)"]))
def test_compiled_once_for_all_lengths(mask, position):
    """Once for the first length, since others are not expected then, and once for all that follow."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(lambda q: saccade.attention(q, q, q, mask=mask, position=position), backend=counter)
    for T in (5, 6, 7, 9, 12):
        q = torch.randn(2, 2, T, 4)
        torch.testing.assert_close(compiled(q), saccade.attention(q, q, q, mask=mask, position=position))
    assert counter.frame_count == 2


def test_functions_can_be_compiled_whole():
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    lengths = torch.tensor([3, 5])

    def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        masked = saccade.attention(q, k, v, mask=saccade.causal & saccade.padding(lengths))
        return masked + saccade.attention(q, k, v, mask=saccade.window(3), normaliser=sigmoid(), kernel="plain")

    compiled = torch.compile(step, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v, lengths), step(q, k, v, lengths))
    dirty = k.clone()
    dirty[0, :, 3:] = torch.nan
    masked = torch.compile(
        lambda k: saccade.attention(q, k, v, mask=saccade.padding(lengths)), backend="eager", fullgraph=True
    )
    torch.testing.assert_close(masked(dirty), saccade.attention(q, k, v, mask=saccade.padding(lengths)))
