"""Pictures of elements: each box and bar stands where it should, in its label's colour, with its name and score."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from saccade.data import scenes, tones
from saccade.error import SaccadeError
from saccade.field.elements.element import Elements, elements
from saccade.field.image import Image, ImageConfig
from saccade.field.points import Points, PointsConfig
from saccade.field.sound import Sound, SoundConfig
from saccade.field.unit import Side, Unit
from saccade.look import elements as drawn
from saccade.look.elements import LARGE, WIDTH, lanes_of, names_of, pictured
from saccade.look.part import Dot, Lettering, Rectangle
from saccade.recipe import SoundscapeConfig

DRAW = np.random.default_rng(3)


def side_of(kind, config, raw):
    field = kind.load(config, {kind.stored("c"): kind.made(config, iter([raw]))}, "c", "pooled")
    return field.side(field.collate(field.encode([raw])))


def sound():
    recording, wanted = tones.example(4, SoundscapeConfig(), split="test-overlap")
    return side_of(Sound, SoundConfig(rate=8000), recording), wanted


def picture():
    pixels = DRAW.integers(0, 256, (40, 60, 3)).astype(np.uint8)
    wanted = elements(["cat", "dog"], [[6, 8, 24, 20], [30, 20, 54, 36]], (0, 0, 60, 40))
    return side_of(Image, ImageConfig(size=[40, 60], fit="pad", embed="patches(4)"), pixels), wanted


def space():
    points, wanted = scenes.example(3)
    corners = np.array([[0.0] * 4, [10.0] * 3 + [1.0]], np.float32)  # so that the space is that of the scene
    side = side_of(Points, PointsConfig(coordinates=3), np.concatenate([points, corners]))
    return side, wanted


EXAMPLES = {"frames": sound, "patches": picture, "points": space}


def scored(wanted: Elements) -> Elements:
    return wanted._replace(scores=DRAW.uniform(0.5, 1, len(wanted.labels)))


def letterings(drawing):
    return [each.text for each in drawing.parts if isinstance(each, Lettering)]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_kind_has_a_picture_with_all_names(kind):
    side, wanted = EXAMPLES[kind]()
    assert side.kind == kind
    found = scored(wanted)
    both = pictured(side, found, wanted, "a <title>")
    for name in (*names_of(found), *wanted.labels):
        assert name in letterings(both)
    assert both.to_png(1.0)[:4] == b"\x89PNG"
    svg = both.to_svg()
    assert "a &lt;title&gt;" in svg
    assert not re.search(r'="-?(nan|inf)', svg)
    for part in both.parts:
        if isinstance(part, Rectangle):
            assert -1 <= part.x <= part.x + part.width <= both.width
            assert -1 <= part.y <= part.y + part.height <= both.height
    only = pictured(side, wanted=wanted)
    assert only.width < both.width or only.height < both.height


@pytest.mark.parametrize("kind", EXAMPLES)
def test_nothing_found_is_said(kind):
    side, wanted = EXAMPLES[kind]()
    empty = elements([], [], wanted.frame.tolist())
    assert any("nothing" in each for each in letterings(pictured(side, empty, wanted)))


def test_labels_have_one_colour_in_all_panels():
    side, wanted = picture()
    swapped = elements(["dog", "cat"], wanted.corners, wanted.frame.tolist())
    parts = pictured(side, swapped, wanted).parts
    tags = [(part, after) for part, after in pairwise(parts) if isinstance(after, Lettering)]
    colours = {}
    for bar, name in tags:
        if isinstance(bar, Rectangle) and name.text in ("cat", "dog"):
            colours.setdefault(name.text, set()).add(bar.colour)
    assert all(len(each) == 1 for each in colours.values())
    assert colours["cat"] != colours["dog"]


def outlines(drawing, colour):
    """Left, top, right and bottom of what is drawn in a colour."""
    own = [each for each in drawing.parts if isinstance(each, Rectangle) and each.colour == colour]
    sides = [each for each in own if min(each.width, each.height) == drawn.THICK]
    return (
        min(each.x for each in sides),
        min(each.y for each in sides),
        max(each.x + each.width for each in sides),
        max(each.y + each.height for each in sides),
    )


def test_a_box_stands_where_it_is():
    side, _ = picture()
    one = elements(["cat"], [[6, 10, 30, 20]], (0, 0, 60, 40))
    drawing = pictured(side, one)
    half = drawn.THICK / 2
    left, top, right, bottom = outlines(drawing, drawn.painted([drawn.Panel("", one)])("cat"))
    scale = LARGE / 60
    place = (
        left - drawn.MARGIN + half,
        top - drawn.MARGIN + half,
        right - drawn.MARGIN - half,
        bottom - drawn.MARGIN - half,
    )
    assert place == pytest.approx((6 * scale, 10 * scale, 30 * scale, 20 * scale))


def test_boxes_in_space_are_around_their_points_from_above():
    side, wanted = space()
    label = wanted.labels[0]
    first = Elements((label,), wanted.corners[:1], np.array([0, 0, 0, 10, 10, 10.0]))
    drawing = pictured(side, first)
    left, top, right, bottom = outlines(drawing, drawn.painted([drawn.Panel("", first)])(label))
    points = scenes.example(3)[0]
    inside = (points[:, :3] >= wanted.corners[0, :3]) & (points[:, :3] <= wanted.corners[0, 3:])
    dots = [each for each in drawing.parts if isinstance(each, Dot)]
    around = [left - 1 <= each.x <= right + 1 and top - 1 <= each.y <= bottom + 1 for each in dots]
    assert sum(around) >= inside.all(1).sum() > 0


def test_bars_begin_and_end_when_events_do():
    side, _ = sound()
    seconds = side.shown["seconds"]
    one = elements(["cat"], [[0.5, 1.5]], (0, seconds))
    parts = [
        each for each in pictured(side, one).parts if isinstance(each, Rectangle) and each.strength == drawn.FILLED
    ]
    (bar,) = parts
    x = drawn.MARGIN + drawn.BESIDE
    assert (bar.x - x) / WIDTH == pytest.approx(0.5 / seconds)
    assert (bar.x + bar.width - x) / WIDTH == pytest.approx(1.5 / seconds)


def test_events_in_one_lane_never_meet():
    for seed in range(30):
        random = np.random.default_rng(seed)
        begins = random.uniform(0, 4, 12)
        given = elements(["word"] * 12, np.stack([begins, begins + random.uniform(0.05, 1, 12)], 1), (0, 5))
        lanes = lanes_of(given, 1000.0)
        assert max(lanes) < drawn.TAKEN - 1
        for n in range(12):
            for m in range(n):
                if lanes[n] == lanes[m]:
                    (a, b), (c, d) = given.corners[n], given.corners[m]
                    assert b <= c or d <= a
    apart = elements(["a", "b", "c"], [[3, 4], [0, 1], [1.5, 2]], (0, 5))
    assert lanes_of(apart, 1000.0) == [0, 0, 0]


def test_what_cannot_be_drawn_is_a_sentence():
    side, wanted = picture()
    with pytest.raises(SaccadeError, match="there are no elements to draw"):
        pictured(side)
    words = Side([Unit(0, "a", 0, False)], ["a"], "a")
    with pytest.raises(SaccadeError, match="these are words"):
        pictured(words, wanted)
