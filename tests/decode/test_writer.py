"""A row on its way: what may be asked for, its own random numbers, and what it has read and written."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.decode.writer import Choice, TokenCounts, Writer
from saccade.error import SaccadeError


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_uniform_number_depends_on_seed_step_and_what_is_read(seed, t, other):
    writer = Writer(Choice(seed=seed), [], 3)
    value = writer.uniform(t)
    assert 0 <= value < 1
    elsewhere = writer.uniform(other)
    assert (value == elsewhere) == (t == other)
    assert writer.uniform(t) == value == Writer(Choice(seed=seed), [], 7).uniform(t)
    reading = [([2], None), ([], [2]), ([2], [2]), ([2, 2], None), ([], [0])]
    found = {Writer(Choice(seed=seed), prompt, 7, source).uniform(t) for prompt, source in reading}
    assert len(found | {value}) == 1 + len(reading)


def test_texts_with_one_seed_are_not_drawn_alike():
    """Over many prompts the first numbers, and the second, are spread evenly, and independent of each other."""
    drawn = np.array([[Writer(Choice(seed=1), [n], 997).uniform(t) for t in (0, 1)] for n in range(997)])
    assert np.abs(drawn.mean(0) - 0.5).max() < 0.05
    assert np.abs(drawn.var(0) - 1 / 12).max() < 0.02
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.12
    other = np.array([Writer(Choice(seed=2), [n], 997).uniform(0) for n in range(997)])
    assert abs(np.corrcoef(drawn[:, 0], other)[0, 1]) < 0.12


def test_a_seed_means_the_same_everywhere():
    """In every process and on every machine."""
    assert Writer(Choice(seed=8017), [3, 5], 7, [2, 4]).key.tolist() == [8017, 17709742136720095718]


def test_the_numbers_of_a_seed_are_those_of_numpy():
    for seed in (0, 8017, 2**63 - 1, -1):
        writer = Writer(Choice(seed=seed), [], 3)
        expected = np.random.Generator(np.random.Philox(key=writer.key)).random(300)
        assert writer.key[0] == seed % 2**64
        assert [writer.uniform(t) for t in range(300)] == expected.tolist()
    assert Writer(Choice(), [], 3).seed != Writer(Choice(), [], 3).seed


@given(st.lists(st.integers(0, 200)), st.lists(st.integers(0, 200) | st.none(), max_size=300))
def test_a_tally_counts(prompt, moves):
    """None takes back the last."""
    token_counts, written = TokenCounts(prompt), []
    for move in moves:
        if move is not None:
            written.append(move)
            token_counts.add(move)
        elif written:
            token_counts.drop(written.pop())
    counts = Counter(written)
    assert dict(zip(token_counts.tokens, token_counts.counts, strict=True)) == {
        t: counts[t] for t in {*prompt, *written}
    }
    assert len(token_counts.tokens) == len({*prompt, *written})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temperature", [-0.1, 101, math.inf]),
        ("top_p", [-0.1, 1.01]),
        ("min_p", [-0.1, 1.01]),
        ("repetition_penalty", [0, 0.001, -1, 101]),
        ("presence_penalty", [-2.1, 2.1]),
        ("frequency_penalty", [-2.1, 2.1, -math.inf]),
    ],
)
def test_numbers_out_of_range_are_refused(name, values):
    for value in [*values, math.nan, True, False, "1", None, [1.0]]:
        with pytest.raises(SaccadeError, match=f"^{name} is a number from .* to .*; got"):
            Choice(**{name: value})


def test_whole_numbers_out_of_range_are_refused():
    for value in (-1, 1.0, True, None, "5", math.nan, 1 << 31):
        with pytest.raises(SaccadeError, match=r"^top_k is a whole number from 0 \(all tokens\) to 2\^31 - 1; got"):
            Choice(top_k=value)
    for value in (2**63, -(2**63) - 1, 1.0, False, "5"):
        with pytest.raises(SaccadeError, match=r"^seed is a whole number of 64 bits, or None; got"):
            Choice(seed=value)


def test_whole_numbers_pass_as_numbers():
    assert Choice(temperature=1, top_p=0, min_p=1, repetition_penalty=2, presence_penalty=-2).samples
    assert not Choice().samples
    assert not Choice(repetition_penalty=1, presence_penalty=0).penalises
