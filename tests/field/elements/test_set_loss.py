"""Sets of elements: overlaps, matching, losses and denoising queries, against transformers and by their laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.error import SaccadeError
from saccade.field.elements.criterion import Told, Wanted, denoising_loss, matched, set_loss
from saccade.field.elements.denoise import denoising
from saccade.field.elements.element import elements, placed
from saccade.field.elements.matcher import Weights, pairs_of
from saccade.field.elements.overlap import ends, generalised, overlap, spans_of
from saccade.field.elements.scores import CRITERIA

L, B, N, K = 2, 3, 7, 5
WEIGHTS = Weights(2.0, 5.0, 2.0)


def spans(draw: np.random.Generator, *shape: int, axes: int = 2) -> torch.Tensor:
    low = torch.from_numpy(draw.uniform(0, 0.6, (*shape, axes)))
    return spans_of(low, low + torch.from_numpy(draw.uniform(0.05, 0.4, (*shape, axes))))


def told(draw: np.random.Generator, outputs: int, axes: int = 2) -> Told:
    return Told(torch.from_numpy(draw.normal(size=(L, B, N, outputs))), spans(draw, L, B, N, axes=axes))


def wanted(draw: np.random.Generator, axes: int = 2) -> Wanted:
    return Wanted(torch.from_numpy(draw.integers(0, K, (B, 4))), spans(draw, B, 4, axes=axes), [4, 0, 2])


def test_overlaps_are_those_of_transformers():
    from transformers.loss.loss_for_object_detection import box_iou, generalized_box_iou

    draw = np.random.default_rng(0)
    one, other = spans(draw, 13), spans(draw, 11)
    corners = [torch.cat(ends(each), 1) for each in (one, other)]
    torch.testing.assert_close(overlap(one[:, None], other), box_iou(*corners)[0])
    torch.testing.assert_close(generalised(one[:, None], other), generalized_box_iou(*corners))


@given(st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_overlap_does_not_depend_on_units(axes, seed):
    """Stretching an axis changes neither: what is measured in shares is right in pixels."""
    draw = np.random.default_rng(seed)
    one, other = spans(draw, 5, axes=axes), spans(draw, 5, axes=axes)
    stretch = torch.from_numpy(draw.uniform(0.1, 50, axes)).repeat(2)
    for measure in (overlap, generalised):
        torch.testing.assert_close(measure(one * stretch, other * stretch), measure(one, other))
    torch.testing.assert_close(overlap(one, one), torch.ones(5, dtype=torch.double))
    torch.testing.assert_close(spans_of(*ends(one)), one)


def test_the_cheapest_pairs_are_found():
    draw = np.random.default_rng(1)
    costs = draw.normal(size=(2, 2, 5, 3))
    found = pairs_of(costs, [3, 2], torch.device("cpu"))
    for layer in range(2):
        for row, count in enumerate((3, 2)):
            table = costs[layer, row, :, :count]
            best = min(sum(table[q, e] for e, q in enumerate(order)) for order in permutations(range(5), count))
            own = (found.layer == layer) & (found.row == row)
            assert own.sum() == count
            assert np.isclose(table[found.query[own], found.element[own]].sum(), best)


@pytest.mark.parametrize("name", CRITERIA)
def test_the_loss_does_not_depend_on_the_order_of_the_wanted(name):
    draw, criterion = np.random.default_rng(2), CRITERIA[name]()
    said, asked = told(draw, criterion.outputs(K)), wanted(draw)
    order = [2, 0, 3, 1]
    moved = Wanted(asked.labels[[0, 2]][:, order], asked.spans[[0, 2]][:, order], [4, 4])
    whole = Wanted(asked.labels[[0, 2]], asked.spans[[0, 2]], [4, 4])
    some = Told(said.scores[:, [0, 2]], said.spans[:, [0, 2]])
    one, other = (set_loss(criterion, WEIGHTS, some, each) for each in (whole, moved))
    for part, value in one.items():
        torch.testing.assert_close(other[part], value)


@pytest.mark.parametrize("name", CRITERIA)
def test_what_is_behind_the_last_element_does_not_count(name):
    draw, criterion = np.random.default_rng(3), CRITERIA[name]()
    said, asked = told(draw, criterion.outputs(K)), wanted(draw)
    labels, places = asked.labels.clone(), asked.spans.clone()
    labels[1], places[1], labels[2, 2:], places[2, 2:] = 0, 0.5, 1, 0.9
    one, other = (set_loss(criterion, WEIGHTS, said, each) for each in (asked, Wanted(labels, places, asked.counts)))
    for part, value in one.items():
        torch.testing.assert_close(other[part], value)


def test_labels_and_places_are_those_of_detr():
    """The terms of the last layer as `transformers` has them for DETR: matching, cross-entropy, L1 and GIoU."""
    from transformers.loss.loss_for_object_detection import HungarianMatcher, ImageLoss

    draw, criterion = np.random.default_rng(4), CRITERIA["cross_entropy"]()
    said, asked = told(draw, K + 1), wanted(draw)
    last = Told(said.scores[-1:].float(), said.spans[-1:].float())
    asked = asked._replace(spans=asked.spans.float())
    targets = [
        {"class_labels": asked.labels[row, :count], "boxes": asked.spans[row, :count]}
        for row, count in enumerate(asked.counts)
    ]
    outputs = {"logits": last.scores[0], "pred_boxes": last.spans[0]}
    matcher = HungarianMatcher(class_cost=2.0, bbox_cost=5.0, giou_cost=2.0)
    theirs = {(row, q, e) for row, pair in enumerate(matcher(outputs, targets)) for q, e in zip(*pair, strict=True)}
    found = matched(criterion, WEIGHTS, last, asked)
    ours = set(zip(found.row.tolist(), found.query.tolist(), found.element.tolist(), strict=True))
    assert ours == {tuple(map(int, each)) for each in theirs}
    loss = ImageLoss(matcher, K, 0.1, ["labels", "boxes"])(outputs, targets)
    mine = set_loss(criterion, WEIGHTS, last, asked)
    torch.testing.assert_close(mine["span"] / 6, loss["loss_bbox"])
    torch.testing.assert_close(mine["overlap"] / 6, loss["loss_giou"])
    matched_queries, free = 6, B * N - 6
    mean = mine["label"] / (matched_queries + 0.1 * free)
    torch.testing.assert_close(mean, loss["loss_ce"])


def test_focal_is_that_of_transformers():
    from transformers.loss.loss_for_object_detection import sigmoid_focal_loss

    draw, criterion = np.random.default_rng(5), CRITERIA["focal"]()
    scores, labels = torch.from_numpy(draw.normal(size=(B, N, K))), torch.from_numpy(draw.integers(-1, K, (B, N)))
    target = torch.zeros(B, N, K, dtype=torch.double)
    for row, query in (labels >= 0).nonzero():
        target[row, query, labels[row, query]] = 1
    theirs = sigmoid_focal_loss(scores, target, 1, alpha=0.25, gamma=2)  # a mean over queries, then a sum
    torch.testing.assert_close(criterion.loss(scores, labels).sum().double() / N, theirs, rtol=1e-5, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3))
def test_denoising_queries_stay_near_what_they_came_from(seed, groups, axes):
    draw = np.random.default_rng(seed)
    asked = wanted(draw, axes)
    made = denoising(asked.labels, asked.spans, torch.tensor(asked.counts), groups, K, draw)
    T = asked.labels.shape[1]
    assert made.noised.shape == (B, 2 * groups * T, 2 * axes)
    assert int(made.real.sum()) == 2 * groups * sum(asked.counts)
    assert int((made.told >= 0).sum()) == groups * sum(asked.counts)
    assert ((made.noised >= 0) & (made.noised <= 1)).all()
    known = made.told >= 0
    assert (overlap(made.noised[known], made.wanted[known]) > 0.2).all()
    assert (made.groups[made.real] > 0).all()
    assert set(made.groups[~made.real].tolist()) <= {-1}
    again = denoising(asked.labels, asked.spans, torch.tensor(asked.counts), groups, K, np.random.default_rng(seed))
    assert again.groups.equal(made.groups)


def test_denoising_loss_leaves_out_what_is_not_there():
    draw, criterion = np.random.default_rng(6), CRITERIA["focal"]()
    asked = wanted(draw)
    made = denoising(asked.labels, asked.spans, torch.tensor(asked.counts), 2, K, draw)
    M = made.noised.shape[1]
    said = Told(torch.from_numpy(draw.normal(size=(L, B, M, K))), spans(draw, L, B, M))
    one = denoising_loss(criterion, said, made)
    scores, places = said.scores.clone(), said.spans.clone()
    scores[:, ~made.real], places[:, ~made.real] = 7.0, 0.5
    other = denoising_loss(criterion, Told(scores, places), made)
    for part, value in one.items():
        torch.testing.assert_close(other[part], value)


def test_places_and_shares():
    found = elements(["a", "b"], [[10, 20, 30, 60], [0, 0, 640, 480]], (0, 0, 640, 480))
    shares = np.array([[20 / 640, 40 / 480, 20 / 640, 40 / 480], [0.5, 0.5, 1, 1]])
    np.testing.assert_allclose(found.shares, shares)
    np.testing.assert_allclose(placed(found.labels, found.shares, found.frame).corners, found.corners)
    assert elements([], [], (0, 3.5)).corners.shape == (0, 2)
    for wrong in ([[3, 3, 3, 9]], [[0, 0, float("nan"), 1]], [[5, 0, 4, 1]]):
        with pytest.raises(SaccadeError, match="its end lies behind its beginning"):
            elements(["a"], wrong, (0, 0, 9, 9))
