"""The layer: parity with torch's, caches, groups, contexts, and what it refuses."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from kernels import EXACT
from torch import Tensor, nn

import saccade
from saccade.attend import sdpa

POSITIONS = [None, "rotary", "rotary(interleaved)", "alibi", "relative(3)", "xl", "t5(8, 16)"]


def layer(*args, seed: int = 0, **options) -> saccade.Attention:
    """A layer in float64 whose weights are all random, biases and tables included."""
    torch.manual_seed(seed)
    made = saccade.Attention(*args, **options).double()
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.3)
    return made


def as_torch(ours: saccade.Attention) -> nn.MultiheadAttention:
    """torch's layer with the same weights."""
    theirs = nn.MultiheadAttention(
        ours.width,
        ours.heads,
        batch_first=True,
        kdim=ours.context_width,
        vdim=ours.context_width,
        dtype=ours.query.weight.dtype,
    )
    with torch.no_grad():
        if ours.context_width == ours.width:
            theirs.in_proj_weight.copy_(ours.stacked())
        else:
            theirs.q_proj_weight.copy_(ours.query.weight)
            theirs.k_proj_weight.copy_(ours.key.weight)
            theirs.v_proj_weight.copy_(ours.value.weight)
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key.bias, ours.value.bias)))
        theirs.out_proj.weight.copy_(ours.out.weight)
        theirs.out_proj.bias.copy_(ours.out.bias)
    return theirs


def gradients(output: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    weight = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
    return list(torch.autograd.grad(output, inputs, weight))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("mask", ["none", "causal", "padding", "causal padding"])
@pytest.mark.parametrize("kernel", EXACT)
def test_parity_with_torch(kernel, mask, dtype, tolerance):
    ours = layer(21, 3, kernel=kernel).to(dtype)
    theirs = as_torch(ours)
    x = torch.randn(2, 11, 21, dtype=dtype, requires_grad=True)
    lengths = torch.tensor([7, 11])
    hidden = {}  # torch's polarity is the other one: True = hidden
    if "causal" in mask:
        hidden["attn_mask"] = ~saccade.causal(11)
    if "padding" in mask:
        hidden["key_padding_mask"] = ~saccade.padding(lengths)(1, 11)[:, 0, 0]
    named = {"none": None, "causal": "causal", "padding": saccade.padding(lengths)}
    ours_mask = saccade.causal & saccade.padding(lengths) if mask == "causal padding" else named[mask]
    a, b = ours(x, mask=ours_mask), theirs(x, x, x, need_weights=False, **hidden)[0]
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        gradients(a, [x, ours.out.weight]),
        gradients(b, [x, theirs.out_proj.weight]),
        rtol=tolerance,
        atol=tolerance * 10,
    )
    stacked = torch.cat(gradients(ours(x, mask=ours_mask), [ours.query.weight, ours.key.weight, ours.value.weight]))
    (reference,) = gradients(theirs(x, x, x, need_weights=False, **hidden)[0], [theirs.in_proj_weight])
    torch.testing.assert_close(stacked, reference, rtol=tolerance, atol=tolerance * 10)


def test_cross_attention_is_torchs():
    ours = layer(21, 3, context_width=13)
    theirs = as_torch(ours)
    x, context = torch.randn(2, 11, 21, dtype=torch.float64), torch.randn(2, 5, 13, dtype=torch.float64)
    torch.testing.assert_close(ours(x, context), theirs(x, context, context, need_weights=False)[0])
    torch.testing.assert_close(
        ours(x, context, mask=saccade.padding([2, 5])),
        theirs(x, context, context, need_weights=False, key_padding_mask=~saccade.padding([2, 5])(1, 5)[:, 0, 0])[0],
    )


def test_what_is_found_may_be_other_than_what_is_looked_at():
    ours = layer(21, 3, context_width=13)
    theirs = as_torch(ours)
    x, context, values = (torch.randn(2, T, C, dtype=torch.float64) for T, C in ((11, 21), (5, 13), (5, 13)))
    torch.testing.assert_close(ours(x, context, values=values), theirs(x, context, values, need_weights=False)[0])
    cache = saccade.Cache()
    with torch.no_grad():
        steps = [ours(x[:, i : i + 1], context, values=values, cache=cache) for i in range(11)]
        torch.testing.assert_close(torch.cat(steps, 1), ours(x, context, values=values))


