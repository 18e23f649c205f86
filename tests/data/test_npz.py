"""NPZ files: pictures with labels or numbers, one after another; pickles and what is no such file are refused."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from saccade.data import npz
from saccade.error import SaccadeError
from saccade.recipes.read import from_values
from saccade.task.pair import pair_of

GREY = np.arange(5 * 4 * 6, dtype=np.uint8).reshape(5, 4, 6)
COLOURED = np.stack([GREY, 255 - GREY, GREY // 2], 3)
LABELS = np.array([3, 1, 0, 1, 2])


def recipe(path, task="classify"):
    values = {"data": {"files": [str(path)]}, "x": {"source": {"kind": "image"}}}
    return from_values({"task": task, **values, "model": {"width": 4, "heads": 1, "encoder": 1}, "train": {"steps": 1}})


def rows(path, task="classify"):
    made = recipe(path, task)
    return list(pair_of(made).supply(made).everything())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("pictures", [GREY, COLOURED, GREY.astype(np.float32) / 255, np.asfortranarray(COLOURED)])
@pytest.mark.parametrize("labels", [LABELS, LABELS[:, None], LABELS.astype("U3"), LABELS.astype(np.uint8)])
def test_pictures_and_labels(tmp_path, save, pictures, labels):
    save(tmp_path / "a.npz", images=pictures, labels=labels)
    found = rows(tmp_path / "a.npz")
    assert [label for _, label in found] == ["3", "1", "0", "1", "2"]
    for (picture, _), wanted in zip(found, pictures, strict=True):
        assert np.array_equal(picture, wanted)


def test_names_that_numpy_gives_and_other_arrays_beside(tmp_path):
    np.savez(tmp_path / "a.npz", GREY, LABELS)
    assert len(rows(tmp_path / "a.npz")) == 5
    np.savez(tmp_path / "b.npz", ids=np.arange(5), y=LABELS, x=GREY)
    assert [label for _, label in rows(tmp_path / "b.npz")] == ["3", "1", "0", "1", "2"]


def test_numbers(tmp_path):
    values = np.array([[0.5, 2], [1 / 3, 3], [0, -1e-9], [4, 5], [6, 7]])
    np.savez(tmp_path / "a.npz", images=GREY, numbers=values)
    assert [numbers for _, numbers in rows(tmp_path / "a.npz", "regress")] == [tuple(each) for each in values]
    np.savez(tmp_path / "b.npz", images=GREY, labels=LABELS)
    assert [numbers for _, numbers in rows(tmp_path / "b.npz", "regress")] == [(3.0,), (1.0,), (0.0,), (1.0,), (2.0,)]


def content(**arrays):
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def zipped(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, each in files.items():
            archive.writestr(name, each)
    return made.getvalue()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (content(images=np.array([GREY, None], object), labels=LABELS), "is pickled, and a pickle may run anything"),
        (content(images=GREY, labels=np.array(["a"] * 5, object)), "labels.npy is pickled"),
        (content(images=GREY), "one array of 5 labels or numbers; it holds none"),
        (content(images=GREY, labels=LABELS[:4]), r"it holds labels \(4,\)"),
        (content(train=GREY, test=GREY, labels=LABELS), r"one array of pictures .* train \(5, 4, 6\), test"),
        (content(labels=LABELS), "one array of pictures"),
        (zipped(**{"a.npy": b"no array"}), "a.npy in it is no array"),
        (b"plain words", "is no NPZ file"),
        (content(images=GREY, labels=LABELS)[:300], "is no NPZ file"),
    ],
)
def test_what_is_told(tmp_path, written, told):
    (tmp_path / "a.npz").write_bytes(written)
    with pytest.raises(SaccadeError, match=told):
        rows(tmp_path / "a.npz")


def test_a_damaged_picture_array_is_told(tmp_path):
    whole = content(images=np.random.default_rng(0).integers(0, 256, (500, 9, 9), np.uint8), labels=np.zeros(500, int))
    broken = bytearray(whole)
    broken[20_000] ^= 255
    (tmp_path / "a.npz").write_bytes(broken)
    with pytest.raises(SaccadeError, match="is damaged"):
        rows(tmp_path / "a.npz")


def test_a_large_file_is_read_picture_by_picture(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((3000, 64, 64), np.uint8), labels=np.zeros(3000, int))
    import tracemalloc

    made = recipe(tmp_path / "a.npz")
    found = npz.rows([str(tmp_path / "a.npz")], pair_of(made).supply(made).kinds)
    tracemalloc.start()
    assert sum(1 for _ in found) == 3000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6  # of 12 MB
