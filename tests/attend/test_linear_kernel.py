"""`linear` against `plain` in float64, and the laws it keeps."""

from __future__ import annotations

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade.attend import linear, plain, sums
from saccade.attend.position import alibi
from saccade.attend.score import additive, as_score
from saccade.zoo.size import size

SCORES = ["feature(fourier, 6, seed=0)", "feature(favor, 7, seed=1)", "feature(elu)"]


@pytest.fixture(autouse=True)
def tiles(monkeypatch):
    """Tiles so small that a few positions need several."""
    monkeypatch.setattr(sums, "TILE", 3)


def tensors(B=2, H=6, G=3, T=8, S=11, D=5, E=4, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((B, H, T, D), (B, G, S, D), (B, G, S, E))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def masks(B, S, seed=0):
    lengths = torch.randint(0, S + 1, (B,), generator=torch.Generator().manual_seed(seed))
    left, right = saccade.padding(lengths, "left"), saccade.padding(lengths)
    return [None, "everyone", "causal", right, left, saccade.causal & right, saccade.causal & left, left & right]


def both(inputs, **options):
    """Output and gradients, by the law and by the kernel."""
    found = []
    for kernel in ("plain", "linear"):
        output = saccade.attention(*inputs, kernel=kernel, **options)
        ways = torch.randn(output.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        grads = torch.autograd.grad(output, inputs, ways.to(output.dtype), allow_unused=True)
        grads = [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, grads, strict=True)]
        found.append([output.detach(), *grads])
    return found


def condition(inputs, score, normaliser, mask, start) -> float:
    """The largest sum_j |phi(q)||phi(k_j)| / |sum_j phi(q).phi(k_j)|: how much longer the terms are than their sum."""
    q, k, _ = inputs
    if normaliser == "none" or not k.shape[2] or not q.shape[2]:
        return 1.0
    made = as_score(score)
    a, b = made.queries(q), plain.spread(made.keys(k), q.shape[1])
    may = saccade.weights(q, k, score="dot", normaliser="softmax", mask=mask, start=start) > 0
    terms = (a.norm(dim=-1).unsqueeze(3) * b.norm(dim=-1).unsqueeze(2)).masked_fill(~may, 0.0).sum(-1)
    total = (a @ b.mT).masked_fill(~may, 0.0).sum(-1).abs()
    return max(1.0, float((terms / total.where(terms > 0, 1.0)).max().detach()))


@examples(150)
@given(data=st.data())
def test_the_kernel_follows_the_law(data):
    B, G, R = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([1, 3]))
    T, S = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    inputs = tensors(B, G * R, G, T, S, seed=data.draw(st.integers(0, 9)))
    starts = [0, 2, torch.arange(B)] + ([None] if T <= S else [])
    options = {
        "score": data.draw(st.sampled_from(SCORES)),
        "normaliser": data.draw(st.sampled_from(["sum", "none"])),
        "mask": data.draw(st.sampled_from(masks(B, S, data.draw(st.integers(0, 3))))),
        "start": data.draw(st.sampled_from(starts)),
    }
    law, ours = both(inputs, **options)
    allowed = 1e-10 * condition(inputs, **options) ** 2
    for a, b in zip(law, ours, strict=True):
        assert a.shape == b.shape
        size = max(1.0, float(a.abs().max())) if a.numel() else 1.0
        torch.testing.assert_close(a, b, rtol=allowed, atol=allowed * size)


