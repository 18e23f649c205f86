"""One reading for several readers: each sees all rows in order, and errors are told as if it read alone."""

from __future__ import annotations

import pytest

from saccade.data.tee import CHUNK, tee

LONG = range(3 * CHUNK + 7)


def counted(read):
    for each in LONG:
        read.append(each)
        yield each


@pytest.mark.parametrize("readers", [1, 2, 5])
def test_every_reader_sees_all_rows_and_they_are_read_once(readers):
    read = []
    found = tee(counted(read), [list, sum, max, len_of, set][:readers])
    assert found == [list(LONG), sum(LONG), max(LONG), len(LONG), set(LONG)][:readers]
    assert read == list(LONG)


def len_of(rows):
    return sum(1 for _ in rows)


def test_without_readers_nothing_is_read():
    assert tee((pytest.fail("it was read") for _ in range(1)), []) == []


def test_a_reader_may_stop_early_or_fail():
    def fails(rows):
        next(rows)
        raise ValueError("a reader")

    assert tee(LONG, [next, sum]) == [0, sum(LONG)]
    with pytest.raises(ValueError, match="a reader"):
        tee(LONG, [sum, fails, len_of])


@pytest.mark.parametrize("readers", [1, 2])
def test_an_error_of_the_rows_is_told(readers):
    def rows():
        yield from LONG
        raise ValueError("a row")

    with pytest.raises(ValueError, match="a row"):
        tee(rows(), [sum, list][:readers])


def test_readers_pull_no_further_than_all_of_them_have_come():
    read = []

    def slow(rows):
        return max(len(read) - number for number, _ in enumerate(rows, 1))

    first, second = tee(counted(read), [slow, slow])
    assert max(first, second) <= 3 * CHUNK
