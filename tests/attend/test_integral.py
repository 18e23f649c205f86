"""The Fourier integral score against its formula multiplied out, where a product would vanish, and at its kernels."""

import math
from itertools import product

import pytest
import torch
from torch.autograd import gradcheck

import saccade
from saccade import SaccadeError
from saccade.attend.integral import NEAR, LogSinc, integral
from saccade.attend.score import as_score, pairs

B, H, G, T, S, D = 2, 6, 3, 5, 7, 11


def randn(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def qkv():
    return randn(B, H, T, D, seed=1), randn(B, G, S, D, seed=2), randn(B, G, S, D, seed=3)


def estimate(q, k, radius, power):
    """prod_d (sin(z_d) / z_d)^power, as the paper writes it."""
    found = 1.0
    for a, b in zip(q, k, strict=True):
        z = radius * (a - b)
        found *= (math.sin(z) / z if z else 1.0) ** power
    return found


def law(q, k, radii, power, may=None):
    """The paper's ratio, by loops, (B,H,T,S)."""
    weights = torch.zeros(*q.shape[:3], k.shape[2], dtype=torch.float64)
    for b, h, t, s in product(*map(range, weights.shape)):
        if may is None or may[t, s]:
            key = k[b, h * k.shape[1] // q.shape[1], s].tolist()
            weights[b, h, t, s] = estimate(q[b, h, t].tolist(), key, radii[h], power)
    return weights / weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("power", [2, 4, 6])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_weights_are_the_papers(power, mask, qkv):
    q, k, v = qkv
    score = integral(D, H, power=power).double()
    with torch.no_grad():
        score.radius += torch.linspace(-0.3, 1.5, H).double().view(-1, 1, 1)
    may = None if mask is None else saccade.causal(T, S)
    wanted = law(q, k, score.radius.flatten().tolist(), power, may)
    torch.testing.assert_close(saccade.weights(q, k, score=score, mask=mask), wanted, rtol=1e-10, atol=1e-14)
    for kernel in ("plain", "chunked", "auto"):
        found = saccade.attention(q, k, v, score=score, mask=mask, kernel=kernel)
        torch.testing.assert_close(found, wanted @ v.repeat_interleave(H // G, 1), rtol=1e-10, atol=1e-12)


def test_one_radius_may_serve_all_heads(qkv):
    q, k, _ = qkv
    torch.testing.assert_close(saccade.weights(q, k, score=integral(D, radius=0.75).double()), law(q, k, [0.75] * H, 4))


def test_many_dimensions_do_not_vanish():
    """In float32 every product is 0 here, and the ratio 0 / 0; the weights are those of float64."""
    q, k = randn(1, 1, 9, 64, seed=4), randn(1, 1, 9, 64, seed=5)
    may = saccade.causal(9)  # whose first rows see no key that is near
    wanted = law(q, k, [1.5], 4, may)
    score = integral(64, radius=1.5)
    products = torch.sinc((q.unsqueeze(3) - k.unsqueeze(2)).float() * 1.5 / math.pi).pow(4).prod(-1)
    assert not products.any()
    q, k = q.float().requires_grad_(), k.float().requires_grad_()
    found = saccade.weights(q, k, score=score, mask="causal")
    torch.testing.assert_close(found.double(), wanted, rtol=2e-3, atol=1e-6)
    saccade.attention(q, k, torch.randn(1, 1, 9, 64), score=score, mask="causal").square().sum().backward()
    assert all(each.grad.isfinite().all() and each.grad.any() for each in (q, k, score.radius))


def test_equal_vectors_are_safe(qkv):
    """q = k, where sin(z) / z is 0 / 0: the score is 0, the largest there is, and its gradient too."""
    q = qkv[0].clone().requires_grad_()
    score = integral(D, H).double()
    scores = score(q, q.detach())
    assert torch.equal(scores.diagonal(dim1=-2, dim2=-1), torch.zeros(B, H, T, dtype=torch.float64))
    assert scores.max() == 0
    (slope,) = torch.autograd.grad(scores.diagonal(dim1=-2, dim2=-1).sum(), q)
    assert not slope.any()


def test_zeros_of_the_sine_are_safe():
    """A key at a multiple of pi / R has weight 0; where all are, the weights and gradients are still numbers."""
    k = torch.tensor([math.pi, -3 * math.pi, 1e6], dtype=torch.float64).view(1, 1, 3, 1).requires_grad_()
    q = torch.zeros(1, 1, 1, 1, dtype=torch.float64, requires_grad=True)
    score = integral(1, radius=1.0).double()
    weights = saccade.weights(q, k, score=score)
    assert weights[..., 2] > 1 - 1e-12
    for keys in (k, k[:, :, :2], k[:, :, :1]):
        slopes = torch.autograd.grad(saccade.attention(q, keys, k[:, :, : keys.shape[2]], score=score).sum(), (q, k))
        assert all(each.isfinite().all() for each in slopes)


def test_gradients(qkv):
    q, k, _ = (each[:1, :, :3].clone().requires_grad_() for each in qkv)
    score = integral(D, H).double()
    with torch.no_grad():
        q[0, 0, 0], q[0, 0, 1] = k[0, 0, 0] + 1e-7, k[0, 0, 1] + NEAR / score.radius[0].item()  # both sides of the seam
    k = k.detach().repeat_interleave(2, 1).requires_grad_()
    assert gradcheck(lambda *_: score(q, k), (q, k, score.radius))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_logarithm_is_exact_everywhere(dtype):
    """Against float64 by way of half angles near 0: sin(z) / z = cos(z / 2) cos(z / 4) ..."""
    z = torch.tensor([1e-15, 1e-9, 1e-4, 0.01, 0.1, 0.2499, 0.2501, 1.0, 3.0, 3.2, 100.0], dtype=dtype)
    z = torch.cat((z, -z)).requires_grad_()
    exact = z.detach().double()
    wanted = sum(torch.log1p(-2 * torch.sin(exact / 2 ** (n + 1)).square()) for n in range(1, 40))
    small = exact.abs() <= 1
    found = LogSinc.apply(z)
    epsilon = torch.finfo(dtype).eps
    torch.testing.assert_close(found.detach().double()[small], wanted[small], rtol=20 * epsilon, atol=0)
    torch.testing.assert_close(
        found.detach().double()[~small], (exact.sin() / exact).abs().log()[~small], rtol=20 * epsilon, atol=0
    )
    (slope,) = torch.autograd.grad(found.sum(), z)
    slopes = sum(-torch.tan(exact / 2**n) / 2**n for n in range(1, 40))
    torch.testing.assert_close(slope.double()[small], slopes[small], rtol=200 * epsilon, atol=0)
    assert torch.equal(slope[:11], -slope[11:])


def test_it_starts_as_sharp_as_a_scaled_dot():
    """Near 0 the score is -|q - k|^2 / (2 sqrt(D)), to softmax q.k / sqrt(D) where keys are equally long."""
    q, k = (torch.nn.functional.normalize(randn(1, 1, 9, 64, seed=each), dim=-1) for each in (6, 7))
    near = saccade.weights(q, k, score=integral(64).double())
    torch.testing.assert_close(near, saccade.weights(q, k), rtol=1e-2, atol=0)


def test_chunks_know_what_a_pair_costs(qkv, monkeypatch):
    from saccade.attend import chunked

    q, k, v = (each.clone().requires_grad_() for each in qkv)
    score = integral(D, H).double()
    assert pairs(score) == D
    monkeypatch.setattr(chunked, "BUDGET", 2 * B * H * S * D)  # two rows at a time
    outputs = [saccade.attention(q, k, v, score=score, mask="causal", kernel=each) for each in ("plain", "chunked")]
    torch.testing.assert_close(*outputs)
    inputs = (q, k, v, score.radius)
    torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), inputs) for each in outputs))


