"""Layers that cut a picture in their own ways: a class token in front, merged patches, windows."""

from __future__ import annotations

import numpy as np
import photos
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from placed import place, raster

import saccade
from saccade.attend.grid import Grid
from saccade.attend.sparse import windows
from saccade.field.picture import as_url
from saccade.field.unit import Side
from saccade.look.cuts import Cuts, borders_of
from saccade.look.part import Cells
from saccade.look.renderer import rendered
from saccade.look.report import described
from saccade.look.view import View

PICTURE = Side([], [], "a picture", "patches", {"picture": as_url(np.zeros((3, 12, 20), np.uint8)), "grid": [3, 5]})
PIXELS = np.random.default_rng(3).integers(0, 256, (8, 12, 3)).astype(np.uint8)


def whole():
    return {"picture": PICTURE.on_grid(raster(3, 5))}


@given(st.integers(1, 7), st.integers(1, 11), st.integers(0, 3))
def test_units_lie_where_their_cells_are(rows, columns, extras):
    cells = raster(rows, columns, extras)
    side = PICTURE.on_grid(cells, ["class", "register 1"])
    assert side.cells == cells
    assert [each.text for each in side.tokens[:extras]] == ["class", "register 1", "vector 3"][:extras]
    assert [each.special for each in side.tokens] == [True] * extras + [False] * (rows * columns)
    boxes = [each.place for each in side.tokens[extras:]]
    assert sum(width * height for _, _, width, height in boxes) == pytest.approx(1)
    left, top, width, height = boxes[-1]
    assert (left + width, top + height) == pytest.approx((1, 1))
    assert side.tokens[-1].text == f"{rows},{columns}"


def test_the_first_cut_takes_the_name_and_others_are_called_by_their_grid():
    cuts = Cuts(whole(), ["class"])
    classed, merged = torch.tensor([raster(3, 5, 1)]), torch.tensor([raster(2, 3)])
    assert [cuts.name_of("picture", each, each.shape[1]) for each in (classed, merged, classed)] == [
        "picture",
        "patches 2 x 3",
        "picture",
    ]
    assert {name: len(side) for name, side in cuts.sides.items()} == {"picture": 16, "patches 2 x 3": 6}
    assert cuts.name_of("picture", None, 6) == "patches 2 x 3", "who looks at merged patches sees those"
    other = torch.tensor([raster(2, 3, 1)])
    assert cuts.name_of("picture", other, 7) == "patches 2 x 3 (2)"


def test_places_that_nobody_kept_are_found_by_their_count():
    assert Cuts(whole()).name_of("picture", None, 15) == "picture"
    cuts = Cuts(whole(), ["class"])
    assert cuts.name_of("picture", None, 16) == "picture"
    assert cuts.sides["picture"].tokens[0].text == "class"
    with pytest.raises(saccade.SaccadeError, match="looks at 13 vectors, and 'picture' has 15 parts"):
        Cuts(whole(), ["class"]).name_of("picture", None, 13)


def test_words_have_no_cells():
    words = {"text": Side([], [], "")}
    assert words["text"].cells is None
    assert Cuts(words).name_of("text", torch.zeros(1, 7, 2), 7) == "text"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_borders_lie_between_patches_that_cannot_see_each_other(size):
    """Two neighbours are parted by a border exactly where the mask parts them."""
    for shift in range(size):
        mask = windows(6, 7, size, shift)
        borders = borders_of(saccade.causal & mask)
        may = mask.dense(Grid(42, 42, 0, torch.device("cpu")))[0, 0]
        rows = {row for row in range(1, 6) if not may[(row - 1) * 7, row * 7]}
        columns = {column for column in range(1, 7) if not may[column - 1, column]}
        assert {round(each * 6) for each in borders.rows} == rows
        assert {round(each * 7) for each in borders.columns} == columns
    assert borders_of(saccade.causal) is borders_of(None) is None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuts")
    return saccade.train(photos.recipe(photos.photos(folder)), run=folder / "run")


@pytest.fixture
def cut(run, monkeypatch):
    """A look at a run whose layers say where their six vectors lie."""

    def look(*cells, mask=None):
        place(monkeypatch, run.model, cells, mask=mask)
        return run.look(PIXELS)

    return look


def test_a_class_token_is_a_unit_and_its_view_comes_first(cut):
    cells = raster(2, 2, 2)
    seen = cut(cells, cells)
    assert list(seen.sides) == ["picture"]
    assert [each.text for each in seen.sides["picture"].tokens] == ["class", "register 1", "1,1", "1,2", "2,1", "2,2"]
    assert seen.begun == 6
    told = rendered(seen, View().excerpt, "svg").to_svg()
    assert told.index("what class looked at") < told.index("what all looked at") < told.index(">register 1<")
    (row,) = View(row="class").map(seen).values
    assert torch.equal(row, seen.map().values[0])
    assert len([part for part in rendered(seen, View(row="2,1").excerpt, "png").parts if isinstance(part, Cells)]) == 2
    assert seen.map("rollout:encoder").rows[0] == "class"
    assert seen.map(hide="special").columns == ["1,1", "1,2", "2,1", "2,2"]
    with pytest.raises(saccade.SaccadeError, match="no row is called '9,9', and 6 are there; "):
        View(row="9,9").map(seen)


def test_layers_on_other_grids_have_sides_of_their_own(cut):
    seen = cut(raster(2, 3), raster(2, 2, 2))
    assert [(each.rows, each.columns) for each in seen.layers] == [("picture",) * 2, ("patches 2 x 2",) * 2]
    told = described(seen)
    assert told["layers"][1]["rows"] in told["sides"]
    assert "place" not in told["sides"]["patches 2 x 2"]["tokens"][0]
    with pytest.raises(saccade.SaccadeError, match=r"^there is no rollout over the encoder: encoder.blocks.0"):
        seen.map("rollout:encoder")
    again = seen.again(seen.model)
    assert list(again.sides) == list(seen.sides)
    assert len(seen.pair(seen.layers[1].name, 1, 5, 0).query) == 8


def test_the_atlas_lays_every_head_over_the_picture(cut, tmp_path):
    cells = raster(2, 3)
    seen = cut(cells, cells, mask=windows(2, 3, 2))
    assert seen.layers[0].borders == ([], [pytest.approx(2 / 3)])
    svg = seen.save(tmp_path / "atlas.svg", "atlas").read_text()
    assert svg.count("<image") == 4, "two layers of two heads"
    assert svg.count('fill="#000000"') == 4, "one border each"
    assert seen.save(tmp_path / "atlas.png", "atlas").stat().st_size
    assert "what all looked at" in seen._repr_html_()
