"""Windows of tables of tracks: by loops, split by time; the pedestrians of eth-ucy, and what going straight on is."""

from __future__ import annotations

import numpy as np
import pytest
from absent import data_set

from saccade import SaccadeError
from saccade.config import read
from saccade.data import pedestrians, windows
from saccade.data.named import DATA, files
from saccade.field.tracks.error import errors
from saccade.field.tracks.scene import sightings
from saccade.recipe import WindowsConfig
from saccade.recipes.read import from_values
from saccade.task.pair import pair_of

CONFIG = read(WindowsConfig, {"seen": 3, "told": 2})


def written(folder, spans, frames=23):
    """Agents that are there from a frame to before another; where they are tells who and when."""
    rows = [
        f"{7 * frame},{name},{frame},{number}"
        for frame in range(frames)
        for number, (name, begin, end) in enumerate(spans)
        if begin <= frame < end
    ]
    (folder / "tracks.csv").write_text("\n".join(rows) + "\n")
    return folder / "tracks.csv"


SPANS = [("a", 0, 23), ("b", 4, 9), ("c", 11, 12), ("d", 20, 23)]


def test_windows_by_loops(tmp_path):
    found = sightings(written(tmp_path, SPANS))
    rows = list(windows.windows(found, "t", CONFIG))
    assert len(rows) == 23 - 5 + 1
    for first, (seen, sequel) in enumerate(rows):
        assert seen is sequel.seen
        whole = np.concatenate(sequel, 1)
        there = [number for number, (_, begin, end) in enumerate(SPANS) if begin < first + 3 and end > first]
        assert len(whole) == len(there)
        for row, number in zip(whole, there, strict=True):
            for step, place in enumerate(row):
                now = SPANS[number][1] <= first + step < SPANS[number][2]
                assert place.tolist() == [first + step, number] if now else np.isnan(place).all()


def test_a_window_without_a_future_is_left_out(tmp_path):
    found = sightings(written(tmp_path, [("a", 0, 6), ("b", 9, 20)]))
    begins = [int(np.nanmin(seen[..., 0])) for seen, _ in windows.windows(found, "t", CONFIG)]
    assert begins == [0, 1, 2, 3, *range(9, 16)][: len(begins)] or 9 in begins
    for _, sequel in windows.windows(found, "t", CONFIG):
        assert (np.isfinite(sequel.seen[:, -1, 0]) & np.isfinite(sequel.future[..., 0]).any(1)).any()


def test_a_split_goes_by_time(tmp_path):
    """No frame of a validation window is in one of training."""
    path = written(tmp_path, SPANS)
    values = {
        "task": "foretell",
        "data": {"files": [str(path)], "share": 0.4, "windows": {"seen": 3, "told": 2}},
        "model": {"width": 8, "heads": 2, "encoder": 1},
        "train": {"steps": 1},
    }
    recipe = from_values(values)
    supply = pair_of(recipe).supply(recipe)
    train, val = ({float(each) for _, row in supply.rows(name) for each in _frames(row)} for name in ("train", "val"))
    assert max(train) < min(val)
    assert supply.splits == ("train", "val")
    assert [each.learned for each in supply.seen(every=True)].count(False) == len(list(supply.rows("val")))


def _frames(sequel):
    whole = np.concatenate(sequel, 1)[..., 0]
    return whole[np.isfinite(whole)]


def test_a_file_without_a_window_is_told(tmp_path):
    path = written(tmp_path, SPANS, frames=4)
    with pytest.raises(SaccadeError, match="there is no window of 3 steps and 2 that come"):
        list(windows.rows([str(path)], CONFIG, (0.0, 1.0)))


def test_only_scenes_are_read_so():
    import pathlib

    from saccade.field.label import Label
    from saccade.field.tracks.futures import Futures
    from saccade.field.tracks.tracks import Tracks

    here = [pathlib.Path(__file__).with_suffix(".csv")]
    assert not windows.fits(here, {"a": Tracks, "b": Futures}), "the file is not there"
    assert not windows.fits([], {"a": Tracks, "b": Futures})
    assert not windows.fits([pathlib.Path(__file__)], {"a": Tracks, "b": Futures})
    assert not windows.fits(here, {"a": Tracks, "b": Label})


def test_a_place_is_called_by_its_name():
    with pytest.raises(SaccadeError, match="no place is called 'zarra' here; did you mean 'zara'"):
        list(pedestrians.rows([], "test", "zarra"))
    assert sorted(each for row in pedestrians.PLACES.values() for each in row) == sorted(
        each.split(".")[0] for each in pedestrians.FILES
    )
    assert DATA["eth-ucy"].apart == "place"


STRAIGHT = {"eth": (364, 1.08, 2.28), "hotel": (1197, 0.32, 0.61), "zara": (4844, 0.446, 1.004)}


@pytest.mark.proof
@pytest.mark.parametrize("place", STRAIGHT)
def test_straight_on_in_each_place(place):
    """The figures that are told beside the data, of those who are there at every step of a window."""
    data_set("eth-ucy")
    rows = pedestrians.rows(files("eth-ucy"), "test", place)
    ade, count, fde, _, *_ = np.array([errors(None, row, whole=True) for _, row in rows]).sum(0)
    assert count == STRAIGHT[place][0]
    assert (ade / count, fde / count) == pytest.approx(STRAIGHT[place][1:], abs=6e-3)


@pytest.mark.proof
def test_no_place_is_in_two_splits():
    data_set("eth-ucy")
    paths = files("eth-ucy")
    for place, own in pedestrians.PLACES.items():
        parts = {
            split: [pedestrians._part(split, place, path.name.split(".")[0]) for path in paths]
            for split in ("train", "val", "test")
        }
        for number, path in enumerate(paths):
            assert (parts["test"][number] is not None) == (path.name.split(".")[0] in own)
            assert (parts["train"][number] is None) == (parts["test"][number] is not None)
