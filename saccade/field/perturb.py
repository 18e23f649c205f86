"""Augmentation of sounds: what may change about one without changing what is said.

A recipe writes it as a row of calls, `augment = "speed(0.9, 1.1) noise(10, 30) mask_time(10) mask_frequency(8)"`. Some
change the samples (n,) before there is a spectrogram, others the spectrogram (T,bands), whose mean is 0. Each draws for
one sound after the other from the random numbers of its batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade import spec
from saccade.error import SaccadeError

EVEN = 16  # samples that a new length is a multiple of: Fourier transforms of such lengths are fast


class Perturbation(NamedTuple):
    """of: what it changes; change: of that, and of random numbers."""

    of: Literal["samples", "spectrum"]
    change: Callable[[Tensor, np.random.Generator], Tensor]


def perturbations(text: str) -> list[Perturbation]:
    """The augmentations of a recipe in their order; refuses a name or an argument that means nothing."""
    found: list[Perturbation] = spec.sequence(text, PERTURBATIONS, "augmentation")
    return found


def speed(low: float, high: float) -> Perturbation:
    """Faster or slower by a factor from low to high, and as much higher or lower (Ko et al. 2015)."""
    _check(
        _is_number(low) and _is_number(high) and 0.5 <= low <= high <= 2,
        "speed(low, high) plays a sound faster by a factor between both, from 0.5 to 2",
        (low, high),
    )

    def sped(samples: Tensor, draw: np.random.Generator) -> Tensor:
        count = EVEN * max(1, round(len(samples) / draw.uniform(low, high) / EVEN))
        return torch.fft.irfft(torch.fft.rfft(samples), n=count) * (count / len(samples))  # all of the band that fits

    return Perturbation("samples", sped)


def loud(low: float, high: float) -> Perturbation:
    """Louder by low to high decibels."""
    _check(_is_number(low) and _is_number(high) and -60 <= low <= high <= 60, "loud(low, high) is in dB", (low, high))

    def changed(samples: Tensor, draw: np.random.Generator) -> Tensor:
        return samples * 10 ** (draw.uniform(low, high) / 20)

    return Perturbation("samples", changed)


def noise(low: float, high: float) -> Perturbation:
    """White noise, low to high decibels below the sound."""
    _check(
        _is_number(low) and _is_number(high) and -20 <= low <= high <= 100,
        "noise(low, high) lies so many dB below the sound, from -20 to 100",
        (low, high),
    )

    def noisy(samples: Tensor, draw: np.random.Generator) -> Tensor:
        share = 10 ** (-draw.uniform(low, high) / 20)
        level = share * float(samples.square().mean().sqrt())
        return samples + level * torch.from_numpy(draw.standard_normal(len(samples))).to(samples)

    return Perturbation("samples", noisy)


def mask_time(most: int, times: int = 1) -> Perturbation:
    """So many times, up to `most` frames in a row, and a fifth of all at most, show the mean (Park et al. 2019)."""
    _check(_is_count(most) and _is_count(times), "mask_time(frames, times) hides up to so many frames", (most, times))

    def masked(spectrum: Tensor, draw: np.random.Generator) -> Tensor:
        for begin, end in _spans(draw, times, min(most, len(spectrum) // 5), len(spectrum)):
            spectrum[begin:end] = 0.0
        return spectrum

    return Perturbation("spectrum", masked)


def mask_frequency(most: int, times: int = 1) -> Perturbation:
    """So many times, up to `most` bands side by side show the mean (Park et al. 2019)."""
    _check(
        _is_count(most) and _is_count(times), "mask_frequency(bands, times) hides up to so many bands", (most, times)
    )

    def masked(spectrum: Tensor, draw: np.random.Generator) -> Tensor:
        for begin, end in _spans(draw, times, min(most, spectrum.shape[1]), spectrum.shape[1]):
            spectrum[:, begin:end] = 0.0
        return spectrum

    return Perturbation("spectrum", masked)


def _spans(draw: np.random.Generator, times: int, most: int, length: int) -> list[tuple[int, int]]:
    """So many spans of 0 to `most` among `length`."""
    sizes = draw.integers(0, most + 1, times)
    begins = np.floor(draw.random(times) * (length - sizes + 1)).astype(np.int64)
    return list(zip(begins.tolist(), (begins + sizes).tolist(), strict=True))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check(fits: bool, told: str, given: Any) -> None:
    if not fits:
        raise SaccadeError(f"{told}; got {given}")


PERTURBATIONS: dict[str, Callable[..., Perturbation]] = {
    "speed": speed,
    "loud": loud,
    "noise": noise,
    "mask_time": mask_time,
    "mask_frequency": mask_frequency,
}
