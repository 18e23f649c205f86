"""Loud parts of a sound: where they begin and end, however loud the noise; none where there is noise alone."""

from __future__ import annotations

import numpy as np
import pytest

from saccade.data import tones
from saccade.field.elements.energy import loud_parts, marked
from saccade.field.elements.timing import timed
from saccade.field.recording import Recording
from saccade.recipe import SoundscapeConfig


def noise(seconds, rate=8000, seed=0):
    return np.random.default_rng(seed).standard_normal(int(seconds * rate))


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("rate", [8000, 16000])
def test_a_tone_in_noise_begins_and_ends_where_it_does(rate, scale):
    samples = noise(3, rate)
    samples[int(1.2 * rate) : int(1.9 * rate)] += (
        4 * np.sin(2 * np.pi * 440 * np.arange(int(0.7 * rate)) / rate)[: int(1.9 * rate) - int(1.2 * rate)]
    )
    ((begin, end),) = loud_parts(scale * samples, rate)
    assert begin == pytest.approx(1.2, abs=0.03)
    assert end == pytest.approx(1.9, abs=0.03)


def test_parts_that_are_near_are_one_and_short_ones_are_none():
    samples = 0.01 * noise(3)
    for begin, end in ((0.5, 0.8), (0.84, 1.1), (1.6, 1.63), (2.0, 2.4)):
        samples[int(8000 * begin) : int(8000 * end)] += 1.0
    assert loud_parts(samples, 8000) == pytest.approx(np.array([[0.5, 1.1], [2.0, 2.4]]), abs=0.03)


def test_nothing_is_heard_in_noise_and_silence():
    assert sum(len(loud_parts(noise(4, seed=seed), 8000)) for seed in range(10)) <= 1
    assert loud_parts(np.zeros(8000), 8000).shape == (0, 2)
    assert loud_parts(np.zeros(7), 8000).shape == (0, 2)
    assert loud_parts(np.zeros(0), 8000).shape == (0, 2)


def test_a_part_ends_with_its_sound():
    samples = 0.01 * noise(2)
    samples[12_000:] += 1.0
    found = marked(Recording((9000 * samples).clip(-32768, 32767).astype(np.int16), 8000), "loud")
    assert found.labels == ("loud",)
    assert found.corners[0] == pytest.approx([1.5, 2.0], abs=0.03)
    assert found.frame.tolist() == [0, 2]


def test_it_finds_most_tones_that_lie_apart_and_few_that_overlap():
    scores = {}
    for split in ("test", "test-overlap"):
        rows = [tones.example(number, SoundscapeConfig(), split=split) for number in range(80)]
        scores[split] = timed([marked(recording, "?") for recording, _ in rows], [found for _, found in rows])["f1"]
    assert scores["test"] > 0.85
    assert scores["test-overlap"] < 0.6
