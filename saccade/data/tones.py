"""`tones`: seconds of noise with tones in it, each of a kind, with a beginning and an end; made here.

Kinds differ in how high a tone is and how that changes: low, middle and high tones are steady, a rising and a falling
one sweep over an octave or two, a trill goes up and down several times a second. The same number gives the same sound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saccade.data.batch import random_of
from saccade.data.soundscape import SPLITS, Piece, Row, count_of, soundscape
from saccade.recipe import SoundscapeConfig

VERSION = 1  # of the generator: raise it when the same number gives another sound
RATE = 8000
SECONDS = (0.25, 1.2)  # of a tone, from and to
LOUDER = (0.0, 20.0)  # than the noise, in dB
RAMP = 0.01  # seconds in which a tone becomes as loud as it is, and in which it ends


def example(number: int, config: SoundscapeConfig, *, split: str = "train", seed: int = 0) -> Row:
    """The sound of this number, and its tones as elements of one axis."""
    random = random_of(seed, SPLITS.index(split), number)
    kinds = [*TONES]
    chosen = [kinds[each] for each in random.integers(0, len(kinds), count_of(split, config, random)).tolist()]
    return soundscape([_tone(kind, random) for kind in chosen], RATE, split, config, random)


def _tone(kind: str, random: np.random.Generator) -> Piece:
    """A tone of a kind: a sine whose phase is 2 pi times the number of periods until each sample."""
    seconds = random.uniform(*SECONDS)
    size = int(seconds * RATE)
    time = np.arange(size) / RATE
    periods = TONES[kind](time, size / RATE, random) + random.random()
    turned = (2 * np.pi * (periods - np.floor(periods))).astype(
        np.float32
    )  # a sine of small numbers is exact, and quick
    samples = np.float32(np.sqrt(2)) * np.sin(turned)
    ramp = np.linspace(0, 1, int(RAMP * RATE), dtype=np.float32)
    samples[: len(ramp)] *= ramp
    samples[size - len(ramp) :] *= ramp[::-1]
    return Piece(kind, samples, random.uniform(*LOUDER))


Periods = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]


def _steady(low: float, high: float) -> Periods:
    """A tone of one height, drawn from so many Hz to so many."""

    def periods(time: np.ndarray, seconds: float, random: np.random.Generator) -> np.ndarray:
        return random.uniform(low, high) * time

    return periods


def _sweep(way: int) -> Periods:
    """A tone that goes up (1) or down (-1) by a factor of 2 to 4."""

    def periods(time: np.ndarray, seconds: float, random: np.random.Generator) -> np.ndarray:
        low = random.uniform(300, 800)
        first, last = (low, low * random.uniform(2, 4))[::way]
        return first * time + (last - first) * time**2 / (2 * seconds)

    return periods


def _trill(time: np.ndarray, seconds: float, random: np.random.Generator) -> np.ndarray:
    """A tone that goes up and down by a fifth of its height, 6 to 10 times a second."""
    middle, often = random.uniform(500, 2000), random.uniform(6, 10)
    return middle * time - 0.2 * middle * np.cos(2 * np.pi * often * time) / (2 * np.pi * often)


TONES: dict[str, Periods] = {
    "low": _steady(150, 350),
    "middle": _steady(600, 1000),
    "high": _steady(1700, 3200),
    "rising": _sweep(1),
    "falling": _sweep(-1),
    "trill": _trill,
}
