"""Pictures of shapes that overlap: a box is tight around each shape, all of it, and enough of each can be seen."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from saccade import SaccadeError
from saccade.data import shapes
from saccade.data.batch import random_of
from saccade.data.outlines import EXTENTS, OUTLINES
from saccade.data.shapes import MOST, SEEN, SIDE, TONES, VARIED, drawn, example, examples, placed


def masks(things):
    """Which pixels of the picture are inside each shape."""
    found = np.zeros((len(things), SIDE, SIDE), bool)
    for mask, each in zip(found, things, strict=True):
        mask[each.window] = each.inside
    return found


def test_boxes_are_tight_and_enough_is_seen():
    for number in range(150):
        scene, boxes = example(number)
        inside = masks(scene.shapes)
        assert 1 <= len(scene.shapes) <= MOST
        assert boxes.labels == tuple(each.kind for each in scene.shapes)
        for place, (mask, corners) in enumerate(zip(inside, boxes.corners, strict=True)):
            rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
            assert corners.tolist() == [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]
            seen = mask & ~inside[place + 1 :].any(0)
            assert seen.sum() >= SEEN * mask.sum()
        assert len({each.colour for each in scene.shapes}) == len(scene.shapes)


def test_what_is_seen_has_the_colour_of_the_uppermost():
    for number in range(20):
        scene, _ = example(number)
        pixels, inside = np.asarray(scene).astype(int), masks(scene.shapes)
        assert pixels.shape == (SIDE, SIDE, 3)
        for place, each in enumerate(scene.shapes):
            seen = pixels[inside[place] & ~inside[place + 1 :].any(0)]
            assert (abs(seen - np.array(TONES[each.colour])) <= VARIED + 16).all()
        ground = pixels[~inside.any(0)]
        assert np.ptp(ground.mean(1)) > 20, "it is uneven"


def test_shapes_vary():
    found = [example(number) for number in range(400)]
    kinds = Counter(label for _, boxes in found for label in boxes.labels)
    assert {*kinds} == {*OUTLINES}
    assert max(kinds.values()) < 1.5 * min(kinds.values())
    colours = Counter((each.kind, each.colour) for scene, _ in found for each in scene.shapes)
    assert len(colours) == len(OUTLINES) * len(TONES), "a colour tells nothing of a kind"
    sizes = np.concatenate([boxes.corners[:, 2:] - boxes.corners[:, :2] for _, boxes in found])
    assert sizes.min() >= 8
    assert sizes.max() == 40
    assert {len(boxes.labels) for _, boxes in found} == {*range(1, MOST + 1)}


def test_a_shape_under_others_is_not_there():
    """Drawn the other way round, with none left out, some would hardly be seen."""
    dropped = 0
    for number in range(200):
        random = random_of(0, 0, number)
        dropped += int(random.integers(1, MOST + 1)) - len(placed(random_of(0, 0, number)))
    assert 10 < dropped < 200


def test_the_same_number_gives_the_same_picture():
    first, again = example(13, split="val", seed=5), example(13, split="val", seed=5)
    assert np.array_equal(np.asarray(first[0]), np.asarray(again[0]))
    assert np.array_equal(np.asarray(first[0]), np.asarray(first[0]))
    assert np.array_equal(first[1].corners, again[1].corners)
    others = [example(13, split="train", seed=5), example(13, split="val", seed=6), example(14, split="val", seed=5)]
    assert all(not np.array_equal(np.asarray(first[0]), np.asarray(each[0])) for each in others)
    rows = list(examples(3, split="val", seed=5, first=12))
    assert np.array_equal(rows[1][1].corners, first[1].corners)
    with pytest.raises(SaccadeError, match="the split 'dev' is unknown"):
        example(1, split="dev")


def test_nothing_but_its_own_numbers_is_drawn():
    things = placed(random_of(1))
    one, other = drawn(things, random_of(2)), drawn(things, random_of(3))
    assert not np.array_equal(one, other)
    assert np.array_equal(one, drawn(things, random_of(2)))
    assert np.asarray(shapes.DrawnShapes(things, (2,)), np.float32).dtype == np.float32


@pytest.mark.parametrize("kind", list(OUTLINES))
def test_extents_are_those_of_the_outlines(kind):
    left, top, right, bottom = EXTENTS[kind]
    line = np.linspace(-1.3, 1.3, 1301)
    inside = OUTLINES[kind](line[None], line[:, None])
    rows, columns = line[inside.any(1)], line[inside.any(0)]
    assert np.allclose([columns[0], rows[0], columns[-1], rows[-1]], [left, top, right, bottom], atol=0.006)
