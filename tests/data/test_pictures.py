"""Files of pictures: IDX arrays, and folders by class; what is wrong with them is told."""

from __future__ import annotations

import gzip
import os
import struct

import numpy as np
import pytest
from absent import data_set

from saccade import png
from saccade.data import classes, idx
from saccade.data.named import DATA, rows_of
from saccade.error import SaccadeError
from saccade.recipes.read import from_values
from saccade.task.pair import pair_of

PIXELS = np.arange(5 * 4 * 6, dtype=np.uint8).reshape(5, 4, 6)
LABELS = np.array([3, 1, 0, 1, 2], np.uint8)


def write(path, array, code=8):
    content = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def recipe(files, **more):
    values = {
        "data": {"files": list(map(str, files))},
        "model": {"width": 4, "heads": 1, "encoder": 1},
        "train": {"steps": 1},
    }
    return from_values({"task": "classify", **values, **more})


def supply(files, **more):
    made = recipe(files, x={"source": {"kind": "image"}}, **more)
    return pair_of(made).supply(made)


@pytest.fixture
def pair(tmp_path):
    return [write(tmp_path / "pictures.gz", PIXELS), write(tmp_path / "labels", LABELS)]


@pytest.fixture
def photos(tmp_path):
    for name in ("cats", "dogs", ".hidden"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(3):
            pixels = np.full((4, 6, 1), 40 * number + len(name), np.uint8)
            (tmp_path / "photos" / name / f"{number}.PNG").write_bytes(png.encode(pixels))
    (tmp_path / "photos" / "cats" / "notes.txt").write_text("no picture")
    (tmp_path / "photos" / "cats" / "._0.png").write_bytes(b"what some systems leave behind")
    return tmp_path / "photos"


@pytest.mark.parametrize(("kind", "code"), [(">u1", 8), (">i2", 11), (">i4", 12), (">f4", 13), (">f8", 14)])
def test_idx_arrays_of_every_type(tmp_path, kind, code):
    array = PIXELS.astype(kind)
    assert np.array_equal(idx.array(write(tmp_path / "a", array, code)), array)


def test_idx_files_are_known_by_what_is_in_them(pair):
    made = supply(pair)
    rows = list(made.everything())
    assert [label for _, label in rows] == ["3", "1", "0", "1", "2"]
    assert np.array_equal(rows[4][0], PIXELS[4])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "is cut off"),
        (lambda path: write(path, LABELS[:4]), "5 pictures and .* 4 labels"),
        (lambda path: write(path, PIXELS), "give them in this order"),
    ],
)
def test_idx_files_that_do_not_fit(pair, change, told):
    change(pair[1])
    with pytest.raises(SaccadeError, match=told):
        list(idx.pairs(pair))


@pytest.mark.parametrize("labels", [np.array([0, 1, -1, 0, 2], ">i2"), np.array([0, 1, 2, 1, 0], ">f4")])
def test_labels_are_whole_numbers_from_0_on(pair, labels):
    write(pair[1], labels, {"i": 11, "f": 13}[labels.dtype.kind])
    with pytest.raises(SaccadeError, match="whole numbers from 0"):
        list(idx.pairs(pair))


def test_a_file_that_ends_in_its_head(tmp_path):
    (tmp_path / "a").write_bytes(bytes([0, 0, 8, 3, 0, 0]))
    with pytest.raises(SaccadeError, match="cut off inside its head"):
        idx.array(tmp_path / "a")


def test_one_idx_file_is_not_enough(pair):
    with pytest.raises(SaccadeError, match="come in pairs"):
        list(supply(pair[:1]).everything())


def test_a_folder_by_class(photos):
    rows = list(supply([photos]).everything())
    assert [(path.parent.name, path.name, label) for path, label in rows] == [
        (name, f"{n}.PNG", name) for name in ("cats", "dogs") for n in range(3)
    ]


def test_a_folder_changes_with_its_pictures(photos):
    before = classes.digest(photos)
    assert classes.digest(photos) == before
    (photos / "dogs" / "1.PNG").write_bytes(png.encode(np.zeros((2, 2, 1), np.uint8)))
    assert classes.digest(photos) != before


@pytest.mark.parametrize(("inner", "told"), [([], "no folders inside"), (["cats"], "hold no pictures or sounds")])
def test_a_folder_without_pictures(tmp_path, inner, told):
    (tmp_path / "photos").mkdir()
    for name in inner:
        (tmp_path / "photos" / name).mkdir()
    with pytest.raises(SaccadeError, match=told):
        list(supply([tmp_path / "photos"]).everything())


def test_a_table_names_pictures(photos):
    (photos / "table.csv").write_text("cats/0.PNG,good\ndogs/2.PNG,bad\n")
    rows = list(supply([photos / "table.csv"]).everything())
    assert rows == [(photos / "cats/0.PNG", "good"), (photos / "dogs/2.PNG", "bad")]


def test_names_of_any_bytes(photos):
    name = os.fsdecode(b"caf\xe9.png")
    (photos / "dogs" / name).write_bytes((photos / "dogs" / "1.PNG").read_bytes())
    assert len(classes.digest(photos)) == 64


def test_a_table_is_made_of_the_pictures_it_names_too(photos):
    (photos / "table.csv").write_text("cats/0.PNG,good\ndogs/2.PNG,bad\n")
    before = supply([photos / "table.csv"]).made_of()
    assert supply([photos / "table.csv"]).made_of() == before
    (photos / "dogs" / "2.PNG").write_bytes(png.encode(np.full((4, 6, 1), 251, np.uint8)))
    assert supply([photos / "table.csv"]).changed(before) == ["what data.files names"]


def test_pictures_for_a_verb_that_reads_texts(photos, pair):
    for files, what in (([photos], "a folder by class"), (pair, "two IDX files")):
        with pytest.raises(SaccadeError, match=rf"this is {what}, .* saccade train classify-images --files"):
            pair_of(recipe(files)).supply(recipe(files))


def test_texts_for_a_run_that_reads_pictures(tmp_path):
    (tmp_path / "texts.tsv").write_text("a fine film\tgood\na long one\tbad\n")
    with pytest.raises(SaccadeError, match=r"'a fine film' is no file.*reads pictures"):
        list(supply([tmp_path / "texts.tsv"]).everything())


def test_named_pictures():
    for name, first in (("fashion-mnist", "Ankle boot"), ("mnist", "5")):
        data_set(name)
        pixels, label = next(rows_of(name, "train", None, None))
        assert (pixels.shape, label) == ((28, 28), first)
        assert sum(1 for _ in rows_of(name, "val", None, None)) == 5000
        assert DATA[name].kinds == ("image", "label")
