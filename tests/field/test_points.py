"""Sets of points: one and the same from every kind of file, without an order, and refused where they are none."""

from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
import torch

import saccade
from saccade import png
from saccade.config import ModelConfig
from saccade.data import maxima
from saccade.field.cloud import as_json, points_of
from saccade.field.field import UnreadableError
from saccade.field.points import CELLS, Points, PointsConfig
from saccade.recipes.read import from_values
from saccade.task.pair import pair_of

DRAW = np.random.default_rng(3)
SET = DRAW.normal(0, 5, (7, 3)).astype(np.float32)
PIXELS = np.zeros((5, 8), np.uint8)
PIXELS[2, 6], PIXELS[3, 1] = 255, 51


def field(raws=(SET,), **keys):
    config = PointsConfig(**keys)
    return Points.load(config, {Points.stored("x"): Points.made(config, iter(raws))}, "x", "pooled")


def npz():
    made = io.BytesIO()
    np.savez(made, points=SET)
    return made.getvalue()


def npy():
    made = io.BytesIO()
    np.save(made, SET)
    return made.getvalue()


LINES = [" ".join(repr(float(each)) for each in row) for row in SET]
FILES = {
    "a.json": as_json(SET).encode(),
    "b.json": json.dumps({"points": SET.tolist()}).encode(),
    "a.npz": npz(),
    "a.npy": npy(),
    "a.xyz": "\n".join(LINES).encode(),
    "a.csv": "\n".join(["x,y,z", *(line.replace(" ", ",") for line in LINES)]).encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_holds_the_same(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    assert np.array_equal(points_of(tmp_path / name), SET)
    assert np.array_equal(points_of(FILES[name]), SET)
    assert np.array_equal(points_of(Points.cell(name, tmp_path)), SET)


def test_pixels_that_stand_out_are_points(tmp_path):
    """(x, y, light), in units of the longer side; of a light ground what is dark."""
    wanted = np.array([[6.5 / 8, 2.5 / 8, 1.0], [1.5 / 8, 3.5 / 8, 0.2]], np.float32)
    (tmp_path / "a.png").write_bytes(png.encode(PIXELS[:, :, None]))
    for raw in (PIXELS, 255 - PIXELS, PIXELS[:, :, None], tmp_path / "a.png", (tmp_path / "a.png").read_bytes()):
        assert np.allclose(points_of(raw), wanted, atol=1e-6)
    assert not len(points_of(np.full((4, 4), 7, np.uint8)))
    found = field([PIXELS])
    assert found.shape.coordinates == 2
    url = f"data:image/png;base64,{base64.b64encode(png.encode(PIXELS[:, :, None])).decode()}"
    assert np.allclose(found.received(url), wanted, atol=1e-6)


def test_coordinates_lie_in_a_unit_of_space_and_other_numbers_are_normalised():
    found = field(coordinates=2)
    (encoded,) = found.encode([SET])["points"]
    assert encoded[:, :2].min(0) == pytest.approx([0, 0], abs=1e-6)
    assert encoded[:, :2].max() == pytest.approx(1)
    away = np.linalg.norm(SET[0, :2] - SET[1, :2]), np.linalg.norm(encoded[0, :2] - encoded[1, :2])
    assert away[1] * found.shape.size == pytest.approx(away[0], rel=1e-5), "one unit for all axes"
    assert encoded[:, 2].mean() == pytest.approx(0, abs=1e-6)
    assert encoded[:, 2].std() == pytest.approx(1, rel=1e-5)
    x = found.collate({"points": [encoded]})
    assert torch.equal(x.places, x.values["points"][..., :2] * CELLS)


def test_a_set_is_the_same_in_every_order():
    assert Points.identity(SET) == Points.identity(SET[::-1])
    assert Points.identity(SET) != Points.identity(SET[:-1])
    assert Points.identity(SET) != Points.identity(SET + 1)


def test_training_draws_points_and_use_reads_all():
    found = field(sample=4)
    taken = found.encode([SET, SET[:3]])
    assert found.collate(taken).values["points"].shape == (2, 7, 3)
    drawn = found.collate(taken, np.random.default_rng(0))
    assert drawn.values["points"].shape == (2, 4, 3)
    assert drawn.lengths[0].tolist() == [4, 3]
    rows = {tuple(row) for row in taken["points"][0].tolist()}
    assert len({tuple(row) for row in drawn.values["points"][0].tolist()} & rows) == 4, "four of them, each once"
    again = [found.collate(taken, np.random.default_rng(seed)).values["points"] for seed in (0, 1)]
    assert torch.equal(again[0], drawn.values["points"])
    assert not torch.equal(again[0], again[1])


@pytest.mark.parametrize(
    ("augment", "keeps"),
    [
        ("turn(30)", lambda a, b: torch.allclose(torch.cdist(a, a), torch.cdist(b, b), atol=1e-5)),
        ("shift(0.2)", lambda a, b: torch.allclose(a - a[0], b - b[0], atol=1e-5)),
        ("scale(0.5, 2)", lambda a, b: torch.allclose(((b - 0.5) / (a - 0.5)).std(0), torch.zeros(2), atol=1e-3)),
        ("shear(0.3)", lambda a, b: torch.allclose(a[:, 1], b[:, 1], atol=1e-6)),
        ("jitter(0.01)", lambda a, b: 0.001 < (a - b).std() < 0.03),
    ],
)
def test_augmentation_moves_coordinates_alone(augment, keeps):
    found = field(coordinates=2, augment=augment)
    taken = found.encode([SET, SET[:4]])
    before, after = (
        found.collate(taken).values["points"],
        found.collate(taken, np.random.default_rng(0)).values["points"],
    )
    assert torch.equal(before[..., 2], after[..., 2])
    assert not torch.equal(before[0, :, :2], after[0, :, :2])
    assert keeps(before[0, :, :2], after[0, :, :2])
    assert not after[1, 4:].any(), "what is behind the end stays nothing"


def test_units_lie_where_their_points_are():
    found = field(coordinates=2)
    side = found.side(found.collate(found.encode([SET])))
    assert side.kind == "points"
    lefts = np.array([each.place[0] for each in side.tokens])
    assert np.array_equal(np.argsort(lefts), np.argsort(SET[:, 0]))
    assert all(0 <= each <= 1 for unit in side.tokens for each in unit.place)
    assert field().side(field().collate(field().encode([SET]))).kind == "words"


BAD = {
    "NaN": ([[0.0, float("nan"), 1.0]], "point 0 has a number that is not finite"),
    "rows of several lengths": ([[0.0], [1.0, 2.0]], "all equally long"),
    "words": ('[["a", "b"]]', "rows of numbers"),
    "no points": ({"nodes": [[0.0]]}, "no 'points'"),
    "three axes": (np.zeros((2, 2, 2), np.float32), "two axes"),
    "no JSON": ("[[0, 1], ", "no JSON"),
    "a pickle": (npy().replace(b"'<f4'", b"'|O'").replace(b"}    ", b"}     "), "damaged|pickle"),
    "a number": (7, "rows of numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_set_of_points(name):
    raw, told = BAD[name]
    with pytest.raises(UnreadableError, match=told):
        points_of(raw.encode() if isinstance(raw, str) else raw)


def test_what_does_not_fit():
    with pytest.raises(saccade.SaccadeError, match="a point has 3 numbers here; this set's have 2"):
        field().encode([SET[:, :2]])
    with pytest.raises(saccade.SaccadeError, match="4 coordinates were asked for, and a point has 3"):
        field(coordinates=4)
    with pytest.raises(saccade.SaccadeError, match="augment moves coordinates"):
        field(augment="turn(3)")
    with pytest.raises(saccade.SaccadeError, match="no point to learn from"):
        field([SET[:0]])
    with pytest.raises(saccade.SaccadeError, match="this run reads sets of points"):
        field().received("../a.csv")


def recipe(files, **x):
    values = {"data": {"files": [str(each) for each in files]}, "x": {"source": {"kind": "points", **x}}}
    model = {"width": 8, "heads": 1, "encoder": 1, "mixer": "deepset(max)"}
    return from_values({"task": "classify", **values, "model": model, "train": {"steps": 2, "batch": 64, "every": 2}})


def test_arrays_of_sets_and_how_many_points_each_has(tmp_path):
    sets = DRAW.normal(size=(6, 5, 2))
    np.savez(tmp_path / "a.npz", points=sets, lengths=[5, 1, 2, 3, 4, 5], labels=[0, 1, 0, 1, 0, 1])
    made = recipe([tmp_path / "a.npz"])
    rows = list(pair_of(made).supply(made).everything())
    assert [len(points) for points, _ in rows] == [5, 1, 2, 3, 4, 5]
    assert all(
        np.array_equal(points, each[: len(points)].astype(np.float32))
        for (points, _), each in zip(rows, sets, strict=True)
    )
    np.savez(tmp_path / "b.npz", points=sets, lengths=[5.0] * 6, labels=[0, 1] * 3)
    with pytest.raises(saccade.SaccadeError, match="lengths are 6 whole numbers"):
        pair_of(recipe([tmp_path / "b.npz"])).supply(recipe([tmp_path / "b.npz"]))


def test_a_table_that_names_files_or_holds_the_points(tmp_path):
    """Own files from the first to an answer; an empty set gets a note."""
    lines = []
    for number in range(40):
        points = DRAW.normal(2 * (number % 2), 0.3, (1 + number % 5, 2))
        (tmp_path / f"{number}.json").write_text(as_json(points.astype(np.float32)))
        lines.append(f"{number}.json\t{('near', 'far')[number % 2]}")
    (tmp_path / "table.tsv").write_text("\n".join(lines) + "\n")
    run = saccade.train(recipe([tmp_path / "table.tsv"], coordinates=2), run=tmp_path / "run")
    results = run.predict([np.zeros((0, 2), np.float32), points_of(tmp_path / "3.json"), str(tmp_path / "4.json")])
    assert results[0].note.startswith("empty")
    assert results[1].value in ("near", "far")
    assert results[2].value in ("near", "far")
    (tmp_path / "cells.tsv").write_text("[[0, 1], [2, 3]]\tnear\n[[4, 5]]\tfar\n")
    made = recipe([tmp_path / "cells.tsv"])
    assert [len(points) for points, _ in pair_of(made).supply(made).everything()] == [2, 1]


def test_the_largest_is_the_largest():
    for number in range(20):
        points, (largest,) = maxima.example(number)
        assert points.max() == largest
        assert 1 <= len(points) <= 10
        assert np.array_equal(points, maxima.example(number)[0])
    assert not np.array_equal(maxima.example(0)[0], maxima.example(0, split="val")[0])


def test_a_model_that_reads_points_samples_them():
    net = saccade.Model(ModelConfig(width=8, heads=2, encoder=1, embed="points(3)"))
    assert net(net.embed.sample(2, 5)).shape == (2, 5, 8)