def test_one_query_without_gradients_goes_its_own_way():
    for start in (None, 3, torch.tensor([4, 9])):
        for mask in masks(2, 11):
            inputs = tensors(T=1)
            options = {"score": SCORES[1], "normaliser": "sum", "mask": mask, "start": start}
            law = saccade.attention(*inputs, kernel="plain", **options)
            with torch.no_grad():
                ours = saccade.attention(*inputs, kernel="linear", **options)
            torch.testing.assert_close(ours, law.detach(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normaliser", ["sum", "none"])
def test_gradients_are_those_of_the_formula(score, normaliser):
    inputs = tensors(B=1, H=2, G=1, T=5, S=7)
    made = saccade.Attention(10, 2, score=score).double().score

    def f(*inputs):
        return saccade.attention(*inputs, score=made, normaliser=normaliser, mask="causal", kernel="linear")

    assert torch.autograd.gradcheck(f, inputs)


@pytest.mark.parametrize("score", SCORES)
def test_the_past_knows_nothing_of_the_future(score):
    q, k, v = (x.detach() for x in tensors(T=11, S=11))
    options = {"score": score, "normaliser": "sum", "mask": "causal", "kernel": "linear"}
    before = saccade.attention(q, k, v, **options)
    for bad in (1e3, torch.nan, torch.inf):
        for changed in (1, 2):
            inputs = [x.clone() for x in (q, k, v)]
            inputs[changed][:, :, 7:] = bad
            after = saccade.attention(*inputs, **options)
            assert torch.equal(after[:, :, :7], before[:, :, :7])
            assert torch.isfinite(after[:, :, :7]).all()
            assert bad == 1e3 or after[:, :, 7:].isnan().any()


@pytest.mark.parametrize("where", [1, 2])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_hidden_never_leaks(where, bad):
    lengths = torch.tensor([4, 11])
    for mask in (saccade.padding(lengths), saccade.causal & saccade.padding(lengths)):
        inputs = tensors()
        options = {"score": SCORES[1], "normaliser": "sum", "mask": mask, "kernel": "linear"}
        clean = saccade.attention(*inputs, **options)
        dirty = [x.detach().clone() for x in inputs]
        dirty[where][0, :, 4:] = bad
        dirty = [x.requires_grad_() for x in dirty]
        output = saccade.attention(*dirty, **options)
        assert torch.equal(output, clean)
        for a, b in zip(
            torch.autograd.grad(output.sum(), dirty), torch.autograd.grad(clean.sum(), inputs), strict=True
        ):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_row_that_may_look_at_nothing_gives_zeros():
    inputs = tensors()
    for score in SCORES:
        mask = saccade.padding(torch.tensor([0, 11]))
        output = saccade.attention(*inputs, score=score, normaliser="sum", mask=mask, kernel="linear")
        assert (output[0] == 0).all()
        grads = torch.autograd.grad(output.sum(), inputs)
        assert all(g.isfinite().all() and (g[0] == 0).all() for g in grads)


def test_batched_is_alone():
    inputs, lengths = tensors(B=3, T=11, S=11), torch.tensor([11, 5, 2])
    options = {"score": SCORES[1], "normaliser": "sum", "kernel": "linear"}
    together = saccade.attention(*inputs, mask=saccade.causal & saccade.padding(lengths), **options)
    for row, n in enumerate(lengths.tolist()):
        alone = saccade.attention(*(x[row : row + 1, :, :n] for x in inputs), mask="causal", **options)
        torch.testing.assert_close(together[row, :, :n], alone[0], rtol=1e-12, atol=1e-12)


def test_half_precision_is_computed_in_float32():
    inputs = [x.detach().bfloat16() for x in tensors(T=11, S=11)]
    options = {"score": SCORES[1], "normaliser": "sum", "mask": "causal"}
    law = saccade.attention(*(x.float() for x in inputs), kernel="plain", **options)
    ours = saccade.attention(*inputs, kernel="linear", **options)
    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours.float(), law, rtol=1e-2, atol=1e-2)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(saccade.attention(*inputs, kernel="linear", **options), ours, rtol=0, atol=0)


def test_auto_takes_it_where_it_computes_the_same(monkeypatch):
    called = []
    monkeypatch.setattr(linear, "attend", lambda q, k, v, *_: called.append(k.shape[2]) or q.new_zeros(()))
    q, k, v = (torch.randn(1, 2, 300, 4) for _ in range(3))
    options = {"score": SCORES[2], "normaliser": "sum"}
    saccade.attention(q, k, v, **options)
    saccade.attention(q, k, v, mask="causal", **options)
    assert called == [300, 300]
    saccade.attention(q, k, v, dropout=0.5, **options)
    saccade.attention(q, k, v, mask="window(3)", **options)
    saccade.attention(q[:, :, :9], k[:, :, :9], v[:, :, :9], **options)
    assert called == [300, 300]


def test_a_layer_is_watched_as_any_other():
    layer = saccade.Attention(12, 2, score=SCORES[1], normaliser="sum", mask="causal", kernel="linear").double()
    x = torch.randn(2, 11, 12, dtype=torch.float64)
    unseen = layer(x)
    with saccade.watch(layer) as seen:
        assert torch.equal(layer(x), unseen)
    weights, values = seen.weights("attention"), layer.value(x).unflatten(-1, (2, 6)).transpose(1, 2)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    torch.testing.assert_close(layer.out((weights @ values).transpose(1, 2).flatten(2)), unseen)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # of torch, to itself
def test_a_compiled_layer_says_the_same():
    layer = saccade.Attention(12, 2, score=SCORES[1], normaliser="sum", mask="causal", kernel="linear").double()
    x = torch.randn(2, 11, 12, dtype=torch.float64)
    compiled = torch.compile(layer, backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), layer(x))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"score": "scaled_dot"}, "products of features; the score scaled_dot is none: use 'plain'"),
        ({"score": additive(5)}, "the score additive is none"),
        ({"normaliser": "softmax"}, "normalisers 'sum' and 'none', not softmax"),
        ({"position": alibi()}, "no scores to add the position"),
        ({"mask": "window(3)"}, r"takes causal and padding, not window\(3\)"),
        ({"mask": "causal | prefix(2)"}, "use 'chunked'"),
        ({"dropout": 0.1}, "no weights to drop"),
    ],
)
def test_what_it_cannot_do_is_told(options, told):
    options = {"score": "feature(elu)", "normaliser": "sum"} | options
    with pytest.raises(saccade.SaccadeError, match=told):
        saccade.attention(*tensors(), kernel="linear", **options)


