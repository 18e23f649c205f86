"""`block` against the law: every mask, the tiles that masks tell, and what long calls cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import saccade
from saccade.attend import block, cut, sdpa
from saccade.attend.grid import Grid
from saccade.attend.mask import as_mask
from saccade.attend.normaliser import NORMALISERS
from saccade.attend.position import alibi, relative, t5, xl
from saccade.attend.score import additive, bilinear, gate
from saccade.attend.tile import ALL, NOBODY, Tiling

LITERAL = [
    "everyone",
    "causal",
    "window(5)",
    "causal & window(5)",
    "dilated(3, 4)",
    "causal & dilated(5, 3)",
    "dilated(2, 1)",
    "blocks(5)",
    "blocks(3, before=2) | prefix(4)",
    "blocks(17, layout=[[1, 0, 1], [0, 0, 0], [1, 1, 0]])",
    "bigbird(3, 3, 1, 1)",
    "causal & bigbird(5, 1, 1, 2)",
    "bigbird(8, 3, 0, 2, seed=7)",
    "windows(7, 7, 3)",
    "windows(7, 7, 3, shift=2) & causal",
    "causal | prefix(6)",
    "~window(4) & causal",
    "~(causal & window(9)) & ~everyone | bigbird(4, 1, 1, 1) & causal",
]


@pytest.fixture(params=[(8, 4), (4, 8)], ids=str)
def tiles(request, monkeypatch) -> Iterator[None]:
    """Small tiles, so that short calls have many of them."""
    _small(monkeypatch, *request.param)
    yield
    cut._CACHE.clear()


def _small(monkeypatch, queries: int, keys: int) -> None:
    cut._CACHE.clear()
    monkeypatch.setattr(cut, "QUERIES", {queries: 1.0, 2 * queries: 0.9})
    monkeypatch.setattr(cut, "KEYS", keys)
    monkeypatch.setattr(block, "KEYS", keys)
    monkeypatch.setattr(cut, "STRIP", 3 * keys)
    monkeypatch.setattr(cut, "SAMPLE", 2)


def tensors(B=2, H=6, G=3, T=37, S=37, D=5, E=5, dtype=torch.float64, seed=0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((B, H, T, D), (B, G, S, D), (B, G, S, E))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def batch(B: int, H: int, T: int, S: int, seed: int = 0) -> dict[str, saccade.Mask | Tensor]:
    """Masks that hold something of the batch."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, S + 1, (B,), generator=generator)
    longest = max(T, S) + 20
    ids = torch.randint(0, 4, (B, longest), generator=generator).sort().values
    return {
        "padding": saccade.padding(lengths) & as_mask("window(6)"),
        "left": saccade.padding(lengths, "left") & as_mask("causal & bigbird(4, 1, 1, 1)"),
        "prefixes": saccade.prefix(lengths) | as_mask("causal & window(3)"),
        "document": saccade.document(ids) & saccade.causal,
        "one document": ~saccade.document(ids[0]),
        "order": saccade.order(torch.randperm(longest, generator=generator), strict=True),
        "orders": saccade.order(torch.stack([torch.randperm(longest, generator=generator) for _ in range(B)])),
        "tensor": torch.rand(B, H, T, S, generator=generator) > 0.95,
        "rows": saccade.window(7) & (torch.rand(T, S, generator=generator) > 0.5),
        "keys": torch.rand(S, generator=generator) > 0.5,
        "queries": torch.rand(B, 1, T, 1, generator=generator) > 0.5,
        "nobody": torch.zeros(1, 1, T, S, dtype=torch.bool),
    }


def same(a: list[Tensor], b: list[Tensor], tolerance: float = 1e-10) -> None:
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


