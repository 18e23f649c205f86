"""One command for own files: `classify` and `regress` take the recipe that reads what the files are."""

from __future__ import annotations

import io

import numpy as np
import pytest
from own import own_files
from rich.console import Console

import saccade
from saccade import SaccadeError
from saccade.learn.fitting import fitting

QUICK = ["train.steps=2", "train.every=2", "train.batch=16", "size=full", "model.width=16", "model.encoder=1"]


@pytest.fixture
def photos(tmp_path):
    return own_files("classify-images", tmp_path)[0]


@pytest.fixture
def pictures(tmp_path):
    return own_files("regress-images", tmp_path)[0]


def chosen(source, files, options=()):
    said = []
    return fitting(source, [str(each) for each in files], options, said.append), said


def test_a_folder_of_pictures_in_one_command(tmp_path, photos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    for _ in range(2):  # begun, and gone on with
        run = saccade.train("classify", files=photos, options=QUICK, console=Console(file=said, width=300))
    assert run.path.name == "classify-images-photos"
    assert run.step == 2
    assert f"{photos}: this is a folder by class, so the recipe is classify-images" in said.getvalue()
    assert run.predict([f"{photos}/above/0.png"])[0].value in ("above", "below")


def test_arrays_in_one_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    np.savez("a.npz", images=draw.integers(0, 256, (60, 8, 8), np.uint8), labels=draw.integers(0, 2, 60))
    run = saccade.train("classify", files="a.npz", options=[*QUICK, "x.source.size=8"])
    assert run.path.name == "classify-images-a"
    assert run.predict([np.zeros((8, 8), np.uint8)])[0].value in ("0", "1")


def test_files_say_which_recipe_reads_them(tmp_path, photos, pictures):
    assert chosen("classify", [photos])[0] == "classify-images"
    assert chosen("regress", [pictures])[0] == "regress-images"
    table = tmp_path / "table.tsv"
    table.write_text("file\tlabel\nphotos/above/0.png\tup\n")
    found, said = chosen("classify", [table])
    assert found == "classify-images"
    assert said == [f"{table}: this is a table that names files (table.tsv), so the recipe is classify-images"]
    (tmp_path / "rows.jsonl").write_text('{"n": 3, "file": "photos/above/0.png", "label": "up"}\n')
    assert chosen("classify", [tmp_path / "rows.jsonl"])[0] == "classify-images"
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 4, 4), np.uint8), numbers=np.zeros(3))
    assert chosen("regress", [tmp_path / "a.npz"])[0] == "regress-images"


def test_what_is_asked_for_stays_where_it_fits(tmp_path, photos):
    (tmp_path / "texts.tsv").write_text("gone.png\tup\nphotos are fine\tdown\n")
    (tmp_path / "quoted.csv").write_text('"a text\nof two lines",up\n"another",down\n')
    for source, files, options in (
        ("classify-images", [photos], []),
        ("classify", [tmp_path / "texts.tsv"], []),
        ("classify", [tmp_path / "quoted.csv"], []),
        ("classify", [photos], ["x.source.kind=image"]),
        ("classify", [], []),
        ("translate", [photos], []),
        ("dates", [], []),
    ):
        assert chosen(source, files, options) == (source, [])


def test_a_task_that_cannot_be_learned_from_pictures_names_one_that_can(tmp_path, photos):
    with pytest.raises(
        SaccadeError, match="this is a folder by class, and translate reads text and text here: saccade"
    ):
        saccade.train("translate", files=photos, run=tmp_path / "run")
