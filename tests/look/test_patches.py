"""Maps over a picture: the weights of patches lie where the patches are, and words have a small picture each."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import photos
import pytest
import torch

import saccade
from saccade.field.picture import as_url, pixels_of
from saccade.field.unit import Side, Unit
from saccade.look import colour
from saccade.look.cuts import Borders
from saccade.look.excerpt import Excerpt
from saccade.look.map import Map
from saccade.look.overlay import VEIL
from saccade.look.part import Cells
from saccade.look.patches import patches

GRID = 2, 3
BLACK = np.zeros((3, 4, 6), np.uint8)


def picture(pixels=BLACK):
    rows, columns = GRID
    spots = [(row, column) for row in range(rows) for column in range(columns)]
    units = [Unit(n, f"{r + 1},{c + 1}", n, False, (c / 3, r / 2, 1 / 3, 1 / 2)) for n, (r, c) in enumerate(spots)]
    return Side(units, [unit.text for unit in units], "", "patches", {"picture": as_url(pixels), "grid": [*GRID]})


@dataclass
class Layer:
    name: str
    kind: str
    rows: str
    columns: str
    heads: int = 1
    borders: Borders | None = None


class Look:
    """A look whose one layer has these weights."""

    def __init__(self, values, rows=None):
        side = picture()
        words = None if rows is None else Side([Unit(n, each, n, False) for n, each in enumerate(rows)], rows, "")
        self.sides = {"picture": side} if words is None else {"picture": side, "written": words}
        self.values = values
        self.layers = [
            Layer("a.0", "self" if rows is None else "cross", "picture" if rows is None else "written", "picture")
        ]
        self.usual = "a.0"

    def map(self, *_, **options):
        rows, columns = self.sides[self.layers[0].rows], self.sides["picture"]
        names = [unit.text for unit in rows.tokens], [unit.text for unit in columns.tokens]
        return Map(self.values, *names, list(range(len(rows))), list(range(6)), "weights")


def cells(drawing):
    return [part for part in drawing.parts if isinstance(part, Cells)]


def test_a_weight_colours_its_own_patch():
    """Over a black picture, the colour of a patch is that of its weight alone."""
    torch.manual_seed(2)
    values = torch.rand(6, 6).softmax(-1)
    read, everything, *small = cells(patches(Look(values), Excerpt(), "svg"))
    assert not read.colours.any()
    assert len(small) == 6
    for shown, weights in [(everything, values.mean(0)), *zip(small, values, strict=True)]:
        H, W, _ = shown.colours.shape
        for number, weight in enumerate(weights):
            row, column = divmod(number, 3)
            inside = shown.colours[row * H // 2 : (row + 1) * H // 2, column * W // 3 : (column + 1) * W // 3]
            wanted = (VEIL * colour.sequential(weight / weights.max()).float()).round()
            assert (inside.float() == wanted).all()


def test_words_have_a_picture_each_in_their_order():
    values = torch.rand(5, 6)
    drawn = patches(Look(values, ["a", "boot", "on", "the", "<left>"]), Excerpt(), "svg")
    assert len(cells(drawn)) == 1 + 5
    told = drawn.to_svg()
    places = [told.index(f">{name}<") for name in ("a", "boot", "on", "the", "&lt;left&gt;")]
    assert places == sorted(places)


def test_a_large_grid_shows_some_of_its_patches():
    side = Side(
        [Unit(n, str(n), n, False, ((n % 20) / 20, n // 20 / 20, 0.05, 0.05)) for n in range(400)],
        [],
        "",
        "patches",
        {"picture": as_url(np.zeros((3, 20, 20), np.uint8)), "grid": [20, 20]},
    )

    class Large(Look):
        def map(self, *_, **options):
            names = [str(n) for n in range(400)]
            return Map(torch.ones(400, 400) / 400, names, names, list(range(400)), list(range(400)), "")

    look = Large(None)
    look.sides = {"picture": side}
    assert 30 <= len(cells(patches(look, Excerpt(), "svg"))) - 2 <= 64


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patches")
    return saccade.train(photos.recipe(photos.photos(folder)), run=folder / "run")


def test_a_trained_run_is_drawn_over_its_picture(run, tmp_path):
    pixels = np.random.default_rng(3).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    seen = run.look(pixels)
    assert list(seen.sides) == ["picture"]
    assert np.array_equal(pixels_of(seen.save(tmp_path / "look.png"))[:, 0, 0], [255, 255, 255])
    svg = seen.save(tmp_path / "look.svg").read_text()
    assert len(re.findall("<image", svg)) == 2 + 6, "the picture, what all looked at, and six patches"
    assert "<image" in seen._repr_html_()
    rows = seen.save(tmp_path / "look.csv").read_text().splitlines()
    assert rows[0] == ",1\\,1".replace("\\", "") or '"1,1"' in rows[0]


def test_a_size_leaves_no_patch_out(run):
    pixels = np.random.default_rng(3).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    seen = run.look(pixels)
    small, whole = (patches(seen, Excerpt(size=size), "svg") for size in (2, None))
    assert all(torch.equal(one.colours, other.colours) for one, other in zip(cells(small), cells(whole), strict=True))
    assert len(cells(small)) == len(cells(whole))


def test_watched_is_not_watched(run):
    pixels = np.random.default_rng(3).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    before = run.predict(pixels)
    run.look(pixels).map()
    assert run.predict(pixels) == before