def both(inputs: list[Tensor], others: Sequence[Tensor] = (), **options) -> list[list[Tensor]]:
    """The output and all gradients, by `block` and by `plain`."""
    found = []
    for kernel in ("block", "plain"):
        output = saccade.attention(*inputs, kernel=kernel, **options)
        weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        grads = torch.autograd.grad(output, [*inputs, *others], weight.to(output.dtype), allow_unused=True)
        filled = [torch.zeros_like(x) if g is None else g for x, g in zip([*inputs, *others], grads, strict=True)]
        found.append([output, *filled])
    return found


@pytest.mark.parametrize("text", LITERAL)
def test_masks_follow_the_law(text, tiles):
    same(*both(tensors(), mask=text))
    same(*both(tensors(T=11, S=43), mask=text, start=2))


@pytest.mark.parametrize("name", list(batch(2, 6, 37, 37)))
def test_masks_of_a_batch_follow_the_law(name, tiles):
    inputs, mask = tensors(), batch(2, 6, 37, 37)[name]
    same(*both(inputs, mask=mask))
    same(*both(inputs, mask=mask, start=torch.tensor([3, 0])))


@examples(60)
@given(data=st.data())
def test_the_law_at_any_size(data):
    with pytest.MonkeyPatch.context() as patch:
        _small(patch, data.draw(st.sampled_from([2, 5, 16])), data.draw(st.sampled_from([3, 8])))
        B, G, R = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([1, 3]))
        T, S = data.draw(st.integers(0, 31)), data.draw(st.integers(0, 31))
        D = data.draw(st.sampled_from([1, 2, 7]))
        dtype = data.draw(st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]))
        start = data.draw(st.sampled_from([0, 1, 5])) if T > S else data.draw(st.sampled_from([None, 0, 13]))
        inputs = tensors(B, G * R, G, T, S, D, data.draw(st.sampled_from([D, D + 1])), dtype)
        masks = [as_mask(text) for text in LITERAL] + list(batch(B, G * R, T, S, data.draw(st.integers(0, 9))).values())
        mask = data.draw(st.sampled_from(masks))
        options = {"normaliser": data.draw(st.sampled_from(["softmax", "softmax(beta=0)", "softmax(beta=3)"]))}
        ours, law = both(inputs, mask=mask, start=start, **options)
        assert ours[0].dtype == dtype
        loose = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 8e-2, torch.float16: 1e-2}
        same(ours, law, loose[dtype])
    cut._CACHE.clear()


@pytest.mark.parametrize("name", list(NORMALISERS))
@pytest.mark.parametrize("score", ["scaled_dot", "cosine", bilinear, additive, gate])
def test_every_score_and_normaliser(name, score, tiles):
    torch.manual_seed(0)
    made = score if isinstance(score, str) else score(5, 6).double()
    others = [] if isinstance(score, str) else list(made.parameters())
    same(*both(tensors(), others, mask="causal & bigbird(4, 1, 1, 1)", score=made, normaliser=name))


@pytest.mark.parametrize(
    "make",
    [
        alibi,
        lambda: t5(8, 16, heads=6),
        lambda: relative(3, head_width=5),
        lambda: xl(head_width=5, heads=6, input_width=10),
    ],
)
@pytest.mark.parametrize("mask", ["causal", "causal & window(6)", "causal & bigbird(4, 1, 1, 1)"])
def test_positions(make, mask, tiles):
    torch.manual_seed(0)
    position = make().double()
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    same(*both(tensors(T=23), list(position.parameters()), mask=mask, position=position))


@pytest.mark.parametrize(
    "mask", ["causal", saccade.causal & saccade.padding([37, 9]), saccade.padding([20, 30], "left")]
)
def test_values_of_another_width(mask, tiles, monkeypatch):
    """A tile that torch's kernel computes keeps its positions in the whole call."""
    monkeypatch.setattr(sdpa, "ONE_BY_ONE", 1)
    monkeypatch.setattr(sdpa, "ONE_BY_ONE_WITH_GRADIENTS", 1)
    for inputs, start in ((tensors(E=7), None), (tensors(T=11, E=7), 20), (tensors(T=11, E=7), 26)):
        same(*both(inputs, mask=mask, start=start))


