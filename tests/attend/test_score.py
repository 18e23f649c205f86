"""Scores against explicit loops, their gradients, and who may build those that have weights."""

import math
from itertools import product

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

import saccade
from saccade import SaccadeError
from saccade.attend.score import LEARNED, SCORES, additive, as_score, bilinear, cosine, dot, gate, scaled_dot

B, H, T, S, D, HIDDEN = 2, 3, 5, 7, 11, 13


@pytest.fixture
def q():
    torch.manual_seed(0)
    return torch.randn(B, H, T, D, dtype=torch.float64)


@pytest.fixture
def k(q):
    return torch.randn(B, H, S, D, dtype=torch.float64)


def sharp(score):
    """The score in float64 with arbitrary weights, so that biases which start at 0 count."""
    if isinstance(score, nn.Module):
        score.double()
        for parameter in score.parameters():
            nn.init.normal_(parameter)
    return score


def inner(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def columns(matrix):
    return list(zip(*matrix, strict=True))


def align(score, h, q, k):
    weights = (each[h].tolist() for each in (score.query, score.key, score.bias, score.vector))
    query, key, (bias,), vector = weights
    asked = [inner(q, column) for column in columns(query)]
    offered = [inner(k, column) for column in columns(key)]
    return sum(v * math.tanh(a + o + b) for (v,), a, o, b in zip(vector, asked, offered, bias, strict=True))


def turn(score, h, q, k):
    return sum(q[n] * score.weight[h, n, m].item() * k[m] for n, m in product(range(D), range(D)))


def open_gate(score, h, q, k):
    return inner(score.weight[h, :, 0].tolist(), k) + score.bias[h].item()


FORMULAS = {
    "dot": (dot, lambda _, h, q, k: inner(q, k)),
    "scaled_dot": (scaled_dot, lambda _, h, q, k: inner(q, k) / math.sqrt(11)),
    "scaled_dot(-0.3)": (lambda: scaled_dot(-0.3), lambda _, h, q, k: -0.3 * inner(q, k)),
    "cosine": (cosine, lambda _, h, q, k: inner(q, k) / math.sqrt(inner(q, q) * inner(k, k))),
    "bilinear": (lambda: bilinear(D, H), turn),
    "bilinear, shared": (lambda: bilinear(D), lambda score, h, q, k: turn(score, 0, q, k)),
    "additive": (lambda: additive(D, H, HIDDEN), align),
    "additive, shared": (lambda: additive(D), lambda score, h, q, k: align(score, 0, q, k)),
    "gate": (lambda: gate(D, H), open_gate),
    "gate, shared": (lambda: gate(D), lambda score, h, q, k: open_gate(score, 0, q, k)),
}
every = pytest.mark.parametrize("name", FORMULAS)


@every
@pytest.mark.parametrize("key_heads", [1, 3])
def test_formulas(name, key_heads, q, k):
    make, formula = FORMULAS[name]
    score, k = sharp(make()), k[:, :key_heads]
    scores = saccade.weights(q, k, score=score, normaliser="none")
    assert scores.shape == (B, H, T, S)
    for b, h, t, s in product(range(B), range(H), range(T), range(S)):
        wanted = formula(score, h, q[b, h, t].tolist(), k[b, h if key_heads == H else 0, s].tolist())
        assert scores[b, h, t, s].item() == pytest.approx(wanted, rel=1e-11, abs=1e-11)


@every
def test_gradients(name, q, k):
    score = sharp(FORMULAS[name][0]())
    q, k = (x[:1, :, :2, :].clone().requires_grad_() for x in (q, k))
    weights = list(score.parameters()) if isinstance(score, nn.Module) else []
    assert gradcheck(lambda *_: score(q, k), (q, k, *weights))  # it moves the weights in place


def test_a_zero_vector_has_cosine_zero(q, k):
    q[0, 1, 2], k[1, 2, 3] = 0.0, 0.0
    q.requires_grad_(), k.requires_grad_()
    scores = cosine()(q, k)
    assert not scores[0, 1, 2].any()
    assert not scores[1, 2, :, 3].any()
    assert scores.count_nonzero() == B * H * T * S - S - T
    scores.sum().backward()
    assert q.grad.isfinite().all()
    assert k.grad.isfinite().all()


def test_cosine_ignores_lengths(q, k):
    stretched = cosine()(q * torch.rand(B, H, T, 1).double() * 1e3, k * 1e-3)
    torch.testing.assert_close(stretched, cosine()(q, k))
    assert stretched.abs().max() <= 1 + 1e-12


def test_gate_looks_at_the_input_alone(q, k):
    score = sharp(gate(D, H))
    assert torch.equal(score(q, k), score(torch.randn_like(q), k))
    weights = saccade.weights(q, k, score=score)
    assert torch.equal(weights, weights[:, :, :1].expand_as(weights))


@pytest.mark.parametrize("name", LEARNED)
def test_a_score_with_weights_needs_a_home(name, q, k):
    sentence = (
        rf"^the score '{name}' has weights: pass a module, saccade\.attend\.score\.{name}\(width, heads\), or use"
    )
    for text in (name, f"{name}()", f"{name}(3)"):
        with pytest.raises(SaccadeError, match=sentence):
            saccade.attention(q, k, k, score=text)
        with pytest.raises(SaccadeError, match=sentence):
            saccade.weights(q, k, score=text)


@pytest.mark.parametrize(
    "text", [*(name for name in SCORES if name != "feature"), "feature(elu)", "additive(hidden=13)", "cosine()"]
)
def test_a_layer_builds_its_score(text):
    torch.manual_seed(0)
    layer = saccade.Attention(H * D, H, score=text).double()
    x = torch.randn(B, T, H * D, dtype=torch.float64)
    assert type(layer.score) is SCORES[text.partition("(")[0]]
    with saccade.watch(layer) as seen:
        layer(x).square().sum().backward()
    q, k = (each(x).unflatten(-1, (H, D)).transpose(1, 2) for each in (layer.query, layer.key))
    torch.testing.assert_close(seen.weights(seen.layers[0]), saccade.weights(q, k, score=layer.score))
    if isinstance(layer.score, nn.Module):
        assert getattr(layer.score, "hidden", HIDDEN) == (D if text in ("additive", "integral") else HIDDEN)
        assert all(weight.shape[0] == H for weight in layer.score.parameters())
        # A bias of the gate moves all scores alike: softmax does not feel it.
        assert all(
            weight.grad.any() for key, weight in layer.score.named_parameters() if (text, key) != ("gate", "bias")
        )


def test_two_layers_share_no_weights():
    first, second = (saccade.Attention(H * D, H, score="bilinear").score for _ in range(2))
    assert first is not second
    assert not torch.equal(first.weight, second.weight)


@pytest.mark.parametrize("heads", [1, 2, 7])
def test_each_head_starts_like_a_matrix_of_its_own(heads):
    """Xavier's variance, 2 / (rows + columns), must not shrink because heads are stacked in front."""
    torch.manual_seed(0)
    wide, narrow = additive(64, heads, hidden=32), bilinear(64, heads)
    assert narrow.weight.std().item() == pytest.approx(math.sqrt(2 / 128), rel=0.1)
    for weight in (wide.query, wide.key):
        assert weight.std().item() == pytest.approx(math.sqrt(2 / 96), rel=0.1)


@pytest.mark.parametrize("make", [bilinear, additive, gate])
def test_a_score_of_other_heads_or_width_is_refused(make, q, k):
    name = make.__name__
    with pytest.raises(
        SaccadeError, match=f"^this {name} score was built for 2 heads of width 11; q has 3 of width 11$"
    ):
        saccade.attention(q, k, k, score=make(D, 2).double())
    with pytest.raises(
        SaccadeError, match=f"^this {name} score was built for 3 heads of width 5; q has 3 of width 11$"
    ):
        saccade.attention(q, k, k, score=make(5, H).double())


def test_a_score_of_your_own(q, k):
    """Minus the squared distance: with softmax, a Gaussian window around the query."""
    scores = saccade.weights(q, k, score=lambda q, k: -torch.cdist(q, k).square(), normaliser="none")
    for b, h, t, s in product(range(B), range(H), range(T), range(S)):
        away = sum((x - y) ** 2 for x, y in zip(q[b, h, t].tolist(), k[b, h, s].tolist(), strict=True))
        assert scores[b, h, t, s].item() == pytest.approx(-away)
    by_key = saccade.weights(q, k, score=lambda q, k: k.sum(-1).unsqueeze(2), normaliser="none")
    assert torch.equal(by_key, k.sum(-1).unsqueeze(2).expand(B, H, T, S))


@pytest.mark.parametrize(
    ("own", "got"),
    [
        (lambda q, k: k @ q.mT, r"\(2, 3, 7, 5\)"),
        (lambda q, k: (q @ k.mT)[..., :2], r"\(2, 3, 5, 2\)"),
        (lambda q, k: (q @ k.mT).unsqueeze(0).expand(2, -1, -1, -1, -1), r"\(2, 2, 3, 5, 7\)"),
    ],
)
def test_a_score_of_the_wrong_shape_is_refused(own, got, q, k):
    message = rf"^the score gave {got}; it must broadcast to \(B,H,T,S\) = \(2, 3, 5, 7\)$"
    with pytest.raises(SaccadeError, match=message):
        saccade.attention(q, k, k, score=own)


def test_a_score_that_gives_no_tensor_is_refused(q, k):
    with pytest.raises(SaccadeError, match=r"^the score gave .*NoneType"):
        saccade.attention(q, k, k, score=lambda q, k: None)


@pytest.mark.parametrize("kind", [dot, bilinear])
def test_a_class_is_not_yet_a_score(kind, q, k):
    """`dot` for `dot()` is easily written, since `causal` is written so."""
    with pytest.raises(SaccadeError, match=rf"^score .*{kind.__name__}\("):
        saccade.attention(q, k, k, score=kind)


BAD = {
    "scaled_dot(scale=hot)": "^scaled_dot: scale is a number below 1e30; got 'hot'$",
    "scaled_dot(scale=True)": "^scaled_dot: scale is a number below 1e30; got True$",
    "scaled_dot(scale=1e999)": "^scaled_dot: scale is a number below 1e30; got inf$",
    "scaled_dot(scale=1e200)": r"^scaled_dot: scale is a number below 1e30; got 1e\+200$",
    "additive(hidden=0)": "^additive: hidden is a whole number from 1; got 0$",
    "additive(hidden=2.5)": r"^additive: hidden is a whole number from 1; got 2\.5$",
}


@pytest.mark.parametrize(("text", "message"), BAD.items())
def test_bad_arguments(text, message):
    with pytest.raises(SaccadeError, match=message):
        as_score(text, width=D, heads=H)


def test_what_is_no_score():
    with pytest.raises(SaccadeError, match=r"^score is a spec string or a function of q and k, not int$"):
        as_score(3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", ["plain", "sdpa", "chunked", "block"])
def test_zero_vectors_score_nothing_and_take_no_gradient(q, k, kernel, dtype):
    q, k = q.to(dtype), k.to(dtype)
    q[:, :, 1], k[:, :, 3] = 0, 0
    q, k = q.requires_grad_(), k.requires_grad_()
    v = k.detach().flip(1)
    found = saccade.attention(q, k, v, score="cosine", kernel=kernel)
    expected = saccade.attention(q.double(), k.double(), v.double(), score="cosine", kernel="plain")
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-2 if dtype is torch.float16 else 1e-5)
    torch.testing.assert_close(found[:, :, 1], v.mean(2), rtol=0, atol=1e-2)
    to_q, to_k = torch.autograd.grad(found.sum(), (q, k))
    assert to_q[:, :, 1].abs().max() == to_k[:, :, 3].abs().max() == 0
    assert to_q.isfinite().all()
    assert to_k.isfinite().all()


@pytest.mark.parametrize("text", ["cosine", "feature(elu, unit=True)", "feature(fourier, 6, seed=0)"])
def test_vectors_on_the_sphere_have_gradients_of_their_own_size(text, q, k):
    q[:, :, 1], k[:, :, 3] = 0, 0
    gradients = torch.autograd.grad(as_score(text)(q.requires_grad_(), k.requires_grad_()).sum(), (q, k))
    assert max(float(each.abs().max()) for each in gradients) < 1e3
