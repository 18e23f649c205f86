"""Windows of a picture, computed one by one, against the dense mask; and the offsets that a window's cells have."""

from __future__ import annotations

import pytest
import torch
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import saccade
from saccade.attend import block, windowed
from saccade.attend.grid import place
from saccade.attend.layer import Attention
from saccade.attend.mask import as_mask
from saccade.attend.meaning import Meaning
from saccade.attend.normaliser import softmax
from saccade.attend.position import offsets
from saccade.attend.score import scaled_dot
from saccade.attend.sparse import windows
from saccade.error import SaccadeError
from saccade.model.cells import places


def cells(height: int, width: int) -> Tensor:
    return places((height, width), torch.device("cpu"))


@given(
    st.integers(1, 11), st.integers(1, 13), st.integers(1, 5), st.integers(0, 4), st.booleans(), st.sampled_from([1, 3])
)
@examples(100)
def test_windows_are_the_dense_mask_with_gradients(height, width, size, shift, placed, groups):
    """Any picture, also one that is not made of whole windows; heads that share keys; positions of windows, or none."""
    mask = windows(height, width, size, min(shift, size - 1))
    made = torch.manual_seed(height * 100 + width)
    layer = Attention(24, heads=3, kv_heads=groups, position="offsets((5, 5))" if placed else None).double()
    x = torch.randn(2, height * width, 24, generator=made, dtype=torch.float64)
    outer = torch.randn(x.shape, generator=made, dtype=torch.float64)
    found = {}
    for kernel in ("plain", "block"):
        layer.kernel = kernel
        layer.zero_grad()
        y = x.clone().requires_grad_()
        said = layer(y, mask=mask, places=cells(height, width))
        said.backward(outer)
        found[kernel] = [said.detach(), y.grad, *(each.grad for each in layer.parameters())]
    for plain, fast in zip(*found.values(), strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-10)


def test_a_call_of_windows_is_taken_apart():
    """Otherwise the test above would compare tiles with tiles."""
    q = torch.randn(1, 2, 36, 8)
    meaning = Meaning(scaled_dot(), windows(6, 6, 3, 1), softmax())
    assert windowed.fits(meaning, place(q, q, 0))
    assert block.pays(q, meaning, place(q, q, 0))
    assert not windowed.fits(meaning, place(q[:, :, :5], q, None)), "some of the cells alone"
    assert not windowed.fits(meaning._replace(mask=as_mask("windows(6, 6, 3) & causal")), place(q, q, 0))


@pytest.mark.parametrize("normaliser", ["softmax(beta=2)", "sparsemax", "sigmoid"])
@pytest.mark.parametrize("score", ["scaled_dot", "cosine"])
def test_windows_of_other_meanings(score, normaliser):
    q, k, v = torch.randn(3, 2, 2, 35, 8, dtype=torch.float64, generator=torch.manual_seed(1))
    given = {"mask": "windows(5, 7, 3, 1)", "score": score, "normaliser": normaliser}
    plain = saccade.attention(q, k, v, kernel="plain", **given)
    torch.testing.assert_close(saccade.attention(q, k, v, kernel="block", **given), plain, rtol=0, atol=1e-12)


def test_what_is_not_finite_stays_in_its_window():
    q, k, v = torch.randn(3, 1, 2, 36, 8, dtype=torch.float64, generator=torch.manual_seed(1))
    k[:, :, 35], v[:, :, 35] = torch.nan, torch.nan  # a cell of the last window
    said = saccade.attention(q, k, v, mask="windows(6, 6, 3)", kernel="block")
    assert said.isnan().any(-1).nonzero()[:, 2].unique().tolist() == [21, 22, 23, 27, 28, 29, 33, 34, 35]


def test_offsets_by_definition():
    position = offsets((3, 4), heads=2).double()
    here = cells(3, 4)
    found = position.between(here, here)
    for i, (row, column) in enumerate(here[0].tolist()):
        for j, (other, along) in enumerate(here[0].tolist()):
            number = (row - other + 2) * 7 + column - along + 3
            assert torch.equal(found[0, :, i, j], position.weight[number])
    assert len(position.weight) == 5 * 7


def test_offsets_of_what_stands_nowhere():
    """Without numbers of its own nothing is added; with them three a head: from it, to it, between two."""
    here = torch.cat((torch.full((1, 2, 2), -1), cells(2, 2)), 1)
    plain, extra = (offsets((2, 2), each, heads=3) for each in (False, True))
    assert not plain.between(here, here)[0, :, :2].any()
    assert not plain.between(here, here)[0, :, :, :2].any()
    found = extra.between(here, here)[0]
    assert torch.equal(found[:, 0, 3], extra.weight[-3])
    assert torch.equal(found[:, 4, 1], extra.weight[-2])
    assert torch.equal(found[:, 0, 1], extra.weight[-1])


def test_offsets_of_rows_and_of_other_pictures():
    """A watched row has the weights of the whole; what is farther than the table counts as its farthest."""
    layer = Attention(12, heads=2, position="offsets((2, 2))").double()
    x = torch.randn(1, 12, 12, dtype=torch.float64)
    with saccade.watch(layer) as seen:
        layer(x, places=cells(3, 4))
    whole = seen.weights("attention")
    torch.testing.assert_close(seen.weights("attention", rows=[3, 7]), whole[:, :, [3, 7]])
    far = layer.position.between(cells(3, 4), cells(3, 4))
    assert torch.equal(far[:, :, 0, 2], far[:, :, 0, 3])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Attention(4, 2, position="offsets(7)"), r"offsets: give the rows and columns .* got 7"),
        (lambda: Attention(4, 2, position="offsets((2, 2))")(torch.zeros(1, 4, 4)), "needs places on two axes"),
        (lambda: offsets((2, 2), heads=3).on_scores(torch.zeros(1, 2, 4, 2), None, None), "built for 3 heads; q has 2"),
    ],
)
def test_wrong_offsets(make, told):
    with pytest.raises(SaccadeError, match=told):
        make()