def test_layouts_of_memory(tiles):
    """Heads between positions and numbers (as a layer has them), shared keys, gradients that are one number."""
    q = torch.randn(2, 37, 6, 5, dtype=torch.float64).transpose(1, 2).requires_grad_()
    k, v = (torch.randn(2, 1, 1, 5, dtype=torch.float64).expand(2, 3, 37, 5).requires_grad_() for _ in range(2))
    w = torch.randn(2, 3, 5, 37, dtype=torch.float64).mT.requires_grad_()
    for inputs in ([q, k, v], [q, w, w.detach().requires_grad_()]):
        output = saccade.attention(*inputs, mask="window(9)", kernel="block")
        law = saccade.attention(*inputs, mask="window(9)", kernel="plain")
        same([output], [law])
        same(list(torch.autograd.grad(output.sum(), inputs)), list(torch.autograd.grad(law.sum(), inputs)))


def cells(mask: saccade.Mask, grid: Grid, top: Tensor, bottom: Tensor, left: Tensor, right: Tensor) -> None:
    """Nobody where it says nobody, all where it says all."""
    states = mask.tiles(Tiling(grid, top.view(-1, 1), bottom.view(-1, 1), left.view(1, -1), right.view(1, -1)))
    states = states.expand(len(top), len(left))
    dense = mask.dense(grid)
    dense = dense.expand(*dense.shape[:2], grid.T, grid.S)
    for a, (first, last) in enumerate(zip(top.tolist(), bottom.tolist(), strict=True)):
        for b, (begin, end) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            part = dense[:, :, first - grid.start : last + 1 - grid.start, begin : end + 1]
            assert states[a, b] != NOBODY or not part.any(), (mask, first, last, begin, end)
            assert states[a, b] != ALL or part.all(), (mask, first, last, begin, end)


@examples(20)
@given(data=st.data())
def test_tiles_tell_the_truth(data):
    T, S, start = data.draw(st.integers(1, 29)), data.draw(st.integers(1, 29)), data.draw(st.integers(0, 13))
    grid = Grid(T, S, start, torch.device("cpu"))
    masks = [as_mask(text) for text in LITERAL] + [as_mask(each) for each in batch(2, 3, T, S).values()]
    a, b = (
        torch.tensor(sorted({0, *data.draw(st.lists(st.integers(0, n - 1), max_size=5))})) for n in (T, S)
    )  # where tiles begin: of any width, not of one
    top, bottom = a + start, torch.cat((a[1:], torch.tensor([T]))) - 1 + start
    for mask in masks:
        cells(mask, grid, top, bottom, b, torch.cat((b[1:], torch.tensor([S]))) - 1)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("window(128)", 128 + 128 + 2 * 64),
        ("causal & window(128)", 128 + 128 + 64),
        ("blocks(64)", 64),
        ("causal & bigbird(64, 3, 1, 2)", 64 * 5),
        ("causal & dilated(4, 32)", 128 + 128 + 64),
        ("windows(128, 64, 8)", 8 * 64),
    ],
)
def test_what_the_mask_leaves_out_is_not_computed(text, kept):
    T = 8192
    plan = cut.cut(as_mask(text), Grid(T, T, 0, torch.device("cpu")))
    assert sum(len(tile.rows) * tile.width for tile in plan.tiles) <= kept * T
    assert [row for tile in plan.tiles for row in tile.rows] == list(range(T))


def test_padding_is_not_computed():
    T = 8192
    mask = as_mask("window(128)") & saccade.padding([1000])
    plan = cut.cut(mask, Grid(T, T, 0, torch.device("cpu")))
    assert sum(len(tile.rows) * tile.width for tile in plan.tiles) < 500 * 1500


