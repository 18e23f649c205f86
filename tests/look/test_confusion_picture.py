"""The picture of a confusion matrix: every count in its place, what is right in another colour than what is wrong."""

from __future__ import annotations

import re

import pytest

from saccade.error import SaccadeError
from saccade.look.confusion import confusion
from saccade.look.part import Cells, Lettering
from saccade.look.picture import filed

FOUND = {"labels": ["cat & dog", "bird"], "counts": [[1234, 5], [0, 7]], "unanswered": [0, 2]}


def test_every_count_stands_in_its_cell():
    made = confusion(FOUND, "run, val")
    (cells,) = (each for each in made.parts if isinstance(each, Cells))
    assert cells.colours.shape == (2, 3, 3)
    wide, high = cells.width / 3, cells.height / 2
    numbers = {}
    for each in made.parts:
        if isinstance(each, Lettering) and cells.x < each.x < cells.x + cells.width and each.y > cells.y:
            numbers[int((each.y - cells.y) / high), int((each.x - cells.x) / wide)] = each.text
    assert numbers == {(0, 0): "1,234", (0, 1): "5", (1, 1): "7", (1, 2): "2"}, "and no zeros"
    assert cells.note(0, 1) == "wanted cat & dog, answered bird: 5 (0.4%)"
    blue, rust = cells.colours[0, 0].tolist(), cells.colours[1, 2].tolist()
    assert blue[2] > blue[0]
    assert rust[0] > rust[2]
    texts = [each.text for each in made.parts if isinstance(each, Lettering)]
    assert {"run, val", "cat & dog", "bird", "no answer", "wanted", "answered"} <= set(texts)


def test_it_is_a_file_of_either_kind():
    made = confusion(FOUND, "<b>")
    svg = filed(made, "svg").decode()
    assert "&lt;b&gt;" in svg
    assert "cat &amp; dog" in svg
    assert len(re.findall("<title>wanted", svg)) == 6
    assert filed(made, "png").startswith(b"\x89PNG")


def test_many_classes_have_colours_alone():
    many = [str(n) for n in range(131)]
    made = confusion({"labels": many, "counts": [[int(n == m) for m in range(131)] for n in range(131)]})
    (cells,) = (each for each in made.parts if isinstance(each, Cells))
    assert cells.note is None
    inside = [each for each in made.parts if isinstance(each, Lettering) and each.x > cells.x and each.y > cells.y]
    assert not inside, "no numbers"
    assert made.width < 900
    with pytest.raises(SaccadeError, match="too large to draw"):
        confusion({"labels": [str(n) for n in range(2001)], "counts": [[0]]})
