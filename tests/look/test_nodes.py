"""Maps over nodes and points: what was looked at is drawn where it lies, as strongly as it was looked at."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import pytest
import torch
from PIL import Image as Pillow

from saccade.field.unit import Side, Unit
from saccade.look.drawing import Drawing
from saccade.look.excerpt import Excerpt
from saccade.look.map import Map
from saccade.look.nodes import AROUND, CROWD, LARGE, MOST, ROOM, SIDE, WEIGHT, Scatter, SmallScatter, nodes
from saccade.look.part import Dot, Lettering, Line
from saccade.look.renderer import names_few, rendered, thumb_of
from saccade.look.report import bar, named
from saccade.look.thumb import SmallMatrix

PLACES = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.5, 0.2)]
EDGES = [[0, 1], [1, 2], [2, 3], [3, 3]]
VALUES = torch.tensor(
    [
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [0.3, 0.0, 0.7, 0.0, 0.0],
        [0.0, 0.5, 0.0, 0.5, 0.0],
        [0.0, 0.0, 0.2, 0.8, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ]
)


@dataclass
class Layer:
    name: str
    kind: str
    rows: str
    columns: str
    heads: int = 1
    borders: None = None


class Look:
    """A look whose one layer has these weights; words: who looks, where that is not the nodes themselves."""

    def __init__(self, values=VALUES, places=PLACES, edges=EDGES, kind="graph", words=None):
        units = [Unit(n, str(n), n, False, place) for n, place in enumerate(places)]
        shown = {"edges": edges} if edges else {}
        self.sides = {"x": Side(units, [each.text for each in units], "", kind, shown)}
        if words:
            self.sides["words"] = Side([Unit(n, each, n, False) for n, each in enumerate(words)], words, "")
        self.values, self.usual, self.output = values, "a.0", ""
        self.layers = [Layer("a.0", "self", "words" if words else "x", "x")]

    def map(self, *_, rows=None, **__):
        first, last = rows or (0, len(self.values))
        tall = [each.text for each in self.sides[self.layers[0].rows].tokens][first:last]
        wide = [each.text for each in self.sides["x"].tokens]
        return Map(self.values[first:last], tall, wide, [*range(first, last)], [*range(len(wide))], "a.0, head 0")


def parts(drawing, kind):
    return [each for each in drawing.parts if isinstance(each, kind)]


def weighted(drawing):
    return [each for each in parts(drawing, Line) if each.colour == WEIGHT]


def near(dot, other):
    return math.hypot(dot.x - other.x, dot.y - other.y) < 1e-6


def test_a_row_has_a_line_to_each_node_that_it_looked_at():
    made = nodes(Look(), Excerpt(row="1"), "svg")
    lines = weighted(made)
    assert len(lines) == 2, "node 1 looked at 0 and at 2"
    strong, weak = sorted(lines, key=lambda line: -line.width)
    assert strong.width > weak.width
    assert strong.strength > weak.strength
    assert (strong.x1, strong.y1) == (weak.x1, weak.y1), "both begin at who looks"
    assert strong.y2 > weak.y2, "node 2 lies below, node 0 beside"
    dots = [each for each in parts(made, Dot) if each.colour == WEIGHT]
    assert sorted(each.note for each in dots) == ["0: 0.3", "2: 0.7"]
    assert max(dots, key=lambda each: each.radius).note == "2: 0.7"
    ring = max(parts(made, Dot), key=lambda each: each.radius)
    assert ring.note.startswith("1:")
    assert {each.text for each in parts(made, Lettering)} >= {"0", "1", "2", "3", "4"}
    assert any("what 1 looked at (most 0.7)" in each.text for each in parts(made, Lettering))


def test_all_rows_together_have_half_a_line_for_each_direction():
    look = Look()
    made = nodes(look, Excerpt(), "svg")
    large = [each for each in weighted(made) if each.x1 <= LARGE + 20 and each.y1 <= LARGE + 40]
    long = math.dist(PLACES[0], PLACES[1])
    halves = {(round(each.strength, 3)) for each in large}
    assert {round(0.15 + 0.85 * w, 3) for w in (1.0, 0.3, 0.7, 0.5, 0.2)} <= halves
    assert long == 1.0
    lengths = {round(math.hypot(each.x2 - each.x1, each.y2 - each.y1), 3) for each in large}
    assert len(lengths) <= 2, "halves in the large picture are alike, whole lines are in the small ones"
    names = [each.text for each in parts(made, Lettering)]
    assert all(str(n) in names for n in range(5))


def test_a_node_that_nobody_looked_at_is_small_and_grey():
    made = nodes(Look(), Excerpt(row="0"), "svg")
    (lonely,) = [each for each in parts(made, Dot) if each.note == "4: 0" and each.colour is None]
    (seen,) = [each for each in parts(made, Dot) if each.note == "1: 1" and each.colour == WEIGHT]
    assert lonely.radius < seen.radius
    assert seen.strength == 1.0


def test_points_are_dots_without_lines():
    made = nodes(Look(kind="points", edges=None), Excerpt(row="1"), "svg")
    assert weighted(made) == []
    assert sorted(each.note for each in parts(made, Dot) if each.colour == WEIGHT) == ["0: 0.3", "2: 0.7"]


def test_boxes_stand_for_their_middles():
    boxes = [(x - 0.01, y - 0.02, 0.02, 0.04) for x, y in PLACES]
    one, other = (Scatter(Look(places=each).sides["x"], range(5)).places for each in (PLACES, boxes))
    assert one == pytest.approx(other)


def test_words_that_look_at_nodes_have_a_picture_each():
    made = nodes(Look(values=VALUES[:2], words=["ring", "tree"]), Excerpt(), "svg")
    names = [each.text for each in parts(made, Lettering)]
    assert "ring" in names
    assert "tree" in names
    assert made.width < LARGE + 2 * SIDE


def chain(count):
    places = [(n / count, (n * 7 % count) / count) for n in range(count)]
    values = torch.zeros(count, count)
    for n in range(count):
        values[n, max(n - 1, 0)], values[n, min(n + 1, count - 1)] = 0.25, 0.75
    return Look(values, places, [[n, n + 1] for n in range(count - 1)])


def test_of_a_large_graph_a_row_is_drawn_with_what_lies_around_it():
    look = chain(CROWD + 50)
    made = nodes(look, Excerpt(row="30"), "svg")
    notes = {each.note.split(":")[0] for each in parts(made, Dot)}
    assert {"29", "30", "31"} <= notes
    assert len(notes) <= AROUND
    assert any("around it" in each.text for each in parts(made, Lettering))
    whole = nodes(look, Excerpt(), "svg")
    assert len({each.note.split(":")[0] for each in parts(whole, Dot)}) == CROWD + 50
    assert len(whole.parts) < 40 * (CROWD + 50 + MOST)


def test_the_atlas_draws_a_crowd_as_a_matrix():
    few, many = chain(ROOM), chain(ROOM + 1)
    assert isinstance(thumb_of(few, few.layers[0]), SmallScatter)
    assert isinstance(thumb_of(many, many.layers[0]), SmallMatrix)


def test_every_kind_of_file_and_the_small_one():
    look = Look()
    drawing = rendered(look, Excerpt(), "svg")
    svg = drawing.to_svg()
    assert svg.count("<circle") == len(parts(drawing, Dot))
    assert f'stroke="{WEIGHT}"' in svg
    small = thumb_of(look, look.layers[0])
    assert isinstance(small, SmallScatter)
    assert [each for each in small.drawn(look.map(), 0, 0) if isinstance(each, Dot)]
    picture = Pillow.open(io.BytesIO(drawing.to_png())).convert("RGB")
    counts = {colour: count for count, colour in picture.getcolors(1 << 20)}
    assert counts[(0xD5, 0x5E, 0x00)] > 500, "the strongest weights have their full colour"


def test_a_dot_and_a_slanted_line_lie_where_they_are_told():
    sheet = Drawing(40, 30)
    sheet.add(Dot(11, 7, 5, "#ff0000"), Line(20, 20, 37, 29, 3.0, 1.0, "#0000ff"))
    picture = Pillow.open(io.BytesIO(sheet.to_png(3.0))).convert("RGB")
    assert picture.getpixel((33, 21)) == (255, 0, 0)
    assert picture.getpixel((33 + 14, 21)) != (255, 255, 255)
    assert picture.getpixel((33 + 17, 21)) == (255, 255, 255)
    assert picture.getpixel((round(28.5 * 3), round(24.5 * 3))) == (0, 0, 255)
    assert picture.getpixel((round(28.5 * 3), 60)) == (255, 255, 255)


def test_a_terminal_names_what_was_looked_at():
    from rich.console import Console

    look = Look()
    assert names_few(look, Excerpt())
    assert not names_few(Look(kind="words"), Excerpt())
    console = Console(width=60, file=io.StringIO(), color_system=None)
    console.print(named(look.map(), 60))
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "a.0, head 0"
    assert lines[2].startswith("1 \u2192  2 0.70")
    assert lines[2].index("2 0.70") < lines[2].index("0 0.30")
    assert lines[5].strip() == "4 \u2192", "nobody was looked at"


@pytest.mark.parametrize(
    ("share", "letters"), [(0.0, ""), (1.0, "\u2588" * 8), (0.5, "\u2588" * 4), (1 / 16, "\u258c")]
)
def test_a_bar_has_eighths_of_letters(share, letters):
    assert bar(share) == letters