def test_no_future_leak_bit_for_bit():
    for mask in ("causal", "causal & window(70)", "causal & bigbird(16, 3, 1, 2)", "causal & dilated(9, 7)"):
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            q, k, v = (x.detach() for x in tensors(1, 4, 2, 301, 301, 16, 16, dtype))
            before = saccade.attention(q, k, v, mask=mask, kernel="block")
            for t in (1, 64, 173, 300):
                later = [x.clone() for x in (q, k, v)]
                for x in later:
                    x[:, :, t:] = torch.randn_like(x[:, :, t:]) * 3
                after = saccade.attention(*later, mask=mask, kernel="block")
                assert torch.equal(before[:, :, :t], after[:, :, :t])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("mask", ["causal & window(9)", "causal & bigbird(4, 1, 1, 1)"])
@pytest.mark.parametrize("position", [None, "alibi"])
def test_broken_numbers_stay_with_who_may_look(mask, which, bad, position, tiles):
    inputs = tensors()
    dirty = [x.detach().clone().requires_grad_() for x in inputs]
    with torch.no_grad():
        dirty[which][:, :, 20] = bad
    sees = as_mask(mask)(37)[:, 20]
    clean, output = (saccade.attention(*each, mask=mask, position=position, kernel="block") for each in (inputs, dirty))
    same([output[:, :, ~sees]], [clean[:, :, ~sees]])
    assert output[:, :, sees].isnan().any(-1).all()
    ours, theirs = (
        torch.autograd.grad(each[:, :, ~sees].square().sum(), x) for each, x in ((output, dirty), (clean, inputs))
    )
    same(list(ours), list(theirs))


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_rows_that_may_look_at_nothing(dropout, tiles):
    inputs = tensors()
    may = torch.zeros(37, 37, dtype=torch.bool)
    may[5, 3] = may[30, :] = True
    output = saccade.attention(*inputs, mask=may, kernel="block", dropout=dropout)
    blind = ~may.any(1)
    assert (output[:, :, blind] == 0).all()
    gradients = torch.autograd.grad(output.sum(), inputs)
    assert all(g.isfinite().all() for g in gradients)
    assert (gradients[0][:, :, blind] == 0).all()
    assert (gradients[1][:, :, ~may.any(0)] == 0).all()


