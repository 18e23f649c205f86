"""Sounds as samples of 16 bits, one channel: read from a file, from bytes or from an array.

The channels of a file are averaged, and what has another rate than is asked for is resampled. A wav file of 16 bits is
read by Python itself; soundfile reads the other kinds.
"""

from __future__ import annotations

import base64
import io
import math
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from saccade.error import SaccadeError
from saccade.field.field import UnreadableError
from saccade.field.file import Media

ENDINGS = (".wav", ".flac", ".ogg", ".aiff", ".aif")
SOUND = Media("sound", ENDINGS, "audio", "audio/wav")
FULL = 1 << 15  # what a sample of 1.0 is in 16 bits
LONGEST = 600.0  # seconds of one sound, so that a small file cannot fill the memory
SENT = 60.0  # of one that comes over the network
RATES = (1000, 384_000)  # samples a second, from and to
CHANNELS = 64  # of one sound, at most
LOUDEST = 2.0  # a float above it is no sample that was clipped, but another scale


@dataclass(frozen=True, eq=False)
class Recording:
    """samples (n,) int16; rate: of them in a second."""

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / self.rate

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.samples.nbytes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The samples: a recording is one thing, not several."""
        return np.asarray(self.samples, dtype)

    def at(self, rate: int) -> Recording:
        """The same at another rate, with what is too high for it taken away first."""
        if rate == self.rate:
            return self
        try:
            from scipy.signal import resample_poly
        except ImportError:
            told = f"a sound of {self.rate} Hz becomes one of {rate} by scipy: pip install 'saccade[sound]'"
            raise SaccadeError(told) from None
        common = math.gcd(rate, self.rate)
        made = resample_poly(self.samples.astype(np.float64), rate // common, self.rate // common)
        return Recording(_as_16_bits(made / FULL), rate)

    def wav(self) -> bytes:
        """The content of a wav file."""
        content = io.BytesIO()
        with wave.open(content, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.rate)
            file.writeframes(self.samples.astype("<i2").tobytes())
        return content.getvalue()

    def url(self) -> str:
        """It as a data: URL."""
        return f"data:{SOUND.example};base64,{base64.b64encode(self.wav()).decode()}"


def recording_of(raw: Any, rate: int | None = None, most: float = LONGEST) -> Recording:
    """A sound of `most` seconds at most: a path, the bytes of a file, a recording, (array, rate), or an array that has
    the rate asked for.
    """
    if isinstance(raw, Recording):
        return _checked(raw, "this sound", most)
    if isinstance(raw, str | Path):
        return _from_content(SOUND.content(Path(raw)), str(raw), most)
    if isinstance(raw, bytes):
        return _from_content(raw, "this sound", most)
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], int):
        raw, rate = raw
    if isinstance(raw, torch.Tensor):
        raw = (raw.float() if raw.is_floating_point() else raw).detach().cpu().numpy()
    if not isinstance(raw, np.ndarray):
        raise SaccadeError(f"a sound was expected (a path, bytes, an array, or (array, rate)), not {raw!r:.40}")
    if rate is None:
        raise SaccadeError("an array does not tell its rate: give (array, rate), or set x.NAME.rate")
    return _checked(Recording(_mono(raw, "this sound"), rate), "this sound", most)


def _from_content(content: bytes, name: str, most: float) -> Recording:
    """The sound in the bytes of a file; name: what an error calls it."""
    plain = _plain_wav(content)
    if plain is not None:
        channels, rate = plain
        return _checked(Recording(_mono(channels, name), rate), name, most)
    soundfile = _soundfile(name)
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            if file.frames > most * file.samplerate:
                raise _too_long(name, file.frames / file.samplerate, most)
            found, rate = file.read(dtype="float64", always_2d=True), file.samplerate
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as problem:
        if isinstance(problem, SaccadeError):
            raise
        why = getattr(problem, "error_string", str(problem)).splitlines()[0][:80]  # without the object that was opened
        told = f"{name} is no sound that can be read: wav and flac are ({why})"
        raise UnreadableError(told, "a file that is no sound", name) from None
    return _checked(Recording(_mono(found, name), rate), name, most)


def _plain_wav(content: bytes) -> tuple[np.ndarray, int] | None:
    """The samples (n, channels) of a whole wav file of 16 bits, and its rate; None: it is another kind of file."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return None
    try:
        with wave.open(io.BytesIO(content)) as file:
            if file.getsampwidth() != 2 or not file.getnchannels():
                return None
            found = file.readframes(file.getnframes())
            count, rate = file.getnchannels(), file.getframerate()
    except (wave.Error, EOFError, ValueError):
        return None
    whole = len(found) // (2 * count) * count
    return np.frombuffer(found, "<i2", whole).reshape(-1, count), rate


def _mono(channels: np.ndarray, name: str) -> np.ndarray:
    """Samples (n,) of 16 bits from (n,) or (n, channels): whole numbers of at most 16 bits, or floats from -1 to 1."""
    if channels.ndim not in (1, 2) or (channels.ndim == 2 and channels.shape[1] > CHANNELS):
        raise UnreadableError(
            f"a sound is an array (samples,) or (samples, channels); {name} has {channels.shape}",
            "an array that is no sound",
            name,
        )
    if channels.dtype.kind == "f":
        if not np.isfinite(channels).all():
            told = f"{name} has samples that are not finite (NaN or infinite)"
            raise UnreadableError(told, "a sound with samples that are not finite", name)
        if np.abs(channels).max(initial=0.0) > LOUDEST:
            told = f"{name} has samples up to {np.abs(channels).max():g}: floats are from -1 to 1, or give int16"
            raise UnreadableError(told, "a sound of another scale", name)
        return _as_16_bits(channels if channels.ndim == 1 else channels.mean(1))
    if channels.dtype != np.int16:
        told = f"the samples of {name} are {channels.dtype}: give int16, or floats from -1 to 1"
        raise UnreadableError(told, "an array that is no sound", name)
    if channels.ndim == 1 or channels.shape[1] == 1:
        return np.ascontiguousarray(channels.reshape(-1))
    return _as_16_bits(channels.mean(1) / FULL)


def _as_16_bits(samples: np.ndarray) -> np.ndarray:
    """Floats from -1 to 1 as int16; what is louder is clipped."""
    return np.rint(samples * FULL).clip(-FULL, FULL - 1).astype(np.int16)


def _checked(found: Recording, name: str, most: float) -> Recording:
    """A recording; refuses one without samples, one that lasts too long, and an absurd rate."""
    if not RATES[0] <= found.rate <= RATES[1]:
        told = f"{name} has {found.rate} samples a second: from {RATES[0]:,} to {RATES[1]:,} are read"
        raise UnreadableError(told, "a sound of a rate that is not read", name)
    if not len(found.samples):
        raise UnreadableError(f"{name} has no samples: there is nothing to hear", "a sound without samples", name)
    if found.seconds > most:
        raise _too_long(name, found.seconds, most)
    return found


def _too_long(name: str, seconds: float, most: float) -> UnreadableError:
    told = f"{name} lasts {seconds:,.0f} seconds, and {most:,.0f} are read at most: cut it into shorter ones"
    return UnreadableError(told, f"a sound of more than {most:,.0f} seconds", name)


def _soundfile(name: str) -> Any:
    try:
        import soundfile
    except ImportError:
        told = f"{name} is no wav of 16 bits, and other sounds need soundfile: pip install 'saccade[sound]'"
        raise SaccadeError(told) from None
    return soundfile
