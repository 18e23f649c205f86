"""The bench of detectors: both sides compute the same, and the lines say what they measure."""

from __future__ import annotations

import pytest
import torch

from saccade.bench import detect
from saccade.model.input import Input

FIELDS = {"case", "peer", "ours", "theirs", "unit", "ratio", "spread"}


@pytest.fixture
def small(monkeypatch):
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 47, "num_hidden_layers": 2}
    for name, value in {
        "YOLOS": {"small": sizes},
        "PIXELS": {"small": (3, 32, 48)},
        "QUERIES": 13,
        "WIDTH": 24,
        "HEADS": 3,
        "HIDDEN": 47,
        "GRID": 5,
        "BATCH": 2,
        "ROUNDS": 3,
        "spent": lambda run, repeats=1: 0.25 if run() is None else 0.5,
        "raced": lambda ours, theirs, seconds: (ours(), theirs(), (2.0, 3.0, 1.5, (1.4, 1.6)))[2],
        "_ours_alone": lambda: {"small": detect.yolos("small")[0], "DETR": detect.detr()[0]},
    }.items():
        monkeypatch.setattr(detect, name, value)


def test_both_sides_are_the_same_detector(small):
    """Scores, places, and a loss that differs by its means alone: theirs is of 39 queries, ours of 21 boxes."""
    ours, theirs = detect.yolos("small")
    theirs.eval()
    model = ours.model.eval()
    wanted = [
        {"class_labels": a, "boxes": b} for a, b in zip(ours.y.values["labels"], ours.y.values["spans"], strict=True)
    ]
    expected = theirs(ours.x, labels=wanted)
    states = model.states(Input({"pixels": ours.x}))
    told = ours.field.told_of(model, states)
    torch.testing.assert_close(told.scores[0], expected.logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(told.spans[0], expected.pred_boxes, rtol=1e-4, atol=1e-4)
    terms, count = ours.field.loss(model, states, ours.y, learning=True), 3 * detect.BOXES
    assert ours.field.counts(ours.y)["label"] == count
    found = {name: each.sum.item() / count for name, each in terms.items()}
    assert found["span"] == pytest.approx(expected.loss_dict["loss_bbox"].item(), rel=1e-4)
    assert found["overlap"] == pytest.approx(expected.loss_dict["loss_giou"].item(), rel=1e-4)
    weights = count + (39 - count) * 0.1  # "nothing" counts a tenth
    assert found["label"] * count / weights == pytest.approx(expected.loss_dict["loss_ce"].item(), rel=1e-4)


def test_detr_has_as_many_weights_but_a_product_and_a_norm(small):
    """And three layers of scores where theirs has one, since each of our labels has but one product."""
    ours, theirs = detect.detr()
    assert not hasattr(theirs.model, "backbone")
    states = ours.model.states(Input({"pixels": ours.x}))
    assert ours.model.say(states).shape == (detect.DEPTH, 2, 13, detect.LABELS + 1)
    attention = {name for name, _ in ours.model.named_parameters() if "blocks" in name}
    layers = {name for name, _ in theirs.named_parameters() if ".layers." in name and "predictor" not in name}
    assert sum(ours.model.get_parameter(each).numel() for each in attention) == sum(
        theirs.get_parameter(each).numel() for each in layers
    )


def test_the_lines(small):
    found = list(detect.rows(0.0))
    assert len(found) == 2 * 4 + 2
    assert all(set(each) == FIELDS and each["ratio"] == 1.5 for each in found[:8])
    assert {each["peer"] for each in found[:8]} == {"transformers", "saccade"}
    assert [each["unit"] for each in found[8:]] == ["%", "%"]
    assert all(each["ours"] == 100 for each in found[8:])


def test_a_peer_that_is_not_there(small, monkeypatch):
    monkeypatch.setattr(detect, "_peer", lambda: None)
    lines = [each for each in detect.rows(0.0) if each["peer"] == "transformers"]
    assert len(lines) == 4
    assert all(each["theirs"] is None and each["ratio"] is None for each in lines)


@pytest.mark.proof
def test_the_recipe_whose_share_is_told():
    made = detect.of_recipe(detect.SHARES)
    assert made.field.given(made.y) is not None  # with denoising queries
    assert 0 < detect.share(made) < 100