def test_autocast_is_as_sdpa():
    q, k, v = (x.detach() for x in tensors(T=70, S=70, dtype=torch.float32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, theirs = (saccade.attention(q, k, v, mask="window(9)", kernel=each) for each in ("block", "sdpa"))
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


def test_compiled_it_is_the_same_attention():
    q, k, v = (x.detach() for x in tensors(T=70, S=70))
    wanted = saccade.attention(q, k, v, mask="window(9)", kernel="plain")
    compiled = torch.compile(lambda *x: saccade.attention(*x, mask="window(9)", kernel="block"), backend="eager")
    same([compiled(q, k, v)], [wanted])


def test_refusals_say_why_and_what_to_use():
    class odd(saccade.Mask):
        def dense(self, grid):
            return (grid.i + grid.j) % 2 == 1

        def __repr__(self):
            return "odd"

    q, k, v = tensors()
    for options, why in (
        ({"mask": saccade.causal & ~odd()}, "block asks which keys to leave out, and causal & ~odd cannot tell: use"),
        (
            {"score": lambda q, k: q @ k.mT},
            "that <lambda> depends on one query and one key alone, and does not: use 'plain' or 'chunked'",
        ),
        ({"normaliser": lambda s, may: s}, "that <lambda> depends on what a query may look at alone"),
    ):
        with pytest.raises(saccade.SaccadeError, match=why):
            saccade.attention(q, k, v, kernel="block", **options)
        saccade.attention(q, k, v, **options)


@pytest.mark.parametrize(
    ("mask", "T", "chosen"),
    [
        ("causal & window(64)", 1024, True),
        ("causal & window(64)", 256, False),
        ("bigbird(64)", 2048, True),
        ("bigbird(64)", 512, False),
        ("causal", 2048, False),
        (None, 2048, False),
    ],
)
def test_auto_takes_it_where_it_is_faster(mask, T, chosen, monkeypatch):
    calls = []
    attend = block.attend
    monkeypatch.setattr(block, "attend", lambda *a: calls.append(1) or attend(*a))
    q, k, v = (x.detach() for x in tensors(1, 1, 1, T, T, 2, 2, torch.float32))
    output = saccade.attention(q, k, v, mask=mask)
    assert bool(calls) == chosen
    same([output], [saccade.attention(q, k, v, mask=mask, kernel="plain")], 1e-4)


def test_batched_is_alone_and_left_padding_is_right_padding(tiles):
    lengths, S = [3, 37, 20], 37
    q, k, v = (x.detach() for x in tensors(3, T=S))
    for base in ("window(5)", "causal & window(5)", "causal & dilated(3, 2)", "dilated(2, 5)"):
        right = saccade.attention(q, k, v, mask=as_mask(base) & saccade.padding(lengths), kernel="block")
        shifted = [torch.stack([x[b].roll(S - n, 1) for b, n in enumerate(lengths)]) for x in (q, k, v)]
        left = saccade.attention(*shifted, mask=as_mask(base) & saccade.padding(lengths, "left"), kernel="block")
        for b, n in enumerate(lengths):
            alone = saccade.attention(*(x[b : b + 1, :, :n] for x in (q, k, v)), mask=base, kernel="block")
            same([right[b : b + 1, :, :n], left[b : b + 1, :, S - n :]], [alone, alone])


MEMORY = """
import resource, torch, saccade
q, k, v = (torch.randn(1, 1, 32768, 16, requires_grad=True) for _ in range(3))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for mask in ("causal & window(64)", "bigbird(64, 3, 1, 2)", "causal & dilated(8, 8) & padding([9000])"):
    saccade.attention(q, k, v, mask=mask).sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.proof
def test_memory_is_linear():
    """32,768 queries and keys: a mask of all pairs would take 1 GiB, their weights 4."""
    grown = int(subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout)
    assert grown < 200 * 1024  # KiB


@pytest.mark.parametrize("kernel", ["auto", "block"])
@pytest.mark.parametrize("mask", ["causal & window(8)", "document", "bigbird(8, 3, 1, 1)", "tensor"])
def test_another_default_device_changes_nothing(kernel, mask):
    q = torch.randn(1, 2, 600, 8)
    who = {"document": saccade.document(torch.arange(600) // 70), "tensor": torch.rand(600, 600) < 0.1}.get(mask, mask)
    wanted = saccade.attention(q, q, q, mask=who, kernel=kernel)
    cut._CACHE.clear()
    with torch.device("meta"):
        found = saccade.attention(q, q, q, mask=who, kernel=kernel)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("position", [None, "alibi"])
def test_where_nobody_looks_gradients_are_zeros(position):
    q, k, v = (torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3))
    output = saccade.attention(q, k, v, mask=saccade.padding([0]), position=position, kernel="block")
    assert all(torch.equal(each, torch.zeros_like(each)) for each in torch.autograd.grad(output.sum(), (q, k, v)))


def test_a_batch_of_nothing():
    q = torch.randn(0, 2, 600, 8)
    mask = saccade.document(torch.zeros(0, 600, dtype=torch.long)) & saccade.window(3)
    assert saccade.attention(q, q, q, mask=mask).shape == q.shape


def test_a_second_derivative_is_refused():
    inputs = tensors()
    output = saccade.attention(*inputs, mask="window(5)", kernel="block")
    with pytest.raises(saccade.SaccadeError, match="block has first derivatives alone: use 'plain' or 'chunked'"):
        torch.autograd.grad(output.square().sum(), inputs[0], create_graph=True)
