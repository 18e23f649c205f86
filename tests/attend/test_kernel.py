"""Every kernel against `plain` in float64, with gradients, and the laws that all of them keep."""

from __future__ import annotations

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from kernels import EXACT
from torch import Tensor

import saccade
from saccade.attend import chunked, plain, sdpa
from saccade.attend.mask import as_mask
from saccade.attend.normaliser import NORMALISERS
from saccade.attend.position import alibi, as_position, relative, t5, xl
from saccade.attend.score import additive, bilinear, gate

NAMES = list(NORMALISERS)
CAN = [(kernel, name) for kernel in EXACT for name in NAMES if kernel != "sdpa" or name == "softmax"]


@pytest.fixture(params=["whole", "sliced"])
def sliced(request, monkeypatch):
    """Sizes at which kernels change their ways are small here, so that every way is walked."""
    if request.param == "sliced":
        monkeypatch.setattr(chunked, "BUDGET", 16)
        monkeypatch.setattr(sdpa, "ONE_BY_ONE", 0)
        monkeypatch.setattr(sdpa, "ONE_BY_ONE_WITH_GRADIENTS", 0)
        monkeypatch.setattr(sdpa, "HUGE", 0)
    return request.param


def tensors(B=2, H=6, G=3, T=5, S=7, D=11, E=13, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((B, H, T, D), (B, G, S, D), (B, G, S, E))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def masks(B: int, H: int, T: int, S: int, seed: int = 0) -> dict[str, saccade.Mask | Tensor | str | None]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, S + 1, (B,), generator=generator)
    longest = max(T, S, 1) + 3
    ids = torch.randint(0, 2, (B, longest), generator=generator)
    permutation = torch.randperm(longest, generator=generator)
    return {
        "none": None,
        "everyone": "everyone",
        "causal": "causal",
        "window": "causal & window(2)",
        "prefix": "causal | prefix(2)",
        "blocks": "blocks(2, before=1)",
        "bigbird": "bigbird(1, 1, 1, 1)",
        "padding": saccade.padding(lengths),
        "left": saccade.padding(lengths, "left"),
        "causal padding": saccade.causal & saccade.padding(lengths),
        "causal left": saccade.causal & saccade.padding(lengths, side="left"),
        "document": saccade.document(ids) & saccade.causal,
        "order": saccade.order(permutation, strict=True),
        "not": ~saccade.window(2) & saccade.causal,
        "tensor": torch.rand(B, H, T, S, generator=generator) > 0.4,
        "rows": torch.rand(T, S, generator=generator) > 0.5,
        "nobody": torch.zeros(1, 1, T, S, dtype=torch.bool),
    }


def grads(output: Tensor, inputs: list[Tensor], seed: int = 1) -> list[Tensor]:
    weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = torch.autograd.grad(output, inputs, weight.to(output.dtype), allow_unused=True, retain_graph=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def same(a: list[Tensor], b: list[Tensor], tolerance: float = 1e-10) -> None:
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


def in_pairs(*axes: list) -> list:
    """All combinations of three axes. `make test` runs each pair of the first two once, with the third in turn."""
    first, second, third = axes
    return [
        pytest.param(a, b, c, marks=[pytest.mark.proof] * ((i + j) % len(third) != k))
        for i, a in enumerate(first)
        for j, b in enumerate(second)
        for k, c in enumerate(third)
    ]


@pytest.mark.parametrize(
    ("name", "kernel", "score"),
    in_pairs(list(masks(2, 6, 5, 7)), ["sdpa", "chunked", "auto"], ["scaled_dot", "dot", "cosine"]),
)
def test_kernels_follow_the_law(kernel, name, score, sliced):
    inputs = tensors()
    mask = masks(2, 6, 5, 7)[name]
    for start in (None, 0, torch.tensor([1, 2])):
        law = saccade.attention(*inputs, mask=mask, score=score, start=start, kernel="plain")
        output = saccade.attention(*inputs, mask=mask, score=score, start=start, kernel=kernel)
        same([output, *grads(output, inputs)], [law, *grads(law, inputs)])


@examples(60)
@given(data=st.data())
def test_kernels_follow_the_law_at_any_size(data):
    B, G, R = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([1, 2]))
    T, S = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 7))
    D, E = data.draw(st.sampled_from([1, 2, 5])), data.draw(st.sampled_from([1, 3, 4]))
    dtype = data.draw(st.sampled_from([torch.float64, torch.float32, torch.bfloat16]))
    start = data.draw(st.sampled_from([0, 1, 3])) if T > S else data.draw(st.sampled_from([None, 0, 2]))
    inputs = tensors(B, G * R, G, T, S, D, E, dtype, seed=data.draw(st.integers(0, 9)))
    mask = data.draw(st.sampled_from(list(masks(B, G * R, T, S).items())))[1]
    normaliser = data.draw(st.sampled_from(NAMES))
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 6e-2}[dtype]
    law = saccade.attention(*inputs, mask=mask, normaliser=normaliser, start=start, kernel="plain")
    assert law.shape == (B, G * R, T, E)
    assert law.dtype == dtype
    assert law.isfinite().all()
    for kernel in ("auto", "chunked"):
        output = saccade.attention(*inputs, mask=mask, normaliser=normaliser, start=start, kernel=kernel)
        same([output, *grads(output, inputs)], [law, *grads(law, inputs)], tolerance)


