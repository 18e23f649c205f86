"""Cars on lanes: the same number gives the same scene, nobody runs into anybody, and who comes first goes first."""

from __future__ import annotations

import numpy as np
import pytest

from saccade.config import read
from saccade.data import lanes
from saccade.data.lanes import Car, drive
from saccade.field.tracks.error import errors
from saccade.recipe import LanesConfig

CONFIG = read(LanesConfig, {})


def test_the_same_number_gives_the_same_scene():
    one, again, other, held = (
        lanes.example(number, CONFIG, split=split)[1]
        for number, split in ((3, "train"), (3, "train"), (4, "train"), (3, "test"))
    )
    assert np.array_equal(one.seen, again.seen)
    assert np.array_equal(one.future, again.future)
    assert len({each.seen.tobytes() for each in (one, other, held)}) == 3


def test_sizes_are_those_of_the_recipe():
    config = read(LanesConfig, {"cars": 2, "seen": 5, "told": 7})
    counts = set()
    for number in range(20):
        seen, sequel = lanes.example(number, config)
        assert seen.shape[1:] == (5, 2)
        assert sequel.future.shape == (len(seen), 7, 2)
        counts.add(len(seen))
    assert counts == {2, 3, 4}


def test_nobody_drives_backwards_or_into_another_of_the_lane():
    for number in range(40):
        random = np.random.default_rng(number)
        cars = [car for lane in (0, 1) for car in lanes._queue(lane, 4, random)]
        along = drive(cars, 20, merges=False)
        assert (np.diff(along) >= 0).all()
        for lane in (0, 1):
            own = along[[car.lane == lane for car in cars]]
            assert (own[:-1] - own[1:] > lanes.LENGTH * 0.9).all()


def test_who_would_come_first_goes_first():
    """Without the other it would drive on; with it, it stops before the line, and goes on when the other has passed."""
    first, second = Car(0, -30.0, 10.0, 10.0), Car(1, -36.0, 10.0, 10.0)
    both = drive([first, second], 20, merges=False)
    alone = drive([Car(1, -36.0, 10.0, 10.0)], 20, merges=False)[0]
    passed = int((both[0] > lanes.AROUND + lanes.LENGTH).argmax())
    assert passed > 5
    assert both[1, passed] < 0 < alone[passed]
    assert both[1, -1] > both[1, passed] + 3
    free = drive([Car(0, -30.0, 10.0, 10.0)], 20, merges=False)[0]
    assert np.allclose(both[0], free), "who goes first is not slowed"


def test_straight_on_is_far_off():
    rows = [lanes.example(number, CONFIG)[1] for number in range(60)]
    ade, count, *_ = np.array([errors(None, row, whole=False) for row in rows]).sum(0)
    assert 1.5 < ade / count < 3.5


def test_too_many_cars_are_refused():
    with pytest.raises(Exception, match="cars"):
        read(LanesConfig, {"cars": 13})