@pytest.mark.parametrize("score", ["feature(favor, 64, seed=0)", "feature(fourier, 64, seed=0)", "feature(elu)"])
@pytest.mark.parametrize("kernel", ["plain", "chunked", "linear"])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_autocast_rounds_no_features(score, kernel, mask):
    """Neither forward nor backward, in any kernel: an exponent in bfloat16 is wrong by percents."""
    parts = [torch.randn(1, 2, 37, 16, generator=torch.Generator().manual_seed(n)) for n in range(3)]

    def found(cast):
        q, k, v = (each.clone().requires_grad_() for each in parts)
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            output = saccade.attention(q, k, v, score=score, normaliser="sum", kernel=kernel, mask=mask)
            return [output, *torch.autograd.grad(output.float().square().sum(), (q, k))]

    for one, other in zip(found(True), found(False), strict=True):
        error = (one - other).norm() / other.norm()
        assert error < (1e-5 if kernel == "linear" else 2e-2)


def test_a_model_of_features_is_measured_on_meta():
    config = saccade.ModelConfig(
        vocab=9, width=8, heads=2, decoder=1, score="feature(favor, 8, seed=0)", normaliser="sum"
    )
    assert size(config, length=512)["flops_forward"] > size(config, length=256)["flops_forward"]


@pytest.mark.parametrize("score", ["feature(favor, 6, seed=0)", "feature(elu)"])
@pytest.mark.parametrize("mask", [None, "causal", "padding", "causal & padding"])
@pytest.mark.parametrize(
    ("T", "S", "start"), [(23, 23, 0), (23, 31, 8), (9, 31, 13), (31, 23, 0), (31, 23, 5), (7, 0, 0)]
)
def test_strips_without_gradients_are_the_law(score, mask, T, S, start, monkeypatch):
    monkeypatch.setattr(linear, "STRIP", 8)
    monkeypatch.setattr(sums, "TILE", 3)
    q, k, v = (
        torch.randn(2, heads, length, 5, dtype=torch.double, generator=torch.Generator().manual_seed(n))
        for n, (heads, length) in enumerate([(4, T), (2, S), (2, S)])
    )
    hidden = saccade.padding([S, S // 2])
    who = {None: None, "causal": saccade.causal, "padding": hidden, "causal & padding": saccade.causal & hidden}[mask]
    options = {"score": score, "normaliser": "sum", "mask": who, "start": start}
    wanted = saccade.attention(q, k, v, **options, kernel="plain")
    torch.testing.assert_close(saccade.attention(q, k, v, **options, kernel="linear"), wanted, rtol=1e-10, atol=1e-10)
    traced = saccade.attention(q.requires_grad_(), k, v, **options, kernel="linear")
    torch.testing.assert_close(traced.detach(), wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mask", [None, "causal"])
def test_a_second_derivative_is_refused(mask):
    inputs = tensors(T=11)
    output = saccade.attention(*inputs, score="feature(elu)", normaliser="sum", mask=mask, kernel="linear")
    with pytest.raises(saccade.SaccadeError, match="linear has first derivatives alone: use 'plain' or 'chunked'"):
        torch.autograd.grad(output.square().sum(), inputs[0], create_graph=True)
