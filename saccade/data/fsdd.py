"""`fsdd`: spoken digits, the Free Spoken Digit Dataset (Jackson et al. 2018), read from its archive; and
`fsdd-strings`: several of them, one after another, by the same speaker.

A clip is called {digit}_{speaker}_{index}. Clips 0 to 4 of each digit and speaker are the test split, as the data set's
authors say; of the others, every tenth is for validation. With a speaker held out, all of this speaker's clips are the
test split, and no other split has any of them.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from saccade.error import SaccadeError, nearest
from saccade.field.recording import Recording, recording_of

VERSION = 1  # of the strings: raise it when the same number gives another one
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
SPLITS = {  # the indices of their clips; validation is spread, since clips of one session are alike
    "train": tuple(each for each in range(5, 50) if each % 10 != 9),
    "val": (9, 19, 29, 39, 49),
    "test": (0, 1, 2, 3, 4),
}
DIGITS = (3, 6)  # of a string
GAP = (0.03, 0.15)  # seconds of silence before, between and behind its digits


class Clip(NamedTuple):
    """One spoken digit."""

    digit: int
    speaker: str
    number: int
    recording: Recording


class Spoken(NamedTuple):
    """A string of digits: what is heard, its text, and for each word the seconds at which its clip begins and ends."""

    recording: Recording
    text: str
    cuts: tuple[tuple[float, float], ...]


def clips(archive: Path, split: str, speaker: str | None = None) -> list[Clip]:
    """The clips of a split in the order of their names; speaker: the one that is held out."""
    if speaker is not None and speaker not in SPEAKERS:
        raise SaccadeError(f"data.speaker: nobody is called {speaker!r} here; {nearest(speaker, SPEAKERS)}")
    every = _read(archive, archive.stat().st_mtime_ns)
    if speaker is not None and split == "test":
        return [each for each in every if each.speaker == speaker]
    return [each for each in every if each.number in SPLITS[split] and each.speaker != speaker]


def rows(archive: Path, split: str, speaker: str | None = None) -> Iterator[tuple[Recording, str]]:
    """Single digits, each with its word."""
    return ((each.recording, WORDS[each.digit]) for each in clips(archive, split, speaker))


def string(archive: Path, number: int, split: str, seed: int = 0, speaker: str | None = None) -> Spoken:
    """A string of a split: 3 to 6 clips of one speaker, with a little silence around each. The same number gives the
    same string.
    """
    every = voices(archive, archive.stat().st_mtime_ns, split, speaker)
    key = f"{seed} {split} {number}".encode()
    draw = np.random.Generator(np.random.PCG64(int.from_bytes(blake2b(key, digest_size=16).digest())))
    voice = every[draw.integers(len(every))]
    chosen = [voice[each] for each in draw.integers(0, len(voice), draw.integers(DIGITS[0], DIGITS[1] + 1))]
    rate = chosen[0].recording.rate
    silence = (draw.uniform(*GAP, len(chosen) + 1) * rate).astype(np.int64).tolist()
    pieces, cuts, place = [np.zeros(silence[0], np.int16)], [], silence[0]
    for clip, gap in zip(chosen, silence[1:], strict=True):
        samples = clip.recording.samples
        cuts.append((place / rate, (place + len(samples)) / rate))
        pieces += [samples, np.zeros(gap, np.int16)]
        place += len(samples) + gap
    return Spoken(Recording(np.concatenate(pieces), rate), " ".join(WORDS[each.digit] for each in chosen), tuple(cuts))


@lru_cache(8)
def voices(archive: Path, changed: int, split: str, speaker: str | None) -> list[list[Clip]]:
    """The clips of a split by speaker, of an archive that was changed at this time."""
    found: dict[str, list[Clip]] = {}
    for each in clips(archive, split, speaker):
        found.setdefault(each.speaker, []).append(each)
    return [found[name] for name in sorted(found)]


@lru_cache(2)
def _read(archive: Path, changed: int) -> list[Clip]:
    """All clips of an archive that was changed at this time, by name."""
    found = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.removeprefix("recordings/").removesuffix(".wav")
                file = tar.extractfile(member) if member.name.endswith(".wav") else None
                if file is not None:
                    digit, speaker, index = name.split("_")
                    recording = recording_of(file.read())
                    found.append((name, Clip(int(digit), speaker, int(index), recording)))
    except (tarfile.TarError, OSError, EOFError, ValueError) as problem:
        raise SaccadeError(f"{archive} cannot be read as the archive of fsdd: {problem}") from None
    return [clip for _, clip in sorted(found, key=lambda each: each[0])]
