"""Linformer: the law by hand, padding on either side, broken numbers, and everything it must refuse."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

import saccade
from saccade import SaccadeError
from saccade.attend.summary import as_summary, linformer

B, T, W, H, G, SLOTS, LENGTH = 3, 7, 24, 6, 3, 5, 11
SHARES = ["none", "heads", "keys"]


def layer(share="heads", seed=0, **options) -> saccade.Attention:
    """A layer in float64 whose weights are all random."""
    torch.manual_seed(seed)
    options = {"kv_heads": G, "summary": f"linformer({SLOTS}, {LENGTH}, {share})"} | options
    made = saccade.Attention(W, H, **options).double()
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.4)
    return made


def randn(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_hand(ours, x, length=None):
    """softmax(q (E k)^T / sqrt(D)) F v, head by head, of the first `length` positions of one sequence (T,C)."""
    length = len(x) if length is None else length
    D, outputs = W // H, []
    for h in range(H):
        g = h * G // H
        q, k, v = (
            (x @ part.weight.T + part.bias)[:, n * D : (n + 1) * D]
            for part, n in ((ours.query, h), (ours.key, g), (ours.value, g))
        )
        both = (ours.summary.key, ours.summary.key if ours.summary.value is None else ours.summary.value)
        E, F = (each[g] if each.dim() == 3 else each for each in both)
        keys = sum(torch.outer(E[:, j], k[j]) for j in range(length))
        values = sum(torch.outer(F[:, j], v[j]) for j in range(length))
        outputs.append(torch.softmax(q @ keys.T / D**0.5, -1) @ values)
    return torch.cat(outputs, 1) @ ours.out.weight.T + ours.out.bias


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kernel", ["plain", "chunked", "sdpa", "auto"])
@pytest.mark.parametrize("length", [1, T, LENGTH])
def test_it_is_the_papers(share, kernel, length):
    ours, x = layer(share, kernel=kernel), randn(B, length, W)
    torch.testing.assert_close(ours(x), torch.stack([by_hand(ours, each) for each in x]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("share", SHARES)
def test_gradients(share):
    x = randn(2, 4, 6).requires_grad_()
    ours = saccade.Attention(6, 2, summary=f"linformer(3, 5, {share})").double()
    assert gradcheck(lambda *_: ours(x, mask=saccade.padding([4, 2])), (x, *ours.summary.parameters()))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("position", [None, "rotary", "rotary(interleaved)"])
def test_padded_is_alone_on_either_side(share, position):
    """Columns count from the first real token, wherever the padding is."""
    ours, x, lengths = layer(share, position=position), randn(B, T, W), [4, 7, 1]
    right = ours(x, mask=saccade.padding(lengths))
    moved = torch.stack([each.roll(T - n, 0) for each, n in zip(x, lengths, strict=True)])
    left = ours(moved, mask=saccade.padding(lengths, "left"))
    for b, n in enumerate(lengths):
        alone = ours(x[b : b + 1, :n])[0]
        torch.testing.assert_close(right[b, :n], alone, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(left[b, T - n :], alone, rtol=1e-10, atol=1e-10)
    same = ours(x, mask=saccade.everyone & saccade.padding([4]))  # one length for all
    torch.testing.assert_close(same[0], right[0])


@pytest.mark.parametrize("kernel", ["plain", "chunked", "sdpa"])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_what_is_hidden_never_counts(kernel, side, broken):
    ours, clean, lengths = layer(kernel=kernel), randn(B, T, W), torch.tensor([4, 7, 2])
    hidden = ~saccade.padding(lengths, side)(1, T)[:, 0, 0].unsqueeze(-1)  # (B,T,1)
    asking = clean.masked_fill(hidden, 0.0)

    def run(x):
        """Queries are whole; keys and values are of x, with all of its padding."""
        x = x.clone().requires_grad_()
        output = ours(asking, x, mask=saccade.padding(lengths, side))
        weights = (x, ours.summary.key, ours.summary.value)
        return output, torch.autograd.grad(output.square().sum(), weights)

    output, (x, *own) = run(clean)
    spoilt, (y, *others) = run(clean.masked_fill(hidden, broken))
    assert torch.equal(spoilt, output)
    torch.testing.assert_close(own, others)
    torch.testing.assert_close(y, x)
    assert not x.masked_fill(~hidden, 0.0).any()


def test_hidden_keys_and_values_have_no_gradient():
    summary = as_summary(f"linformer({SLOTS}, {LENGTH})", heads=G).double()
    k, v = (randn(B, G, T, 4, seed=each) for each in (1, 2))
    k[0, :, 5:], v[0, :, 5:] = torch.nan, torch.inf
    k.requires_grad_(), v.requires_grad_()
    keys, values = summary(k, v, saccade.padding([5, T, T]))
    assert keys.shape == (B, G, SLOTS, 4)
    (keys.square().sum() + values.square().sum()).backward()
    for each in (k, v):
        assert each.grad.isfinite().all()
        assert not each.grad[0, :, 5:].any()
    assert all(weight.grad.isfinite().all() for weight in summary.parameters())


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", [None, saccade.padding([7, 2, 0]), saccade.padding([7, 2, 0], side="left")])
def test_summed_before_or_after_the_projections_is_the_same(share, bias, mask, monkeypatch):
    ours, x = layer(share, bias=bias), randn(B, T, W).requires_grad_()
    wanted = [x, *ours.parameters()]
    assert ours.summary.sooner(T, W, ours.key.out_features) == (share != "none")
    found = []
    for sooner in (share != "none", False):
        monkeypatch.setattr(linformer, "sooner", lambda *_, sooner=sooner: sooner)
        y = ours(x, mask=mask)
        found.append([y, *torch.autograd.grad((y * randn(*y.shape, seed=3)).sum(), wanted)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_a_sequence_of_nothing_gives_zeros():
    ours, x = layer(bias="qkv"), randn(B, T, W)
    for side in ("right", "left"):
        output = ours(x, mask=saccade.padding([0, 7, 3], side))
        assert not output[0].any()
        assert output[1:].any()


def test_a_context_is_summed_up_too():
    ours, x, context = layer(context_width=13), randn(B, 19, W), randn(B, LENGTH, 13, seed=1)
    assert ours(x, context).shape == (B, 19, W)  # queries may be as many as one likes
    torch.testing.assert_close(
        ours(x, context, mask=saccade.padding([3, 11, 5]))[:1], ours(x[:1], context[:1, :3]), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize(("share", "matrices"), [("none", 2 * G), ("heads", 2), ("keys", 1)])
def test_how_many_weights_are_shared(share, matrices):
    summary = as_summary(f"linformer({SLOTS}, {LENGTH}, share={share})", heads=G)
    assert sum(each.numel() for each in summary.parameters()) == matrices * SLOTS * LENGTH


@pytest.mark.parametrize(("slots", "length"), [(8, 128), (8, 13), (13, 8)])
def test_it_starts_with_the_sums_of_neighbours(slots, length):
    torch.manual_seed(0)
    for weight in linformer(slots, length, "none", heads=G).parameters():
        large = weight > 0.15
        assert large.sum() == G * length  # every position is in one slot
        assert (large.float().argmax(-2).diff() >= 0).all()
        for sums in (weight * large).square().sum(-1)[large.any(-1)].split(1):
            assert sums.item() == pytest.approx(1, rel=0.5)  # of keys that differ: as long as one of them
    drawn = linformer(slots, length, initial="normal", heads=G).key
    assert drawn.std().item() == pytest.approx(slots**-0.5, rel=0.2)


def test_other_scores_and_normalisers_look_at_slots():
    for options in ({"score": "additive"}, {"score": "cosine"}, {"normaliser": "sparsemax"}, {"score": "integral"}):
        ours, x = layer(**options), randn(B, T, W)
        with saccade.watch(ours) as seen:
            ours(x)
        weights = seen.weights("attention")
        assert weights.shape == (B, H, T, SLOTS)
        torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T, dtype=torch.float64))


def test_watched_weights_explain_the_output():
    ours, x, mask = layer(), randn(B, T, W), saccade.padding([4, 7, 2])
    with saccade.watch(ours) as seen:
        output = ours(x, mask=mask)
    assert torch.equal(output, ours(x, mask=mask))
    v = ours.value(x).unflatten(-1, (G, 4)).transpose(1, 2)
    _, values = ours.summary(v, v, mask)
    looked = seen.weights("attention") @ values.repeat_interleave(H // G, 1)
    torch.testing.assert_close(ours.out(looked.transpose(1, 2).flatten(2)), output)
    with torch.no_grad():
        ours.summary.key.add_(1.0)  # what was recorded are the slots: they stay what they were
    assert torch.equal(seen.weights("attention", head=2), seen.weights("attention")[:, 2])


def test_it_compiles():
    ours, x, mask = layer(), randn(B, T, W), saccade.padding([4, 7, 2])
    compiled = torch.compile(ours, backend="eager", fullgraph=True, dynamic=False)
    torch.testing.assert_close(compiled(x, mask=mask), ours(x, mask=mask))


CAUSAL = "a summary mixes all positions, so that a causal query would see the future: use it in an encoder alone$"
OTHERS = r"a summary mixes all positions, of which padding\(lengths\) alone can be left out; the mask here is "
SLOTTED = r"a summary's slots stand at no position, and {} compares those of queries and keys"


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        ("causal", CAUSAL),
        ("causal & window(3)", CAUSAL),
        (saccade.causal & saccade.padding([3, 3, 3]), CAUSAL),
        ("window(3)", OTHERS + r"window\(3\)$"),
        (saccade.padding([3, 3, 3]) & saccade.padding([5, 5, 5], "left"), OTHERS),
        (saccade.padding([3, 3, 3]) | saccade.causal, OTHERS),
        (torch.ones(T, T, dtype=torch.bool), OTHERS + "given"),
    ],
)
def test_masks_are_refused(mask, why):
    with pytest.raises(SaccadeError, match="^" + why):
        layer(mask=mask)
    with pytest.raises(SaccadeError, match="^" + why):
        layer()(randn(B, T, W), mask=mask)


@pytest.mark.parametrize("position", ["alibi", "relative(3)", "xl", "t5(8, 16)"])
def test_positions_of_pairs_are_refused(position):
    with pytest.raises(SaccadeError, match="^" + SLOTTED.format(position.partition("(")[0])):
        layer(position=position)


def test_a_cache_is_refused():
    with pytest.raises(SaccadeError, match=r"^a summary mixes all positions, and every step would change"):
        layer()(randn(B, T, W), cache=saccade.Cache())


def test_longer_sequences_are_refused():
    with pytest.raises(
        SaccadeError,
        match=r"^this linformer was built for 11 positions; the sequence has 12: .*summary = 'linformer\(5, 12\)'$",
    ):
        layer()(randn(B, 12, W))
    with pytest.raises(SaccadeError, match=r"^this linformer was built for 2 key heads; k has 3$"):
        layer(summary=linformer(SLOTS, LENGTH, "none", heads=2))(randn(B, T, W))


BAD = {
    "linformer(0, 11)": "linformer: slots is a whole number from 1; got 0",
    "linformer(5, 11.0)": "linformer: length is a whole number from 1; got 11.0",
    "linformer(5, 11, layers)": "linformer: share is 'none', 'heads' or 'keys', not 'layers'",
    "linformer(5, 11, initial=zero)": "linformer: initial is 'pooled' or 'normal', not 'zero'",
    "linformer(5)": r"summary linformer: .*it is written linformer\(slots, length, share='heads', initial='pooled'\)",
    "lineformer(5, 11)": "no summary is called 'lineformer'; did you mean 'linformer'",
    5: "summary is a spec string or a module, not int",
}


@pytest.mark.parametrize(("text", "why"), BAD.items())
def test_bad_arguments(text, why):
    with pytest.raises(SaccadeError, match="^" + why):
        layer(summary=text)
