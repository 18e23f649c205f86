"""Augmentation of pictures: what may change about one without changing what it shows.

A recipe writes it as a row of calls, `augment = "crop(2) flip erase(0.1) turn(10)"`. Each is a function of pictures
(B,C,H,W), normalised so that 0 is the mean colour, and of random numbers; it changes each picture of a batch in its own
way, and may do so in place. What comes in from outside a picture repeats its edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import spec
from saccade.attend.numbers import is_number
from saccade.error import SaccadeError

Augment = Callable[[Tensor, np.random.Generator], Tensor]

AREA = (0.02, 0.33)  # of a picture that `erase` takes, as its paper has it
SHAPE = (0.3, 1 / 0.3)  # height to width of what `erase` takes


def augments(text: str) -> list[Augment]:
    """The augmentations of a recipe in their order; refuses a name or an argument that means nothing."""
    return spec.sequence(text, AUGMENTS, "augmentation")


def moving(text: str) -> list[str]:
    """Those of a recipe's augmentations that move what is in a picture."""
    names = (spec.arguments(each, AUGMENTS, "augmentation")[0] for each in spec.calls(text, "augmentation"))
    return [each for each in names if each not in STILL]


def crop(n: int) -> Augment:
    """Moves a picture by up to n pixels, up or down and to the left or right: a picture with n more pixels of its edge
    on all sides, of which a part of the old size is cut out (Krizhevsky et al. 2012).
    """
    check(isinstance(n, int) and n >= 1, "crop(n) moves a picture by up to n pixels, 1 or more", n)

    def cropped(pixels: Tensor, draw: np.random.Generator) -> Tensor:
        count, channels, height, width = pixels.shape
        down, right = (torch.from_numpy(draw.integers(-n, n + 1, (count, 1))) for _ in range(2))
        rows = (torch.arange(height) + down).clamp_(0, height - 1)  # (B,H), which row of its picture comes there
        before = height * torch.arange(count * channels).view(count, channels, 1)  # rows of all planes before it
        shifted = pixels.reshape(-1, width).index_select(0, (before + rows[:, None]).flatten()).view(pixels.shape)
        columns = (torch.arange(width) + right).clamp_(0, width - 1)[:, None, None, :]
        return shifted.gather(3, columns.expand_as(pixels))

    return cropped


def flip(p: float = 0.5) -> Augment:
    """Left and right exchanged, with probability p."""
    check(is_number(p) and 0 <= p <= 1, "flip(p) has a probability from 0 to 1", p)

    def flipped(pixels: Tensor, draw: np.random.Generator) -> Tensor:
        return mirrored(pixels, draw.random(len(pixels)) < p, -1)

    return flipped


def mirrored(pixels: Tensor, chosen: np.ndarray, axis: int) -> Tensor:
    """The chosen pictures (B,) mirrored along an axis: -1, left and right; -2, above and below."""
    numbers = torch.from_numpy(np.flatnonzero(chosen))
    pixels[numbers] = pixels[numbers].flip(axis)
    return pixels


def erase(p: float) -> Augment:
    """With probability p, a rectangle of 2 to 33 % of the picture shows the mean colour (Zhong et al. 2020)."""
    check(is_number(p) and 0 <= p <= 1, "erase(p) has a probability from 0 to 1", p)

    def erased(pixels: Tensor, draw: np.random.Generator) -> Tensor:
        count, _, height, width = pixels.shape
        chosen = draw.random(count) < p
        area, shape = (
            draw.uniform(*AREA, count) * height * width,
            np.exp(draw.uniform(math.log(SHAPE[0]), math.log(SHAPE[1]), count)),
        )
        rows = _spans(np.sqrt(area * shape), draw.random(count), height)
        columns = _spans(np.sqrt(area / shape), draw.random(count), width)
        for number in np.flatnonzero(chosen).tolist():
            pixels[number][:, rows[number], columns[number]] = 0.0
        return pixels

    return erased