def test_a_model_has_it_in_one_line():
    torch.manual_seed(0)
    config = {"vocab": 31, "width": 24, "heads": 3, "decoder": 2, "position": "rotary", "score": "integral"}
    model = saccade.build(saccade.ModelConfig(**config, head="vocabulary")).eval()
    x = torch.randint(31, (2, 9))
    model(x).square().mean().backward()
    assert all(block.attention.score.radius.grad.any() for block in model.decoder.blocks)
    state = model.start()
    with torch.no_grad():
        steps = [model.decode_step(x[:, t : t + 1], state) for t in range(9)]
        torch.testing.assert_close(torch.cat(steps, 1), model(x), rtol=1e-4, atol=1e-5)


def test_what_it_refuses(qkv):
    q, k, v = qkv
    score = integral(D, H).double()
    for kernel in ("sdpa", "linear"):
        with pytest.raises(SaccadeError, match=rf"^{kernel} .*integral.*use 'plain'"):
            saccade.attention(q, k, v, score=score, kernel=kernel)
    for call in (
        lambda: saccade.attention(q, k, v, score=score, normaliser="sum"),
        lambda: saccade.Attention(24, 3, score="integral", normaliser="sum"),
    ):
        with pytest.raises(SaccadeError, match=r"integral is the logarithm of its weights.*'softmax', not 'sum'$"):
            call()
    with pytest.raises(SaccadeError, match=r"^this integral score was built for 6 heads of width 11; q has 3 of"):
        score(q[:, :3], k)
    with pytest.raises(SaccadeError, match=r"^this integral score was built for 6 heads of width 5; q has 6 of"):
        integral(5, H)(q, k)


@pytest.mark.parametrize("text", ["integral(power=3)", "integral(power=0)", "integral(power=2.0)", "integral(power=x)"])
def test_powers_are_even(text):
    with pytest.raises(SaccadeError, match=r"^integral: power is an even number from 2; got"):
        as_score(text, width=D, heads=H)


@pytest.mark.parametrize(
    "text", ["integral(radius=0)", "integral(radius=-1)", "integral(radius=wide)", "integral(radius=True)"]
)
def test_radii_are_positive(text):
    with pytest.raises(SaccadeError, match=r"^integral: radius is a positive number; got"):
        as_score(text, width=D, heads=H)
