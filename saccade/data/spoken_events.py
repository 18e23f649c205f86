"""`spoken-events`: spoken digits of several speakers at known times over noise, made of the clips of `fsdd`.

A clip is cut where it becomes louder than a share of its loudest part, so that an event begins and ends where it is
heard. The same number gives the same sound.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from saccade.data import fsdd
from saccade.data.batch import random_of
from saccade.data.soundscape import SPLITS, Piece, Row, count_of, soundscape
from saccade.recipe import SoundscapeConfig

VERSION = 1  # of the generator: raise it when the same number gives another sound
RATE = 8000  # of every clip
BLOCK = 80  # samples whose power is taken together
HEARD = 0.05  # of the loudest block's amplitude: blocks from there on are heard
LOUDER = (8.0, 20.0)  # than the noise, in dB


def example(
    archive: Path,
    number: int,
    config: SoundscapeConfig,
    *,
    split: str = "train",
    seed: int = 0,
    speaker: str | None = None,
) -> Row:
    """The sound of this number, and its digits as elements of one axis; speaker: see `fsdd.clips`."""
    known = pieces(archive, archive.stat().st_mtime_ns, split.partition("-")[0], speaker)
    random = random_of(seed, SPLITS.index(split), number)
    chosen = [known[each] for each in random.integers(0, len(known), count_of(split, config, random)).tolist()]
    louder = random.uniform(*LOUDER, len(chosen)).tolist()
    return soundscape(
        [Piece(label, samples, more) for (label, samples), more in zip(chosen, louder, strict=True)],
        RATE,
        split,
        config,
        random,
    )


@lru_cache(8)
def pieces(archive: Path, changed: int, split: str, speaker: str | None) -> list[tuple[str, np.ndarray]]:
    """The word and the samples (n,) of each clip of a split, with a power of 1; of an archive that was changed at this
    time.
    """
    return [
        (fsdd.WORDS[each.digit], _heard(each.recording.at(RATE).samples))
        for each in fsdd.clips(archive, split, speaker)
    ]


def _heard(samples: np.ndarray) -> np.ndarray:
    """The part of a clip in which it is heard."""
    whole = samples.astype(np.float32)
    blocks = np.pad(whole, (0, -len(whole) % BLOCK)).reshape(-1, BLOCK)
    loud = np.sqrt((blocks**2).mean(1))
    there = np.flatnonzero(loud > HEARD * loud.max())
    part = whole[there[0] * BLOCK : (there[-1] + 1) * BLOCK]
    return part / np.sqrt((part**2).mean())
