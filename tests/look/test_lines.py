"""Line charts: round ticks, dashes that add up, names that do not touch, gaps where nothing is known."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade.look.lines import HEIGHT, SAMPLE, apart, dashed, lines, ticks
from saccade.look.part import Lettering, Line, Rectangle

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 4))


@given(NUMBERS, NUMBERS)
def test_ticks_are_round_and_hold_all_values(a, b):
    low, high = min(a, b), max(a, b)
    found = ticks(low, high)
    step = found[1] - found[0]
    assert found[0] <= low + 1e-6 * step
    assert found[-1] >= high - 1e-6 * step
    assert 2 <= len(found) <= 8
    share = step / 10 ** math.floor(math.log10(step * (1 + 1e-6)))
    assert min(abs(share - each) for each in (1, 2, 5, 10)) < 1e-2


def test_ticks_of_a_score():
    assert ticks(7.02, 24.3) == [5, 10, 15, 20, 25]
    assert ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("dash", [(), (7.0, 4.0), (9.0, 3.0, 2.0, 3.0)])
def test_dashes_and_gaps_make_up_the_line(dash):
    found = list(dashed((1.0, 2.0), (31.0, 42.0), dash))
    assert (found[0].x1, found[0].y1) == (1.0, 2.0)
    drawn = [math.dist((each.x1, each.y1), (each.x2, each.y2)) for each in found]
    if not dash:
        assert drawn == pytest.approx([50.0])
        return
    assert drawn[:-1] == pytest.approx([dash[0::2][n % len(dash[0::2])] for n in range(len(drawn) - 1)])
    gaps = [math.dist((a.x2, a.y2), (b.x1, b.y1)) for a, b in pairwise(found)]
    assert gaps == pytest.approx([dash[1::2][n % len(dash[1::2])] for n in range(len(gaps))])
    assert list(dashed((3.0, 3.0), (3.0, 3.0), dash)) == []


@given(st.lists(st.floats(0, 260), min_size=1, max_size=12))
def test_names_stand_apart_in_their_order(wanted):
    found = apart(wanted, 16.0, 0.0, HEIGHT)
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    assert all(found[b] - found[a] >= 16.0 - 1e-9 for a, b in pairwise(order))
    assert min(found) >= -1e-9
    assert max(found) <= HEIGHT + 1e-9


def test_powers_have_equal_ratios_at_equal_heights():
    drawn = lines({"a": [0.02, 0.2, 20.0], "b": [None, 0.0, 3.0]}, ["x", "y", "z"], powers=True)
    texts = [part.text for part in drawn.parts if isinstance(part, Lettering)]
    assert texts[:5] == ["0.01", "0.1", "1", "10", "100"]
    marks = [part for part in drawn.parts if isinstance(part, Rectangle)]
    a = [mark.y for mark in marks if mark.colour == marks[0].colour][:3]
    assert a[1] - a[2] == pytest.approx(2 * (a[0] - a[1]))
    assert sum(mark.colour == marks[-1].colour for mark in marks) == 2  # one number, and the mark beside the name


def test_a_chart_has_a_line_a_mark_and_a_name_for_what_is_known():
    drawing = lines({"one": [1.0, 2.0, 4.0], "<two>": [3.0, None, float("nan")]}, ["a", "b", "c"], title="scores")
    marks = [part for part in drawing.parts if isinstance(part, Rectangle)]
    assert len(marks) == (3 + 1) + (1 + 1), "the numbers', and the names'"
    assert len({mark.colour for mark in marks}) == 2
    strokes = [part for part in drawing.parts if isinstance(part, Line) and part.strength == 0.75]
    inside = [part for part in strokes if part.x2 < marks[-1].x - SAMPLE / 2]
    assert len(inside) == 2, "whole lines between the three numbers of the first; the second has one alone"
    assert len(strokes) - len(inside) == 1 + 4, "beside its name each line is shown, whole or in dashes"
    told = [part.text for part in drawing.parts if isinstance(part, Lettering)]
    assert {"scores", "a", "b", "c", "one", "<two>"} <= set(told)
    heights = [mark.y for mark in marks if mark.colour == marks[0].colour][:3]
    assert heights[0] - heights[1] == pytest.approx((heights[1] - heights[2]) / 2), (
        "twice the difference, twice as high"
    )
    ElementTree.fromstring(drawing.to_svg())
    assert drawing.to_png(1.0).startswith(b"\x89PNG")


def test_numbers_that_agree_are_all_seen():
    drawing = lines({"a": [1.0, 5.0], "b": [1.0, 2.0], "c": [1.0, 5.0]}, ["x", "y"])
    marks = [part for part in drawing.parts if isinstance(part, Rectangle)][:6]
    assert len({(mark.x, mark.y) for mark in marks}) == 6
    assert len({mark.y for mark in marks[:3]}) == 1, "side by side, at their true height"
    assert all(b.x - a.x == pytest.approx(a.width) for a, b in pairwise(marks[:3]))


def test_what_cannot_be_drawn():
    with pytest.raises(saccade.SaccadeError, match="'one' has 2 numbers for 1 names"):
        lines({"one": [1.0, 2.0]}, ["a"])
    with pytest.raises(saccade.SaccadeError, match="no number to draw"):
        lines({"one": [None, float("inf")]}, ["a", "b"])
