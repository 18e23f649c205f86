"""Batches: every example once, under the budget, little padding, the same in every run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batch import Batches, Windows, cover
from saccade.data.rows import cut
from saccade.error import SaccadeError


def pairs(count: int) -> np.ndarray:
    """Lengths as translations have them: skewed, and the two sides alike but not equal."""
    random = np.random.default_rng(37)
    source = np.clip(random.lognormal(3.0, 0.5, count), 1, 250)
    return np.stack([source, np.clip(source * random.lognormal(0.05, 0.2, count), 1, 250)]).astype(int) + 1


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@given(
    st.lists(st.tuples(st.integers(0, 41), st.integers(0, 41)), min_size=1, max_size=97),
    st.integers(41, 307),
    st.integers(0, 5),
    st.booleans(),
)
@examples(150)
def test_every_example_once_and_never_above_the_budget(lengths, budget, number, shuffle):
    columns = np.array(lengths).T
    for chosen in (columns, columns[0], [columns[0], columns[1], columns[0]]):
        batches = Batches(chosen, budget, seed=3, shuffle=shuffle).epoch(number)
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) * np.atleast_2d(chosen)[:, batch].max() <= budget
            assert len(batch)


def test_an_epoch_depends_on_seed_and_number_alone():
    lengths = pairs(5003)
    batches = Batches(lengths, 2003, seed=11)
    first = batches.epoch(3)
    batches.epoch(0)
    assert same(batches.epoch(3), first)
    assert same(Batches(lengths, 2003, seed=11).epoch(3), first)
    assert not same(batches.epoch(4), first)
    assert not same(Batches(lengths, 2003, seed=12).epoch(3), first)
    quiet = Batches(lengths, 2003, seed=11, shuffle=False)
    assert same(quiet.epoch(0), quiet.epoch(1))


def test_the_order_is_that_of_the_day_it_was_written():
    """A run that is resumed after an update goes on with the same examples."""
    batches = Batches(np.arange(1, 32), 97, seed=5).epoch(2)
    assert [each.tolist() for each in batches[:5]] == [
        [23, 24, 25],
        [0, 1, 2, 3, 4, 5, 6, 7],
        [14, 15, 16, 17, 18],
        [19, 20, 21, 22],
        [28, 30],
    ]
    assert Windows(997, 31, 5, seed=5).starts(7).tolist() == [291, 495, 817, 282, 905]


@pytest.mark.parametrize("columns", [1, 2])
def test_little_is_padding_and_epochs_differ(columns):
    lengths = pairs(29_009)[:columns]
    batches = Batches(lengths, 4096)
    first, second = batches.epoch(0), batches.epoch(1)
    assert batches.waste(first) < 0.08
    padded = sum(len(each) * lengths[:, each].max(1).sum() for each in first)
    assert batches.waste(first) == pytest.approx(1 - lengths.sum() / padded)
    assert len(first) < 1.12 * lengths.max(0).sum() / 4096 + 2
    home = np.empty(29_009, int)
    for number, batch in enumerate(second):
        home[batch] = number
    together = [np.bincount(home[batch]).max() / len(batch) for batch in first]
    assert np.mean(together) < 0.6, "batches of one epoch come apart in the next"
    sizes = [lengths[0, batch].mean() for batch in first]
    assert abs(np.corrcoef(sizes, np.arange(len(sizes)))[0, 1]) < 0.3, "short and long batches are mixed"


def test_a_million_examples_are_quick():
    lengths = pairs(1_000_003)
    batches = Batches(lengths, 8192)
    spent = []
    for number in range(3):
        start = time.process_time()
        batches.epoch(number)
        spent.append(time.process_time() - start)
    assert min(spent) < 1.5


def test_what_does_not_fit_is_refused():
    with pytest.raises(SaccadeError, match="example 2 has 101 tokens and a batch may have 100"):
        Batches([np.array([3, 5, 7]), np.array([3, 5, 101])], 100)
    with pytest.raises(SaccadeError, match="no examples"):
        Batches(np.array([], int), 100)
    with pytest.raises(SaccadeError, match="31 tokens and a window takes 32"):
        Windows(31, 31, 3)
    with pytest.raises(SaccadeError, match="nothing to predict"):
        list(cover(1, 31, 3))


def test_windows_are_drawn_everywhere():
    windows = Windows(41, 31, 53, seed=2)
    assert np.array_equal(windows.starts(7), Windows(41, 31, 53, seed=2).starts(7))
    assert not np.array_equal(windows.starts(7), windows.starts(8))
    drawn = np.concatenate([windows.starts(each) for each in range(19)])
    assert set(drawn.tolist()) == set(range(10))
    assert Windows(32, 31, 3).starts(0).tolist() == [0, 0, 0]


def test_a_window_is_cut_with_the_token_after_it():
    stream = np.arange(100, 197).astype("<u2")
    windows = cut(stream, np.array([0, 85]), 11)["tokens"]
    assert windows.dtype == np.int64
    assert windows.tolist() == [list(range(100, 112)), list(range(185, 197))]


@pytest.mark.parametrize("total", [2, 30, 31, 32, 33, 63, 997])
def test_a_cover_predicts_every_token_once(total):
    stream, seen = np.arange(total), []
    for starts, length in cover(total, 31, 3):
        assert len(starts) <= 3
        windows = cut(stream, starts, length)["tokens"]
        assert windows.shape == (len(starts), length + 1)
        assert (np.diff(windows) == 1).all()
        seen += windows[:, 1:].flatten().tolist()
    assert seen == list(range(1, total))