def test_without_projections_states_meet_as_they_are():
    ours = saccade.Attention(21, 3, project=False, mask="causal").double()
    assert not list(ours.parameters())
    x = torch.randn(2, 11, 21, dtype=torch.float64)
    heads = x.unflatten(2, (3, 7)).transpose(1, 2)
    expected = saccade.attention(heads, heads, heads, mask="causal").transpose(1, 2).flatten(2)
    torch.testing.assert_close(ours(x), expected)
    with pytest.raises(saccade.SaccadeError, match="nothing to stack"):
        ours.stacked()
    cache, later = saccade.Cache(), x[:, 5:].clone()
    with torch.no_grad():
        ours(x[:, :5], cache=cache)
        x.zero_()  # what was read is the caller's; the cache has its own
        torch.testing.assert_close(ours(later, cache=cache), expected[:, 5:])


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("kernel", EXACT)
def test_parity_with_sdpa(kernel, dtype, tolerance):
    q, k, v = (torch.randn(2, 3, 11, 7, dtype=dtype, requires_grad=True) for _ in range(3))
    hidden = torch.rand(2, 3, 11, 11) > 0.7
    hidden[..., 0] = False
    for mask, raw in ((None, {}), ("causal", {"is_causal": True}), (~hidden, {"attn_mask": ~hidden})):
        a, b = saccade.attention(q, k, v, mask=mask, kernel=kernel), F.scaled_dot_product_attention(q, k, v, **raw)
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(gradients(a, [q, k, v]), gradients(b, [q, k, v]), rtol=tolerance, atol=tolerance)


def test_stacked_is_the_lectures_one_matrix():
    ours = layer(21, 3, kv_heads=1, bias=False)
    x = torch.randn(2, 5, 21, dtype=torch.float64)
    q, k, v = (x @ ours.stacked().T).split([21, 7, 7], -1)
    torch.testing.assert_close((q, k, v), (ours.query(x), ours.key(x), ours.value(x)))


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("mask", ["causal", "causal & window(3)", "causal & bigbird(2, 1, 1, 1)"])
def test_cached_is_uncached(position, mask):
    ours = layer(24, 6, kv_heads=2, position=position, mask=mask)
    x = torch.randn(2, 13, 24, dtype=torch.float64)
    whole = ours(x)
    for parts in ([1] * 13, [5, 1, 7]):
        for gradient in (False, True):
            with torch.set_grad_enabled(gradient):
                cache = saccade.Cache()
                steps = torch.cat([ours(part, cache=cache) for part in x.split(parts, 1)], 1)
            torch.testing.assert_close(steps, whole, rtol=1e-10, atol=1e-10)
            assert cache.length == 13


