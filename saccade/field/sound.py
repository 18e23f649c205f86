"""A sound as X: samples of one rate, which a model sees as a log-mel spectrogram, frame by frame."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import Tensor

from saccade import png, spec
from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, Taken
from saccade.field.file import FileSource
from saccade.field.perturb import perturbations
from saccade.field.recording import ENDINGS, FULL, LONGEST, SENT, SOUND, Recording, recording_of
from saccade.field.spectrum import log_mels
from saccade.field.unit import Lengths, Side, Unit
from saccade.model.embed import EMBEDS, counted_of
from saccade.model.input import Input

LEAST = 1e-3  # the spread that log-mels are divided by, at least: a sound may be silent
LOUDEST, FAINTEST = 2.5, -2.0  # spreads from the mean that are drawn black and white


class SoundConfig(Config):
    """The keys of a sound in a recipe."""

    kind: Literal["sound"] = Field("sound", description="sound")
    rate: int | None = Field(
        None, ge=1000, le=192_000, description="samples a second that sounds are brought to; as the first by default"
    )
    limit: float = Field(30.0, gt=0, le=LONGEST, description="seconds of the longest example")
    hop: float = Field(10.0, ge=1, le=100, description="milliseconds from one frame to the next")
    window: float = Field(25.0, ge=2, le=400, description="milliseconds that a frame is made of")
    bands: int = Field(64, ge=1, le=512, description="of the mel scale, the numbers of a frame")
    normalise: Literal["sound", "bands", "training"] = Field(
        "sound",
        description="frames minus a mean, over a spread: those of the sound; of each of its bands; of each band in the "
        "training sounds",
    )
    embed: str = Field(
        "frames(steps=(2, 2))",
        description="how frames become vectors: frames(steps=(2, 2)), convolutions that halve the time twice; "
        "frames(stack=4), four side by side; pyramid(2), LSTMs both ways that halve it",
    )
    augment: str = Field(
        "",
        description='in training alone: "speed(0.9, 1.1) noise(10, 40) mask_time(10) mask_frequency(8)", in this order',
    )

    @field_validator("augment")
    @classmethod
    def _known(cls, text: str) -> str:
        perturbations(text)
        return text


class Hearing(NamedTuple):
    """What was learned from the training sounds: their rate, and the mean and spread of each band where they are asked
    for.
    """

    rate: int
    mean: list[float]
    spread: list[float]


class Sound(FileSource):
    """Samples in blocks of a hop, (T,hop) int16, the last filled up with silence; a model sees a frame for each block,
    (log-mels - mean) / spread.
    """

    kind: ClassVar[str] = "sound"
    media, inside = SOUND, "samples"
    keys: ClassVar[type[SoundConfig]] = SoundConfig
    held: ClassVar[str | None] = "sounds"
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    inherited: ClassVar[tuple[str, ...]] = ("rate", "hop", "window", "bands", "normalise", "embed")
    unit, noun = "frames", "sound"

    def __init__(self, measured: Hearing, config: SoundConfig) -> None:
        self.measured, self.config, self.rate = measured, config, measured.rate
        self.hop, self.window = _in_samples(config, measured.rate)
        self.limit = max(1, int(config.limit * self.rate / self.hop))
        self.perturbations = perturbations(config.augment)

    @staticmethod
    def made(config: SoundConfig, raws: Iterable[Any]) -> bytes:
        """The rate of the training sounds, and the mean and spread of their bands."""
        rate, total, squares, count = config.rate, np.zeros(config.bands), np.zeros(config.bands), 0
        for raw in raws:
            found = recording_of(raw, rate)
            rate = found.rate if rate is None else rate
            if config.normalise != "training":
                break
            hop, window = _in_samples(config, rate)
            frames = _spectrum(_blocks(found.at(rate).samples, hop), rate, config.bands, window, hop).numpy()
            total, squares, count = total + frames.sum(0), squares + (frames**2).sum(0), count + len(frames)
        if rate is None:
            raise SaccadeError("there is no sound to learn from: all are in the validation split, or there is none")
        mean = total / max(count, 1)
        spread = np.sqrt(np.maximum(squares / max(count, 1) - mean**2, LEAST**2))
        known = (mean.tolist(), spread.tolist()) if count else ([], [])
        return json.dumps(Hearing(rate, *known)._asdict()).encode()

    @classmethod
    def load(cls, config: SoundConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Sound:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows the rate of the sounds")
        return cls(Hearing(**json.loads(files[name])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"samples": Array("<i2", (self.hop,), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the rate stands in its file, and the hop in the shape of its arrays."""
        return {}

    @property
    def model(self) -> Mapping[str, Any]:
        """Vectors of frames. The states are averaged where one must stand for all."""
        embed = spec.completed(self.config.embed, EMBEDS, "embed", bands=self.config.bands)
        return {"embed": embed, "pool": "mean", "pooler": False}

    @property
    def asked(self) -> Mapping[str, Any]:
        """How long it may be."""
        return {"seconds": min(self.config.limit, SENT)}

    @property
    def lengths(self) -> Lengths:
        return Lengths("tenths of a second", (5, 10, 20, 40))

    def vectors(self, column: Column) -> np.ndarray:
        return np.asarray(counted_of(self.config.embed, column.lengths()))

    def bucket(self, raw: Any) -> int:
        return int(10 * recording_of(raw, self.rate).seconds)

    def adds(self) -> list[str]:
        return [f"augmentation ({self.config.augment})"] if self.perturbations else []

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Samples at the rate of the field, block by block."""
        return {"samples": [_blocks(recording_of(each, self.rate).at(self.rate).samples, self.hop) for each in raws]}

    def lengths_of(self, raws: Sequence[Any]) -> Sequence[int] | None:
        """Of recordings the blocks are known before they are brought to the field's rate; of files they are not."""
        if not all(isinstance(each, Recording) for each in raws):
            return None
        samples = [-(-len(each.samples) * self.rate // each.rate) for each in raws]
        return [-(-each // self.hop) for each in samples]

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """frames (B,T,bands), augmented where there is a draw, and their lengths."""
        each = [self._frames(samples, draw) for samples in taken["samples"]]
        lengths = torch.tensor([len(frames) for frames in each])
        frames = torch.zeros(len(each), int(lengths.max()) if len(each) else 0, self.config.bands)
        for row, own in zip(frames, each, strict=True):
            row[: len(own)] = own
        return Input({"frames": frames}, lengths)

    @staticmethod
    def opened(raw: Any) -> Any:
        return _read(raw)

    @staticmethod
    def digest(raw: Any) -> bytes:
        return hashlib.sha256(recording_of(raw, 1000).samples.tobytes()).digest()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        samples, lengths = column.array("samples"), column.lengths()
        seconds = lengths * self.hop / self.rate
        median, most, longest = np.quantile(seconds, [0.5, 0.95, 1.0], method="inverted_cdf")
        clipped = sum(int((np.abs(part.astype(np.int32)) >= FULL - 1).sum()) for part in _parts(samples))
        told = f", {clipped / max(samples.size, 1):.3%} of the samples clipped" if clipped else ""
        return (
            f"{len(lengths):,} sound{'' if len(lengths) == 1 else 's'}, {int(lengths.sum()):,} frames of "
            f"{1000 * self.hop / self.rate:g} ms at {self.rate:,} Hz, length {median:.2f} s (median) {most:.2f} (95 %) "
            f"{longest:.2f} (longest){told}"
        )

    def show(self, raw: Any) -> str:
        """The name of its file, or how long it is."""
        if isinstance(raw, str | Path):
            return str(raw)
        return f"a sound of {recording_of(raw, self.rate).seconds:.2f} seconds"

    def sample(self, raw: Any) -> str:
        """A wav file at the field's rate, as a data: URL."""
        return recording_of(raw, self.rate).at(self.rate).url()

    def received(self, value: Any) -> Recording:
        """Base64, or a data: URL; kept at the field's rate."""
        return recording_of(SOUND.received(value), most=SENT).at(self.rate)

    def bounds(self, raw: Any) -> np.ndarray:
        """From 0 to its seconds."""
        return np.array([0.0, recording_of(raw, self.rate).seconds])

    def side(self, x: Input) -> Side:
        """Stretches of time, each with its place on the spectrogram."""
        frames = x.values["frames"][0]
        count, seconds = int(counted_of(self.config.embed, len(frames))), len(frames) * self.hop / self.rate
        each = seconds / max(count, 1)
        names = [f"{(n + 0.5) * each:.2f}s" for n in range(count)]
        units = [Unit(n, name, n, False, (n / count, 0.0, 1 / count, 1.0)) for n, name in enumerate(names)]
        shown = {"picture": _drawn(frames), "grid": [1, count], "seconds": seconds}
        return Side(units, names, f"a sound of {seconds:.2f} seconds", "frames", shown)

    def _frames(self, blocks: np.ndarray, draw: np.random.Generator | None) -> Tensor:
        """The frames (T,bands) of one sound."""
        samples = torch.from_numpy(np.asarray(blocks, np.float32).reshape(-1) / FULL)
        if draw is not None:
            samples = self._perturbed(samples, "samples", draw)
            samples = F.pad(samples, (0, -len(samples) % self.hop))
        spectrum = log_mels(samples, self.rate, self.config.bands, self.window, self.hop)
        frames = NORMALISED[self.config.normalise](spectrum, self.measured).float()
        return frames if draw is None else self._perturbed(frames, "spectrum", draw)

    def _perturbed(self, values: Tensor, of: str, draw: np.random.Generator) -> Tensor:
        """Samples, or frames, with the augmentations that change such."""
        return reduce(
            lambda each, change: change(each, draw), (p.change for p in self.perturbations if p.of == of), values
        )


def _read(raw: Any) -> Any:
    """A sound of whatever rate, to see whether it can be read."""
    return recording_of(raw, 8000)


def _in_samples(config: SoundConfig, rate: int) -> tuple[int, int]:
    """Hop and window in samples; the window is even, so that a frame has a middle."""
    return max(1, round(config.hop * rate / 1000)), max(2, 2 * round(config.window * rate / 2000))


def _blocks(samples: np.ndarray, hop: int) -> np.ndarray:
    """Samples (n,) as (T,hop), filled up with silence."""
    return np.pad(samples, (0, -len(samples) % hop)).reshape(-1, hop)


def _spectrum(blocks: np.ndarray, rate: int, bands: int, window: int, hop: int) -> Tensor:
    """The log-mels of blocks as they lie on the disk."""
    return log_mels(torch.from_numpy(blocks.reshape(-1).astype(np.float32) / FULL), rate, bands, window, hop)


def _parts(samples: np.ndarray, rows: int = 1 << 16) -> Iterable[np.ndarray]:
    """A long array in slices, which take little memory."""
    return (samples[begin : begin + rows] for begin in range(0, len(samples), rows))


def _drawn(frames: Tensor) -> str:
    """A spectrogram as a picture, the low bands below, dark where it is loud; as a data: URL."""
    frames = (frames - frames.mean()) / frames.std(unbiased=False).clamp(min=LEAST)
    shares = ((frames - FAINTEST) / (LOUDEST - FAINTEST)).clamp(0, 1)
    tall = max(1, round(len(frames) / (2 * frames.shape[1])))  # pixels of a band, so that a long sound is no thin line
    pixels = ((1 - shares) * 255).round().byte().T.flip(0).repeat_interleave(tall, 0).unsqueeze(2).numpy()
    return f"data:image/png;base64,{base64.b64encode(png.encode(pixels)).decode()}"


def _of_sound(spectrum: Tensor, measured: Hearing) -> Tensor:
    """By the mean and the spread of all its frames and bands."""
    return (spectrum - spectrum.mean()) / spectrum.std(unbiased=False).clamp(min=LEAST)


def _of_bands(spectrum: Tensor, measured: Hearing) -> Tensor:
    """By those of each of its bands."""
    return (spectrum - spectrum.mean(0)) / spectrum.std(0, unbiased=False).clamp(min=LEAST)


def _of_training(spectrum: Tensor, measured: Hearing) -> Tensor:
    """By those of each band in the training sounds."""
    mean, spread = (torch.tensor(each, dtype=spectrum.dtype) for each in (measured.mean, measured.spread))
    return (spectrum - mean) / spread


NORMALISED = {"sound": _of_sound, "bands": _of_bands, "training": _of_training}
