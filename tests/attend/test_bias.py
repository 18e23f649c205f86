"""A bias that belongs to the call: added to the scores, the same in every kernel that takes one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import saccade
from saccade import SaccadeError

B, H, T, S, D = 2, 6, 7, 11, 5
SHAPES = [(B, H, T, S), (1, H, T, S), (B, 1, T, S), (T, S), (1, S), (B, H, 1, S), (T, 1), (H, 1, 1)]


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def given(groups: int = H) -> tuple[Tensor, Tensor, Tensor]:
    return random(B, H, T, D), random(B, groups, S, D, seed=1), random(B, groups, S, D, seed=2)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_by_definition(shape):
    q, k, v = given()
    bias = random(*shape, seed=3)
    scores = q @ k.mT / D**0.5 + bias
    close(saccade.weights(q, k, bias=bias), scores.softmax(-1))
    close(saccade.attention(q, k, v, bias=bias, kernel="plain"), scores.softmax(-1) @ v)


@pytest.mark.parametrize("kernel", ["auto", "sdpa", "chunked", "block"])
@pytest.mark.parametrize("mask", [None, "causal", "window(3)", saccade.padding([4, 11])], ids=str)
@pytest.mark.parametrize("position", [None, "alibi"])
@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_every_kernel_adds_it_with_gradients(kernel, mask, position, shape, monkeypatch):
    monkeypatch.setattr("saccade.attend.chunked.BUDGET", 2 * B * H * S)  # two queries at a time
    found = []
    for each in ("plain", kernel):
        inputs = [*given(2), random(*shape, seed=3)]
        inputs = [one.requires_grad_() for one in inputs]
        output = saccade.attention(*inputs[:3], bias=inputs[3], mask=mask, position=position, kernel=each)
        output.backward(random(B, H, T, D, seed=4))
        found.append([output, *(one.grad for one in inputs)])
    for a, b in zip(*found, strict=True):
        close(a, b)


def test_a_sharp_softmax_sharpens_it_too():
    q, k, v = given()
    bias = random(T, S, seed=3)
    wanted = saccade.attention(q, k, v, bias=bias, normaliser="softmax(2.5)", kernel="plain")
    close(saccade.attention(q, k, v, bias=bias, normaliser="softmax(2.5)", kernel="sdpa"), wanted)


def test_what_is_hidden_stays_hidden():
    """Whoever may look at nothing gets zeros; a bias that is NaN where nobody may look reaches nobody."""
    q, k, v = given()
    bias = random(B, H, T, S, seed=3)
    broken = bias.masked_fill(~saccade.padding([4, 0])(T, S), torch.nan)
    for kernel in ("plain", "sdpa", "chunked"):
        found = saccade.attention(q, k, v, bias=broken, mask=saccade.padding([4, 0]), kernel=kernel)
        close(found, saccade.attention(q, k, v, bias=bias, mask=saccade.padding([4, 0]), kernel="plain"))
        assert (found[1] == 0).all()


def test_a_layer_adds_it_and_watching_tells():
    layer, x = saccade.Attention(12, 3).double(), random(B, T, 12)
    bias = random(B, 3, T, T, seed=3)
    q, k, v = (each(x).unflatten(2, (3, 4)).transpose(1, 2) for each in (layer.query, layer.key, layer.value))
    with saccade.watch(layer) as seen:
        said = layer(x, bias=bias)
    close(said, layer.out(saccade.attention(q, k, v, bias=bias).transpose(1, 2).flatten(2)))
    wanted = saccade.weights(q, k, bias=bias)
    close(seen.weights("attention"), wanted)
    close(seen.weights("attention", head=1, rows=[5, 2]), wanted[:, 1, [5, 2]])
    bias += 1
    with pytest.raises(SaccadeError, match="have changed since it was watched"):
        seen.weights("attention")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            lambda: saccade.attention(*given(), bias=random(T, S + 1)),
            r"broadcast to \(B,H,T,S\) = \(2, 6, 7, 11\); got",
        ),
        (lambda: saccade.attention(*given(), bias=torch.zeros(T, S, dtype=torch.long)), "numbers that broadcast"),
        (lambda: saccade.weights(*given()[:2], bias=3.0), "got float"),
        (
            lambda: saccade.attention(
                *given(), bias=random(T, S), score="feature(elu)", normaliser="sum", kernel="linear"
            ),
            "linear makes no scores to add a bias to: use 'plain' or 'chunked'",
        ),
        (
            lambda: saccade.Attention(12, 3, summary="linformer(4, 7)")(torch.zeros(1, 7, 12), bias=torch.zeros(7, 7)),
            "a bias is for pairs of queries and keys",
        ),
    ],
)
def test_what_does_not_fit_is_told(call, why):
    with pytest.raises(SaccadeError, match=why):
        call()


@pytest.mark.parametrize("mask", [None, "causal", saccade.padding([4, 11]), "blind"], ids=str)
@pytest.mark.parametrize("normaliser", ["softmax", "softmax(2.5)"])
@pytest.mark.parametrize("score", ["scaled_dot", "cosine"])
def test_a_bias_that_is_learned(mask, normaliser, score):
    """One that has a gradient and a table for each head of each example, beside a hidden key that is NaN; `blind`: one
    query sees nothing.
    """
    if mask == "blind":
        mask = torch.ones(1, 1, T, S, dtype=torch.bool)
        mask[:, :, 3] = False
    found = []
    for kernel in ("plain", "sdpa"):
        q, k, v = given()
        if isinstance(mask, saccade.padding):
            k[0, :, 4:], v[0, :, 4:] = torch.nan, torch.inf
        inputs = [one.requires_grad_() for one in (q, k, v, random(B, H, T, S, seed=3))]
        output = saccade.attention(
            *inputs[:3], bias=inputs[3], mask=mask, score=score, normaliser=normaliser, kernel=kernel
        )
        output.backward(random(B, H, T, D, seed=4))
        found.append([output, *(one.grad for one in inputs)])
    for a, b in zip(*found, strict=True):
        assert b.isfinite().all()
        close(a, b)


def test_a_learned_bias_has_second_derivatives():
    inputs = [each[:1, :2, :3].requires_grad_() for each in (*given(), random(B, H, T, S, seed=3)[..., :3])]
    assert torch.autograd.gradgradcheck(
        lambda q, k, v, bias: saccade.attention(q, k, v, bias=bias, kernel="sdpa"), inputs
    )