@pytest.mark.parametrize("position", [None, "rotary", "alibi", "relative(3)", "xl", "t5(8, 16)"])
def test_left_padding_is_right_padding(position, monkeypatch):
    ours = layer(24, 6, kv_heads=3, position=position, mask="causal")
    x, lengths = torch.randn(2, 7, 24, dtype=torch.float64), [4, 7]
    for singly in (512, 0):
        monkeypatch.setattr(sdpa, "ONE_BY_ONE_WITH_GRADIENTS", singly)
        right = ours(x, mask=saccade.padding(lengths))
        left = ours(torch.stack((x[0].roll(3, 0), x[1])), mask=saccade.padding(lengths, "left"))
        torch.testing.assert_close(right[0, :4], left[0, 3:], rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(right[1], left[1], rtol=1e-10, atol=1e-10)
        alone = ours(x[:1, :4])
        torch.testing.assert_close(right[:1, :4], alone, rtol=1e-10, atol=1e-10)


def test_accumulated_gradients_are_one_big_batch():
    ours = layer(21, 3, mask="causal")
    x = torch.randn(4, 5, 21, dtype=torch.float64)
    ours(x).square().sum().backward()
    whole = [p.grad.clone() for p in ours.parameters()]
    ours.zero_grad()
    for part in x.split(1):
        ours(part).square().sum().backward()
    torch.testing.assert_close([p.grad for p in ours.parameters()], whole)


def test_grouped_heads_are_repeated_heads():
    ours = layer(24, 6, kv_heads=2)
    full = layer(24, 6)
    with torch.no_grad():
        full.load_state_dict(
            ours.state_dict()
            | {
                name: getattr(ours, part).get_parameter(kind).unflatten(0, (2, 4)).repeat_interleave(3, 0).flatten(0, 1)
                for part in ("key", "value")
                for kind in ("weight", "bias")
                for name in [f"{part}.{kind}"]
            }
        )
    x = torch.randn(2, 5, 24, dtype=torch.float64)
    torch.testing.assert_close(ours(x), full(x))


def test_context_is_projected_once():
    ours = layer(21, 3, context_width=13)
    context, cache = torch.randn(2, 5, 13, dtype=torch.float64), saccade.Cache()
    x = torch.randn(2, 3, 21, dtype=torch.float64)
    calls = []
    hook = ours.key.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        steps = torch.cat([ours(part, context, cache=cache) for part in x.split(1, 1)], 1)
        assert len(calls) == 1
        hook.remove()
        torch.testing.assert_close(steps, ours(x, context))
        with pytest.raises(saccade.SaccadeError, match=r"= \(2, 5\), the call brings one of \(2, 4\)"):
            ours(x, context[:, :4], cache=cache)


def test_state_is_the_callers():
    ours = layer(21, 3, mask="causal", position="rotary(width=4)")
    before, names = copy.deepcopy(ours.state_dict()), set(vars(ours))
    with torch.no_grad():
        ours(torch.randn(2, 5, 21, dtype=torch.float64), cache=saccade.Cache())
    assert set(vars(ours)) == names
    assert before.keys() == ours.state_dict().keys()
    assert all(torch.equal(before[key], value) for key, value in ours.state_dict().items())


def test_cache_reorders_rewinds_and_grows():
    ours = layer(21, 3, mask="causal")
    x = torch.randn(2, 600, 21, dtype=torch.float64)
    with torch.no_grad():
        whole = ours(x)
        cache = saccade.Cache()
        ours(x[:, :300], cache=cache)
        cache.rewind(290)
        torch.testing.assert_close(ours(x[:, 290:], cache=cache), whole[:, 290:])
        cache.rewind(300)
        cache.reorder(torch.tensor([1, 1]))
        torch.testing.assert_close(ours(x[[1, 1], 300:301], cache=cache), whole[[1, 1], 300:301])
    with pytest.raises(saccade.SaccadeError, match="cannot be rewound to 700"):
        cache.rewind(700)
    with pytest.raises(saccade.SaccadeError, match="make a new cache"), torch.no_grad():
        ours(x[:1, :1], cache=cache)


def test_dropout_only_while_training():
    ours = layer(21, 3, dropout=0.5)
    x = torch.randn(2, 5, 21, dtype=torch.float64)
    ours.eval()
    assert torch.equal(ours(x), ours(x))
    ours.train()
    assert not torch.equal(ours(x), ours(x))


@pytest.mark.parametrize(
    "score", ["dot", "cosine", "bilinear", "additive", "additive(hidden=5)", "additive(5)", "gate"]
)
@pytest.mark.parametrize("normaliser", ["softmax(beta=2)", "sigmoid", "hard", "sparsemax", "none"])
def test_every_part_learns_by_name(score, normaliser):
    ours = layer(21, 3, score=score, normaliser=normaliser, mask="causal & window(4)")
    x = torch.randn(2, 5, 21, dtype=torch.float64)
    ours(x).square().sum().backward()
    silent = {"query.weight", "query.bias"} if score == "gate" else set()  # a gate never asks
    for name, weight in ours.named_parameters():
        assert name in silent or (weight.grad is not None and weight.grad.isfinite().all()), name


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda: saccade.Attention(20, 3), "3 heads do not divide a width of 20"),
        (lambda: saccade.Attention(24, 6, kv_heads=4), "4 key heads do not divide 6 heads"),
        (lambda: saccade.Attention(0, 1), "width is a whole number from 1; got 0"),
        (lambda: saccade.Attention(24, 2.0), "heads is a whole number"),
        (lambda: saccade.Attention(24, 6, dropout=1.0), "dropout is a share from 0 to below 1"),
        (lambda: saccade.Attention(24, 6, dropout="0.1"), "dropout is a share from 0 to below 1; got '0.1'"),
        (lambda: saccade.Attention(24, 6)(torch.randn(2, 5, 24), start=5), "start= is where x stands in a context"),
        (lambda: saccade.Attention(24, 6, score="scaled_dto"), "did you mean 'scaled_dot'"),
        (lambda: saccade.Attention(24, 6, normaliser="softmx"), "did you mean 'softmax'"),
        (lambda: saccade.Attention(24, 6, mask="casual"), "did you mean 'causal'"),
        (lambda: saccade.Attention(24, 6, position="rotery"), "did you mean 'rotary'"),
        (lambda: saccade.Attention(24, 6, position="sinusoid"), "belongs to the embedding"),
        (lambda: saccade.Attention(24, 6, position="learned(7)"), "belongs to the embedding"),
        (lambda: saccade.Attention(24, 6, kernel="flash"), "no kernel is called 'flash'"),
        (lambda: saccade.Attention(24, 6)(torch.randn(5, 24)), r"x must be \(batch, length, 24\); got \(5, 24\)"),
        (lambda: saccade.Attention(24, 6)(torch.randn(2, 5, 23)), r"got \(2, 5, 23\)"),
        (lambda: saccade.Attention(24, 6, context_width=7)(torch.randn(2, 5, 24)), "context of width 7: pass one"),
        (
            lambda: saccade.Attention(24, 6)(torch.randn(2, 5, 24), torch.randn(3, 5, 24)),
            "x has a batch of 2 and context of 3",
        ),
        (lambda: saccade.Attention(24, 6, kv_heads=2, project=False), "without projections all heads share the width"),
        (lambda: saccade.Attention(24, 6, head_width=5, project=False), "without projections all heads share"),
        (lambda: saccade.Attention(24, 6, context_width=7, project=False), "without projections all heads share"),
        (lambda: saccade.Attention(24, 6, kv_heads=3, head_width=8, project=False), "without projections all heads"),
        (lambda: saccade.Attention(24, 6)(*torch.randn(2, 2, 5, 24), values=torch.randn(2, 4, 24)), "of one length"),
        (lambda: saccade.Attention(24, 6)(torch.randn(2, 5, 24), values=torch.randn(2, 5, 24)), "pass both"),
        (lambda: saccade.Attention(24, 6)(torch.randn(2, 5, 24), mask="padding"), r"write padding\(lengths\)"),
        (lambda: saccade.Attention(24, 6)(torch.randn(2, 5, 24), mask=torch.ones(5, 5)), "a mask is bool"),
    ],
)
def test_bad_input_is_told_in_one_sentence(build, why):
    with pytest.raises(saccade.SaccadeError, match=why) as problem:
        build()
    assert "\n" not in str(problem.value)