def turn(degrees: float) -> Augment:
    """Turned around its middle by up to so many degrees, either way; between pixels, interpolated."""
    check(is_number(degrees) and 0 < degrees <= 180, "turn(degrees) turns by up to so many, above 0 up to 180", degrees)

    def turned(pixels: Tensor, draw: np.random.Generator) -> Tensor:
        angles = torch.from_numpy(draw.uniform(-degrees, degrees, len(pixels))) * math.pi / 180
        cosine, sine = angles.cos(), angles.sin()
        return _moved(pixels, torch.stack([cosine, -sine, sine, cosine], 1).view(-1, 2, 2))

    return turned


def scale(low: float, high: float) -> Augment:
    """Larger or smaller around its middle, by a factor from low to high."""
    factors_of = factors_between(low, high)

    def scaled(pixels: Tensor, draw: np.random.Generator) -> Tensor:
        factors = torch.from_numpy(factors_of(len(pixels), draw))
        return _moved(pixels, torch.eye(2, dtype=factors.dtype) / factors[:, None, None])

    return scaled


def factors_between(low: float, high: float) -> Callable[[int, np.random.Generator], np.ndarray]:
    """What draws so many factors, whose logarithms are spread evenly; refuses limits that are none."""
    check(
        is_number(low) and is_number(high) and 0 < low <= high,
        "scale(low, high) makes a picture larger by a factor between both, above 0",
        (low, high),
    )
    return lambda count, draw: np.exp(draw.uniform(math.log(low), math.log(high), count))


def colour(strength: float) -> Augment:
    """x (1 + s a) + s b: contrast times up to 1 + strength, and each channel brighter or darker by up to so many
    spreads.
    """
    check(is_number(strength) and 0 < strength <= 1, "colour(strength) has a strength above 0 up to 1", strength)

    def coloured(pixels: Tensor, draw: np.random.Generator) -> Tensor:
        contrast = torch.from_numpy(draw.uniform(1 - strength, 1 + strength, (len(pixels), 1, 1, 1)))
        shift = torch.from_numpy(draw.uniform(-strength, strength, (*pixels.shape[:2], 1, 1)))
        return torch.addcmul(shift.to(pixels), pixels, contrast.to(pixels))

    return coloured


def _spans(sizes: np.ndarray, places: np.ndarray, length: int) -> list[slice]:
    """Spans of each size among `length` pixels. places: from 0 to 1, where each begins."""
    size = np.clip(np.rint(sizes), 1, length).astype(np.int64)
    begin = np.floor(places * (length - size + 1)).astype(np.int64)
    return [slice(first, last) for first, last in zip(begin.tolist(), (begin + size).tolist(), strict=True)]


def _moved(pixels: Tensor, back: Tensor) -> Tensor:
    """Pictures that show at each place what stood at `back` (B,2,2) times that place (x, y), from the middle, in
    pixels; bilinear.
    """
    height, width = pixels.shape[2:]
    # torch counts from -1 to 1 along each side, whichever is longer
    stretch = torch.tensor([[1.0, height / width], [width / height, 1.0]], dtype=back.dtype)
    return sampled(pixels, F.pad(back * stretch, (0, 1)), "border")


def sampled(pixels: Tensor, affine: Tensor, outside: str) -> Tensor:
    """Pictures that show at each place what stood at `affine` (B,2,3) times (x, y, 1), which go from -1 to 1 over both
    sides; bilinear. outside: what stands beyond the edge, the "border" again or "zeros".
    """
    grid = F.affine_grid(affine.to(pixels.dtype), list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels, grid, padding_mode=outside, align_corners=False)


def check(fits: bool, told: str, given: Any) -> None:
    """Refuses an argument that does not fit. told: what fits, in words."""
    if not fits:
        raise SaccadeError(f"{told}; got {given}")


AUGMENTS: dict[str, Callable[..., Augment]] = {
    "crop": crop,
    "flip": flip,
    "erase": erase,
    "turn": turn,
    "scale": scale,
    "colour": colour,
}
STILL = ("erase", "colour")  # what leaves everything where it is
