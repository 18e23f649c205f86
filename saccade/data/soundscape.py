"""A soundscape: short sounds with labels, laid at known times over noise. `tones` and `spoken-events` are made of it.

Events lie apart, or anywhere, so that they overlap; those of one label never overlap, since nobody could tell how many
they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saccade.field.elements.element import Elements, elements
from saccade.field.recording import FULL, Recording
from saccade.recipe import SoundscapeConfig

SPLITS = ("train", "val", "test-overlap", "test")
SECONDS = (3.0, 5.0)  # of a sound, from and to
FEWEST = {"test-overlap": 2}  # events of a sound, where there may not be none
NOISE = (-55.0, -35.0)  # how loud the noise is, in dB of the loudest sample
COLOUR = (-0.5, 0.9)  # of the noise: how much of a sample is in the next one
APART = 0.06  # seconds between events, at least, where they lie apart
TRIES = 20  # places that are drawn for an event before it is left out
INSIDE = (0.1, 0.8)  # where in the first event the second one begins, as a share, where they overlap

Row = tuple[Recording, Elements]


class Piece(NamedTuple):
    """What is heard of an event: samples (n,) with a power of 1, and how much louder than the noise it is, in dB."""

    label: str
    samples: np.ndarray
    louder: float


def count_of(split: str, config: SoundscapeConfig, random: np.random.Generator) -> int:
    """How many events a sound of a split has."""
    fewest = min(FEWEST.get(split, 0), config.most)
    return int(random.integers(fewest, config.most + 1))


def soundscape(
    pieces: Sequence[Piece], rate: int, split: str, config: SoundscapeConfig, random: np.random.Generator
) -> Row:
    """A sound with these events, as many as find a place, and where they are. They may overlap in `test-overlap`, and
    in half of the sounds to learn from if the recipe says so.
    """
    size = int(random.uniform(*SECONDS) * rate)
    free = bool(random.random() < 0.5) and config.overlap
    begins = (_anywhere if FREE.get(split, free) else _apart)(pieces, size, int(APART * rate), random)
    level = 10 ** (random.uniform(*NOISE) / 20)
    heard = _noise(size, random)
    for piece, begin in zip(pieces, begins, strict=True):
        if begin is not None:
            heard[begin : begin + len(piece.samples)] += np.float32(10 ** (piece.louder / 20)) * piece.samples
    samples = np.rint(heard * np.float32(level * FULL)).clip(-FULL, FULL - 1).astype(np.int16)
    places = sorted(
        (begin / rate, (begin + len(piece.samples)) / rate, piece.label)
        for piece, begin in zip(pieces, begins, strict=True)
        if begin is not None
    )
    return Recording(samples, rate), elements(
        [label for *_, label in places], [(begin, end) for begin, end, _ in places], (0.0, size / rate)
    )


def _noise(size: int, random: np.random.Generator) -> np.ndarray:
    """Noise (size,) with a power of 1: each sample with some of the one before."""
    share = np.float32(random.uniform(*COLOUR))
    drawn = random.standard_normal(size + 1, np.float32)
    return (drawn[1:] + share * drawn[:-1]) / np.sqrt(1 + share**2)


def _apart(pieces: Sequence[Piece], size: int, gap: int, random: np.random.Generator) -> list[int | None]:
    """The sample at which each begins, one after another; None for those that the sound is too short for."""
    ends = np.cumsum([len(each.samples) + gap for each in pieces], dtype=np.int64)
    fitting = int((ends + gap <= size).sum())
    room = size - gap - (int(ends[fitting - 1]) if fitting else 0)
    moved = np.sort(random.integers(0, room + 1, fitting)) if fitting else np.zeros(0, np.int64)
    before = np.concatenate([[0], ends[: max(fitting - 1, 0)]])[:fitting] + gap
    return [*(before + moved).tolist(), *[None] * (len(pieces) - fitting)]


def _anywhere(pieces: Sequence[Piece], size: int, gap: int, random: np.random.Generator) -> list[int | None]:
    """The sample at which each begins, wherever it falls; the second one begins in the middle of the first. None for
    those that find no place beside others of their label.
    """
    begins: list[int | None] = []
    for number, piece in enumerate(pieces):
        last = size - len(piece.samples)
        drawn = random.integers(0, last + 1, TRIES).tolist()
        if number == 1 and begins[0] is not None and piece.label != pieces[0].label:
            inside = begins[0] + int(random.uniform(*INSIDE) * len(pieces[0].samples))
            drawn = [min(inside, last)]
        alike = [
            (begin, begin + len(other.samples))
            for other, begin in zip(pieces, begins, strict=False)
            if other.label == piece.label and begin is not None
        ]
        free = (
            begin
            for begin in drawn
            if all(begin >= end + gap or begin + len(piece.samples) + gap <= start for start, end in alike)
        )
        begins.append(next(free, None))
    return begins


FREE = {"test": False, "test-overlap": True}  # whether events may overlap, where the recipe does not say