def test_a_cache_leaves_what_gradients_hold_alone():
    ours = layer(24, 6, mask="causal")
    cache, x = saccade.Cache(), torch.randn(1, 4, 24, dtype=torch.float64)
    output = ours(x, cache=cache)
    cache.rewind(3)
    with torch.no_grad():
        ours(x[:, :1], cache=cache)
    output.sum().backward()
    cache = saccade.Cache()
    with torch.inference_mode():
        ours(x, cache=cache)
    with torch.no_grad():
        assert ours(x[:, :1], cache=cache).isfinite().all()


def test_stepping_over_a_context_needs_a_place():
    ours = layer(24, 6, mask="window(2)")
    x, context, cache = torch.randn(1, 4, 24).double(), torch.randn(1, 4, 24).double(), saccade.Cache()
    with torch.no_grad():
        steps = [ours(x[:, i : i + 1], context, cache=cache, start=i) for i in range(4)]
        torch.testing.assert_close(torch.cat(steps, 1), ours(x, context))
        with pytest.raises(saccade.SaccadeError, match="needs start="):
            ours(x[:, :1], context, cache=cache)


def test_stepping_over_a_context_needs_a_place_for_the_calls_mask_too():
    ours = layer(24, 6)
    x, context, cache = torch.randn(2, 4, 24).double(), torch.randn(2, 7, 24).double(), saccade.Cache()
    with torch.no_grad():
        steps = [ours(x[:, i : i + 1], context, mask="causal", cache=cache, start=i) for i in range(4)]
        torch.testing.assert_close(torch.cat(steps, 1), ours(x, context, mask="causal"))
        for mask in ("causal", saccade.causal & saccade.padding([5, 7]), saccade.prefix(3) | saccade.causal):
            with pytest.raises(saccade.SaccadeError, match="needs start="):
                ours(x[:, :1], context, mask=mask, cache=cache)
        for mask in ("everyone", saccade.padding([5, 7]), torch.rand(2, 1, 1, 7) > 0.3):  # whoever asks
            torch.testing.assert_close(
                ours(x[:, 3:], context, mask=mask, cache=cache), ours(x[:, 3:], context, mask=mask)
            )


