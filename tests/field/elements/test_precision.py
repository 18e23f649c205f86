"""Average precision: as pycocotools has it on boxes, the same along one axis, and of examples that are drawn again."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade import SaccadeError
from saccade.field.elements.element import Elements
from saccade.field.elements.precision import (
    OVERLAPS,
    SHOWN,
    Precision,
    average_precision,
    coco_json,
    coco_precision,
    overlaps_of,
)
from saccade.field.tally import intervals

LABELS = ("cat", "dog", "owl")
FRAME = np.array([0, 0, 61, 47.0])


def sets(seed, count, axes=2, most=7, alike=True):
    """Found and wanted elements of some examples: found ones near wanted ones, doubled, or nowhere. alike: whether many
    scores are equal.
    """
    draw, found, wanted = np.random.default_rng(seed), [], []
    for _ in range(count):
        real = int(draw.integers(most + 1))
        low = draw.integers(0, 30, (real, axes))
        corners = np.concatenate([low, low + draw.integers(1, 17, (real, axes))], 1).astype(float)
        labels = draw.choice(LABELS, real)
        frame = np.concatenate([np.zeros(axes), np.full(axes, 61.0)])
        wanted.append(Elements(tuple(map(str, labels)), corners, frame))
        guessed = int(draw.integers(2 * most + 1))
        near = draw.integers(0, max(real, 1), guessed)
        moved = (corners[near] if real else np.tile([3.0, 7.0], (guessed, axes))) + draw.integers(-2, 3, (guessed, 1))
        moved[:, axes:] = np.maximum(moved[:, axes:] + draw.integers(-1, 2, (guessed, axes)), moved[:, :axes] + 1)
        names = np.where(draw.random(guessed) < 0.8, labels[near] if real else "cat", draw.choice(LABELS, guessed))
        scores = draw.integers(1, 9, guessed) / 10 if alike else draw.random(guessed)
        found.append(Elements(tuple(map(str, names)), moved, frame, scores))
    return found, wanted


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 13))
def test_boxes_as_pycocotools_has_them(seed, count):
    found, wanted = sets(seed, count)
    if not any(each.labels for each in wanted):
        assert math.isnan(average_precision(found, wanted, LABELS))
        return
    coco, own = coco_precision(found, wanted, LABELS), Precision(found, wanted, LABELS)
    for name, overlaps in SHOWN.items():
        assert own.score(overlaps=overlaps) == pytest.approx(coco[name], abs=1e-9)
        assert own.tallies()[name].value == pytest.approx(coco[name], abs=1e-9)
    assert own.by_label() == pytest.approx(coco["map_by_class"], abs=1e-9)
    assert own.by_label(SHOWN["map50"]) == pytest.approx(coco["map50_by_class"], abs=1e-9)
    assert average_precision(found, wanted, LABELS) == pytest.approx(coco["map50"], abs=1e-9)


def test_many_are_found_in_one_picture():
    """Of a label the hundred with the highest scores count."""
    found, wanted = sets(3, 5, most=290)
    assert max(each.labels.count("cat") for each in found) > 100
    coco = coco_precision(found, wanted, LABELS)
    assert Precision(found, wanted, LABELS).score() == pytest.approx(coco["map"], abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_an_axis_along_which_all_are_alike_changes_nothing(seed):
    def widened(one):
        corners = np.insert(np.insert(one.corners, 1, 3.0, axis=1), 3, 14.0, axis=1)
        return one._replace(corners=corners, frame=np.array([0, 0, 61.0, 17]))

    found, wanted = sets(seed, 11, axes=1)
    boxes = [list(map(widened, each)) for each in (found, wanted)]
    assert all(each.axes == 2 for each in boxes[1])
    one, two = (Precision(*each, LABELS) for each in ((found, wanted), boxes))
    assert one.by_label() == pytest.approx(two.by_label())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_draw_scores_as_the_data_set_that_was_drawn(seed):
    """So the intervals are those of the average precision itself."""
    found, wanted = sets(seed, 11, alike=False)
    drawn = np.random.default_rng(seed).multinomial(11, np.full(11, 1 / 11))
    again = [n for n, often in enumerate(drawn) for _ in range(often)]
    shown = Precision(found, wanted, LABELS).tallies()
    real = Precision([found[n] for n in again], [wanted[n] for n in again], LABELS)
    for name, overlaps in SHOWN.items():
        scored, wished = shown[name].score(shown[name].counts[again].sum(0)), real.score(overlaps=overlaps)
        assert scored == pytest.approx(wished, abs=1e-9, nan_ok=True)
        some = np.arange(11) % 3 == 0
        part = Precision(found[::3], wanted[::3], LABELS).score(overlaps=overlaps)
        assert shown[name].of(some).value == pytest.approx(part, abs=1e-9, nan_ok=True)


def test_intervals_hold_the_score():
    found, wanted = sets(5, 37)
    shown = Precision(found, wanted, LABELS).tallies()
    limits = intervals(shown, draws=200)
    assert {*limits} == {*SHOWN}
    for name, (low, high) in limits.items():
        assert low < shown[name].value < high


def test_what_is_found_wholly_or_not_at_all():
    _, wanted = sets(7, 17)
    sure = [each._replace(scores=np.ones(len(each.labels))) for each in wanted]
    nothing = [Elements((), np.empty((0, 4)), each.frame, np.empty(0)) for each in wanted]
    for own, coco in ((sure, 1), (nothing, 0)):
        assert average_precision(own, wanted, LABELS, 0.95) == coco
        assert coco_precision(own, wanted, LABELS)["map"] == coco
    least = [each._replace(corners=each.corners + np.array([0, 0, 61, 0])) for each in sure]
    assert average_precision(least, wanted, LABELS) < 0.3
    none = [each._replace(labels=(), corners=np.empty((0, 4))) for each in wanted]
    assert math.isnan(average_precision(nothing, none, LABELS))
    assert math.isnan(coco_precision(sure, none, LABELS)["map50"])


def test_pycocotools_is_silent(capfd):
    coco_precision(*sets(5, 7), LABELS)
    assert capfd.readouterr() == ("", "")


def test_a_machine_without_pycocotools(monkeypatch):
    monkeypatch.setitem(sys.modules, "pycocotools.coco", None)
    with pytest.raises(SaccadeError, match=r"needs pycocotools: pip install 'saccade\[boxes\]'"):
        coco_precision(*sets(5, 7), LABELS)
    average_precision(*sets(5, 7), LABELS)


def test_results_in_cocos_form():
    found = [
        Elements(("dog", "cat"), np.array([[3, 5, 7, 11], [1, 2, 3, 4.5]]), FRAME, np.array([0.25, 0.5])),
        Elements((), np.empty((0, 4)), FRAME, np.empty(0)),
        Elements(("owl",), np.array([[0, 0, 61, 47.0]]), FRAME, np.array([1.0])),
    ]
    assert coco_json(found, LABELS, [7, "b", 9]) == [
        {"image_id": 7, "category_id": 2, "bbox": [3, 5, 4, 6], "score": 0.25},
        {"image_id": 7, "category_id": 1, "bbox": [1, 2, 2, 2.5], "score": 0.5},
        {"image_id": 9, "category_id": 3, "bbox": [0, 0, 61, 47], "score": 1.0},
    ]
    assert [each["image_id"] for each in coco_json(found, LABELS)] == [1, 1, 3]


def test_overlaps_by_their_definition():
    one, other = (sets(seed, 1, most=13)[0][0].corners.clip(0) for seed in (11, 13))
    grid = np.stack(np.meshgrid(np.arange(61) + 0.5, np.arange(61) + 0.5), -1)

    def inside(corners):
        return ((grid > corners[:2]) & (grid < corners[2:])).all(-1)

    for n, a in enumerate(one):
        for m, b in enumerate(other):
            both, either = (inside(a) & inside(b)).sum(), (inside(a) | inside(b)).sum()
            assert overlaps_of(one, other)[n, m] == pytest.approx(both / max(either, 1))


def test_what_does_not_belong_together_is_refused():
    found, wanted = sets(5, 7)
    assert len(OVERLAPS) == 10
    with pytest.raises(SaccadeError, match="there are 6 sets of found elements for 7 wanted ones"):
        Precision(found[1:], wanted, LABELS)
    with pytest.raises(SaccadeError, match=r"'cat' is none of the labels \(dog, owl\)"):
        coco_precision(found, wanted, LABELS[1:])
    with pytest.raises(SaccadeError, match="each found element needs one"):
        average_precision(wanted, wanted, LABELS)
    with pytest.raises(SaccadeError, match="needs one example at least"):
        average_precision([], [], LABELS)
    with pytest.raises(SaccadeError, match="boxes, which have two axes"):
        coco_precision(*sets(5, 7, axes=3), LABELS)