@pytest.mark.parametrize(("kernel", "normaliser"), CAN)
def test_a_row_that_may_look_at_nothing_gives_zeros(kernel, normaliser, sliced):
    inputs = tensors()
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[2] = False
    output = saccade.attention(*inputs, mask=mask, normaliser=normaliser, kernel=kernel)
    assert (output[:, :, 2] == 0).all()
    gradient = torch.autograd.grad(output[:, :, 2].sum(), inputs)
    assert all((g == 0).all() for g in gradient)
    everything = torch.autograd.grad(
        saccade.attention(*inputs, mask=mask, normaliser=normaliser, kernel=kernel).sum(), inputs
    )
    assert all(g.isfinite().all() for g in everything)
    assert (everything[0][:, :, 2] == 0).all()


@pytest.mark.parametrize(("can", "where", "bad"), in_pairs(CAN, ["keys", "values"], [torch.nan, torch.inf, -torch.inf]))
def test_what_nobody_may_look_at_never_leaks(can, bad, where, sliced):
    kernel, normaliser = can
    q, k, v = tensors()
    lengths = torch.tensor([4, 7])
    for mask in (
        saccade.padding(lengths),
        saccade.causal & saccade.padding(lengths),
        as_mask(saccade.padding(lengths)(5, 7, start=2).expand(2, 6, 5, 7)),
    ):
        clean = saccade.attention(q, k, v, mask=mask, normaliser=normaliser, kernel=kernel)
        with torch.no_grad():
            dirty = [x.detach().clone().requires_grad_() for x in (q, k, v)]
            dirty[1 if where == "keys" else 2][0, :, 4:] = bad
        output = saccade.attention(*dirty, mask=mask, normaliser=normaliser, kernel=kernel)
        same([output], [clean])
        for g, h in zip(grads(output, dirty), grads(clean, [q, k, v]), strict=True):
            torch.testing.assert_close(g, h, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", ["plain", "chunked"])
@pytest.mark.parametrize("normaliser", NAMES)
def test_what_some_may_not_look_at_never_reaches_them(kernel, normaliser, sliced):
    q, k, v = tensors(T=7)
    clean = saccade.attention(q, k, v, mask="causal", normaliser=normaliser, kernel=kernel)
    for which in (1, 2):
        dirty = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        with torch.no_grad():
            dirty[which][:, :, 3] = torch.nan
        output = saccade.attention(*dirty, mask="causal", normaliser=normaliser, kernel=kernel)
        same([output[:, :, :3]], [clean[:, :, :3]])
        assert output[:, :, 3:].isnan().any(-1).all()
        same(
            grads(output[:, :, :3], dirty),
            [
                *grads(
                    saccade.attention(q, k, v, mask="causal", normaliser=normaliser, kernel=kernel)[:, :, :3], [q, k, v]
                )
            ],
        )


@pytest.mark.parametrize(
    "make",
    [
        alibi,
        lambda: t5(8, 16, heads=6),
        lambda: relative(3, head_width=11, value_width=13),
        lambda: xl(head_width=11, heads=6, input_width=10),
    ],
)
@pytest.mark.parametrize("kernel", ["sdpa", "chunked"])
@pytest.mark.parametrize("mask", ["causal", "causal & window(3)"])
def test_positions_in_every_kernel(make, kernel, mask, sliced):
    torch.manual_seed(0)
    position = make().double()
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    inputs = tensors()
    if "values" in position.doors and kernel == "sdpa":
        with pytest.raises(saccade.SaccadeError, match="use 'plain' or 'chunked'"):
            saccade.attention(*inputs, position=position, kernel=kernel)
        return
    everything = [*inputs, *position.parameters()]
    for normaliser in ("softmax", "softmax(beta=3)"):
        law, output = (
            saccade.attention(*inputs, mask=mask, position=position, normaliser=normaliser, kernel=each)
            for each in ("plain", kernel)
        )
        same([output, *grads(output, everything)], [law, *grads(law, everything)])


@pytest.mark.parametrize("name", list(masks(2, 6, 9, 12)))
@pytest.mark.parametrize("start", [0, 3, 6])
@pytest.mark.parametrize("make", [lambda: t5(8, 16, heads=6), lambda: relative(3, head_width=11, value_width=13)])
def test_slices_are_the_whole_under_every_mask(name, start, make, monkeypatch):
    """Several queries a slice; where the mask is causal, each slice meets the keys up to its end alone."""
    torch.manual_seed(0)
    position = make().double()
    inputs, kernel = tensors(T=9, S=12), "chunked" if "values" in position.doors else "sdpa"
    monkeypatch.setattr(chunked, "BUDGET", 2 * 6 * 12 * 2)
    monkeypatch.setattr(sdpa, "HUGE", 0)
    mask, everything = masks(2, 6, 9, 12)[name], [*inputs, *position.parameters()]
    law, output = (
        saccade.attention(*inputs, mask=mask, position=position, start=start, kernel=each) for each in ("plain", kernel)
    )
    same([output, *grads(output, everything)], [law, *grads(law, everything)])


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("mask", ["causal", "causal & padding", "everyone"])
def test_what_positions_add_to_scores_stays_small(mask, gradients, monkeypatch):
    """With `causal` at some length, and always where there is much of it, no call holds it for all queries."""
    B, H, T = 1, 4, sdpa.SLICES_WITH_GRADIENTS if gradients else sdpa.SLICES
    inputs = [x.float().detach().requires_grad_() for x in tensors(B=B, H=H, G=H, T=T, S=T, D=8, E=8)]
    sizes, on_scores = [], alibi.on_scores
    monkeypatch.setattr(alibi, "on_scores", lambda *a: sizes.append((x := on_scores(*a)).numel()) or x)
    monkeypatch.setattr(chunked, "BUDGET", H * T * 128)
    monkeypatch.setattr(sdpa, "HUGE", H * T * T + (mask != "everyone"))
    both = as_mask("causal") & saccade.padding([T - 3]) if "padding" in mask else mask
    with torch.set_grad_enabled(gradients):
        output = saccade.attention(*inputs, mask=both, position="alibi")
    assert len(sizes) == T // 128
    assert sum(sizes) == H * (T * T if mask == "everyone" else 128 * sum(range(128, T + 1, 128)))
    with torch.no_grad():
        same([output], [saccade.attention(*inputs, mask=both, position="alibi", kernel="plain")], 1e-4)


@pytest.mark.parametrize(("position", "mask", "many"), [("alibi", None, 1), ("alibi", "padding", 3), ("t5", None, 3)])
def test_one_table_for_a_batch_counts_once(position, mask, many, monkeypatch):
    """alibi's table is one for all examples, unless their masks differ; T5's is learned, and counts for each."""
    q, k, v = (x.detach() for x in tensors(B=3, G=6, T=7))
    calls, sliced = [], chunked.sliced
    monkeypatch.setattr(chunked, "sliced", lambda *a: calls.append(1) or sliced(*a))
    made = as_position(position, head_width=11, heads=6).double()
    both = saccade.padding([7, 3, 5]) if mask else None
    for huge in (many * 6 * 7 * 7, many * 6 * 7 * 7 + 1):
        monkeypatch.setattr(sdpa, "HUGE", huge)
        saccade.attention(q, k, v, mask=both, position=made)
    assert len(calls) == 1


@pytest.mark.parametrize("make", [bilinear, additive, gate])
@pytest.mark.parametrize("normaliser", NAMES)
def test_learned_scores_in_chunks(make, normaliser, monkeypatch):
    monkeypatch.setattr(chunked, "BUDGET", 16)
    torch.manual_seed(0)
    score = make(11, 6).double()
    inputs = tensors()
    everything = [*inputs, *score.parameters()]
    law, output = (
        saccade.attention(*inputs, mask="causal", score=score, normaliser=normaliser, kernel=each)
        for each in ("plain", "chunked")
    )
    same([output, *grads(output, everything)], [law, *grads(law, everything)])


def test_bilinear_runs_fused():
    score = bilinear(11, 6).double()
    inputs = tensors()
    law, output = (saccade.attention(*inputs, score=score, kernel=each) for each in ("plain", "sdpa"))
    same([output], [law])


def test_refusals_say_why_and_what_to_use():
    q, k, v = tensors()
    for options, why in (
        ({"normaliser": "sparsemax"}, "softmax alone, not sparsemax: use 'plain' or 'chunked'"),
        ({"score": additive(11, 6).double()}, "additive is none: use 'plain' or 'chunked'"),
        ({"score": lambda q, k: q @ k.mT}, "products of q and k"),
    ):
        with pytest.raises(saccade.SaccadeError, match=why):
            saccade.attention(q, k, v, kernel="sdpa", **options)
        same([saccade.attention(q, k, v, **options)], [saccade.attention(q, k, v, kernel="plain", **options)])
    with pytest.raises(saccade.SaccadeError, match="did you mean 'sdpa'"):
        saccade.attention(q, k, v, kernel="spda")
    with pytest.raises(saccade.SaccadeError, match="has 'refuses' and 'attend'"):
        saccade.attention(q, k, v, kernel=3)


def test_auto_chunks_what_is_large(monkeypatch):
    calls = []
    attend = chunked.attend
    monkeypatch.setattr(chunked, "attend", lambda *a: calls.append(1) or attend(*a))
    monkeypatch.setattr("saccade.attend.kernel.LARGE", 100)
    saccade.attention(*tensors(), normaliser="sigmoid")
    assert calls


def test_dropout_agrees_in_distribution():
    q, k, v = (x.detach() for x in tensors(B=1, H=2, G=1, T=3))
    law = saccade.attention(q, k, v, kernel="plain")
    for kernel in EXACT:
        torch.manual_seed(0)
        mean = sum(saccade.attention(q, k, v, kernel=kernel, dropout=0.3) for _ in range(3000)) / 3000
        assert (mean - law).abs().max() < 0.08
        assert not torch.equal(saccade.attention(q, k, v, kernel=kernel, dropout=0.3), law)


def test_chunked_dropout_is_the_same_backward_as_forward(monkeypatch):
    """The slices are computed again for the gradient and must drop the same weights: the output is linear in v."""
    monkeypatch.setattr(chunked, "BUDGET", 16)
    q, k, v = tensors()
    torch.manual_seed(3)
    output = saccade.attention(q, k, v, kernel="chunked", dropout=0.5)
    weight = torch.randn_like(output)
    (gradient,) = torch.autograd.grad(output, v, weight)
    torch.testing.assert_close((gradient * v).sum(), (output * weight).sum())


@pytest.mark.parametrize("kernel", ["auto", "chunked", "block"])
def test_torch_func_differentiates_slices(kernel, sliced):
    q, k, v = (x.detach() for x in tensors(T=7, G=6, E=11))

    def total(q: Tensor, kernel: str) -> Tensor:
        return saccade.attention(q, k, v, mask="causal", position="alibi", kernel=kernel).square().sum()

    law, found = (torch.func.grad(total)(q, each) for each in ("plain", kernel))
    same([found], [law])


@pytest.mark.parametrize("kernel", EXACT)
def test_no_future_leak_bit_for_bit(kernel, sliced):
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        q, k, v = (x.detach() for x in tensors(H=4, G=2, T=17, S=17, D=16, E=16, dtype=dtype))
        before = saccade.attention(q, k, v, mask="causal", kernel=kernel)
        for t in (1, 9, 16):
            q2, k2, v2 = q.clone(), k.clone(), v.clone()
            for x in (q2, k2, v2):
                x[:, :, t:] = torch.randn_like(x[:, :, t:]) * 3
            after = saccade.attention(q2, k2, v2, mask="causal", kernel=kernel)
            assert torch.equal(before[:, :, :t], after[:, :, :t])


@pytest.mark.parametrize("kernel", EXACT)
def test_permutations(kernel, sliced):
    """Without positions, self-attention is equivariant, and the order of the keys does not matter."""
    q, k, v = (x.detach() for x in tensors(T=7))
    p, r = torch.randperm(7), torch.randperm(7)
    output = saccade.attention(q, k, v, kernel=kernel)
    same([saccade.attention(q[:, :, p], k[:, :, r], v[:, :, r], kernel=kernel)], [output[:, :, p]])


@pytest.mark.parametrize("kernel", EXACT)
@pytest.mark.parametrize("base", ["everyone", "causal", "causal & window(3)"])
def test_batched_is_alone_and_left_padding_is_right_padding(kernel, base, sliced):
    lengths, S = [3, 7, 5], 7
    q, k, v = (x.detach() for x in tensors(B=3, T=S))
    right = saccade.attention(q, k, v, mask=as_mask(base) & saccade.padding(lengths), kernel=kernel)
    shifted = [torch.stack([x[b].roll(S - n, 1) for b, n in enumerate(lengths)]) for x in (q, k, v)]
    left = saccade.attention(*shifted, mask=as_mask(base) & saccade.padding(lengths, "left"), kernel=kernel)
    for b, n in enumerate(lengths):
        alone = saccade.attention(*(x[b : b + 1, :, :n] for x in (q, k, v)), mask=base, kernel=kernel)
        same([right[b : b + 1, :, :n], left[b : b + 1, :, S - n :]], [alone, alone])


@pytest.mark.parametrize("kernel", EXACT)
@pytest.mark.parametrize("mask", ["causal", "causal & window(3)", "causal & bigbird(2, 1, 1, 1)", "causal | prefix(2)"])
def test_steps_are_the_whole(kernel, mask, sliced):
    """Queries given a few at a time, with the keys there are so far, see what they see in one call."""
    q, k, v = (x.detach() for x in tensors(T=11, S=11))
    whole = saccade.attention(q, k, v, mask=mask, kernel=kernel)
    for first, last in ((0, 4), (4, 5), (5, 11)):
        part = saccade.attention(q[:, :, first:last], k[:, :, :last], v[:, :, :last], mask=mask, kernel=kernel)
        same([part], [whole[:, :, first:last]])


def test_weights_are_the_law():
    q, k, v = tensors()
    w = saccade.weights(q, k, mask="causal", normaliser="sparsemax", position="rotary(width=4)")
    out = saccade.attention(q, k, v, mask="causal", normaliser="sparsemax", position="rotary(width=4)")
    same([w @ plain.spread(v, 6)], [out])
    assert w.shape == (2, 6, 5, 7)


def test_plain_in_half_precision_computes_in_float32():
    inputs = tensors(dtype=torch.bfloat16)
    wide = [x.detach().float() for x in inputs]
    same([saccade.attention(*inputs, kernel="plain").float()], [saccade.attention(*wide, kernel="plain")], 5e-3)
    assert saccade.weights(*inputs[:2]).dtype == torch.float32


@pytest.mark.parametrize("mask", [saccade.padding([]), saccade.causal & saccade.padding([], "left")])
def test_a_batch_of_nothing_gives_nothing(mask):
    """Long enough that each example would have a call of its own."""
    q, k = torch.zeros(0, 2, 3, 5), torch.zeros(0, 2, sdpa.ONE_BY_ONE, 5)
    assert saccade.attention(q, k, k, mask=mask, kernel="sdpa").shape == (0, 2, 3, 5)