@pytest.mark.parametrize("score", ["additive", "additive(hidden=5)", "bilinear"])
@pytest.mark.parametrize("position", POSITIONS)
def test_a_cached_context_is_the_context(score, position):
    ours, cache = layer(24, 6, score=score, position=position), saccade.Cache()
    x, context = torch.randn(2, 3, 24).double(), torch.randn(2, 7, 24).double()
    expected = ours(x, context)
    for _ in range(2):
        torch.testing.assert_close(ours(x, context, cache=cache, start=0), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("rows", "length"), [(3, 7), (2, 5)])
def test_a_cache_belongs_to_one_context(rows, length):
    ours, cache = layer(24, 6), saccade.Cache()
    ours(torch.randn(1, 4, 24).double(), torch.randn(1, 7, 24).double(), cache=cache)
    with pytest.raises(saccade.SaccadeError, match=r"\(1, 7\), the call brings one of .* make a new cache"):
        ours(torch.randn(rows, 4, 24).double(), torch.randn(rows, length, 24).double(), cache=cache)


def test_what_means_absolute_places_is_told():
    assert saccade.Attention(24, 6, mask="causal & window(3)", position="rotary").fixed is None
    assert saccade.Attention(24, 6, position="rotary", score="cosine").fixed is None
    assert saccade.Attention(24, 6, position="alibi", score="feature(elu)", normaliser="sum").fixed is None
    assert saccade.Attention(24, 6, mask="causal & prefix(3)").fixed == "the mask 'prefix(3)'"
    for score in ("bilinear", "additive", "gate", "integral", "feature(favor, 5, seed=0)"):
        made = saccade.Attention(24, 6, position="rotary", score=score)
        assert made.fixed == f"the score {score.partition('(')[0]!r} of turned vectors"


def written(x: Tensor) -> None:
    with torch.no_grad():
        x.copy_(x.flip(-1))


@pytest.mark.parametrize("kind", ["tensor", "lengths", "ids", "composed", "assigned", "written"])
def test_weights_of_what_has_changed_are_refused(kind):
    ours, x = layer(24, 6, score="bilinear"), torch.randn(2, 5, 24).double()
    seen, lengths, ids = torch.rand(2, 1, 5, 5) > 0.4, torch.tensor([2, 5]), torch.tensor([0, 1, 1, 1, 1])
    masks = {"tensor": seen, "lengths": saccade.padding(lengths), "ids": saccade.document(ids)}
    composed = saccade.causal & ~saccade.padding(lengths) | saccade.prefix(1)
    with saccade.watch(ours) as watched:
        ours(x, mask=composed if kind == "composed" else masks.get(kind))
    assert watched.weights("attention").shape == (2, 6, 5, 5)
    if kind == "assigned":
        ours.load_state_dict({name: each * 3 for name, each in ours.state_dict().items()}, assign=True)
    else:
        written({"tensor": seen, "ids": ids, "written": ours.score.weight}.get(kind, lengths))
    with pytest.raises(saccade.SaccadeError, match="changed since it was watched"):
        watched.weights("attention")


def test_states_that_meet_as_they_are_are_kept_as_they_were():
    ours, x, context = layer(24, 6, project=False), torch.randn(2, 5, 24).double(), torch.randn(2, 7, 24).double()
    with saccade.watch(ours) as watched:
        ours(x, context)
    before = watched.weights("attention")
    written(x)
    written(context)
    assert torch.equal(watched.weights("attention"), before)
