"""Augmentation of pictures together with the boxes in them: what moves a picture moves its boxes along.

A recipe writes it as a row of calls, `augment = "flip(0.5) quarter crop(0.7, 1.0) colour(0.2)"`. Each is a function of
pictures with their boxes and of random numbers; it changes each picture of a batch in its own way, and may change the
pixels in place. A box that is cut off at the edge becomes its part inside; where less than 40 % of it is left, it is
gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade import spec
from saccade.attend.numbers import is_number
from saccade.field import augment

LEFT = 0.4  # of a box's area that must be left in a part of a picture


class Boxed(NamedTuple):
    """pixels (B,C,H,W), normalised so that 0 is the mean colour; boxes (B,N,4): centre and size along x and y, as
    shares of both sides; real (B,N): which of them are there.
    """

    pixels: Tensor
    boxes: Tensor
    real: Tensor


Move = Callable[[Boxed, np.random.Generator], Boxed]


def moves(text: str) -> list[Move]:
    """The augmentations of a recipe in their order; refuses a name or an argument that means nothing."""
    return spec.sequence(text, MOVES, "augmentation of pictures with boxes")


def flip(p: float = 0.5) -> Move:
    """Left and right exchanged, with probability p."""
    augment.check(is_number(p) and 0 <= p <= 1, "flip(p) has a probability from 0 to 1", p)
    return lambda given, draw: _mirrored(given, draw.random(len(given.pixels)) < p, 0)


def tip(p: float = 0.5) -> Move:
    """Above and below exchanged, with probability p."""
    augment.check(is_number(p) and 0 <= p <= 1, "tip(p) has a probability from 0 to 1", p)
    return lambda given, draw: _mirrored(given, draw.random(len(given.pixels)) < p, 1)


def quarter() -> Move:
    """Turned by 0 to 3 quarters; a picture that is no square, by 0 or 2."""

    def turned(given: Boxed, draw: np.random.Generator) -> Boxed:
        count, _, height, width = given.pixels.shape
        quarters = draw.integers(4, size=count) if height == width else 2 * draw.integers(2, size=count)
        boxes = given.boxes.clone()
        for often in sorted({*quarters.tolist()} - {0}):
            chosen = torch.from_numpy(np.flatnonzero(quarters == often))
            given.pixels[chosen] = given.pixels[chosen].rot90(often, (2, 3))
            x, y, wide, high = given.boxes[chosen].unbind(-1)
            boxes[chosen] = torch.stack(TURNED[often](x, y, wide, high), -1)
        return given._replace(boxes=boxes)

    return turned


def crop(low: float, high: float) -> Move:
    """A part of a picture, as large as the whole again: of each side a share from low to high, at a random place."""
    augment.check(
        is_number(low) and is_number(high) and 0 < low <= high <= 1,
        "crop(low, high) takes a share of each side between both, above 0 up to 1",
        (low, high),
    )

    def cropped(given: Boxed, draw: np.random.Generator) -> Boxed:
        share, place = draw.uniform(low, high, (len(given.pixels), 2)), draw.random((len(given.pixels), 2))
        return _window(given, place * (1 - share), share, "border")

    return cropped


def scale(low: float, high: float) -> Move:
    """Larger or smaller around its middle, by a factor from low to high; around a smaller one is the mean colour, since
    an edge that is repeated would make things there larger than their boxes.
    """
    factors_of = augment.factors_between(low, high)

    def scaled(given: Boxed, draw: np.random.Generator) -> Boxed:
        share = np.repeat(1 / factors_of(len(given.pixels), draw)[:, None], 2, 1)
        return _window(given, (1 - share) / 2, share, "zeros")

    return scaled


def colour(strength: float) -> Move:
    """As of pictures alone: contrast, and each channel brighter or darker."""
    coloured = augment.colour(strength)
    return lambda given, draw: given._replace(pixels=coloured(given.pixels, draw))


def _mirrored(given: Boxed, chosen: np.ndarray, axis: int) -> Boxed:
    """The chosen pictures (B,) mirrored along x (0) or y (1)."""
    centre = given.boxes[..., axis]
    boxes = given.boxes.clone()
    boxes[..., axis] = torch.where(torch.from_numpy(chosen)[:, None], 1 - centre, centre)
    return given._replace(pixels=augment.mirrored(given.pixels, chosen, -1 - axis), boxes=boxes)


def _window(given: Boxed, begin: np.ndarray, share: np.ndarray, outside: str) -> Boxed:
    """What a window shows that begins at a share (B,2) of both sides and is so large (B,2), along x and y. outside: see
    `augment.sampled`.
    """
    first, size = (torch.from_numpy(each).to(given.boxes) for each in (begin, share))
    affine = torch.cat([torch.diag_embed(size), (2 * first + size - 1)[:, :, None]], 2)
    centre, extent = given.boxes.split(2, -1)
    ends = torch.stack([centre - extent / 2, centre + extent / 2])  # (2,B,N,2)
    low, high = ((ends - first[:, None]) / size[:, None]).clamp(0, 1)
    before = (extent / size[:, None]).prod(-1)
    left = (high - low).prod(-1) >= LEFT * before
    return Boxed(
        augment.sampled(given.pixels, affine, outside),
        torch.cat([(low + high) / 2, high - low], -1),
        given.real & left,
    )


# Where a box comes by so many quarters against the clock: (x, y, width, height) of it.
TURNED: dict[int, Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor, Tensor]]] = {
    1: lambda x, y, wide, high: (y, 1 - x, high, wide),
    2: lambda x, y, wide, high: (1 - x, 1 - y, wide, high),
    3: lambda x, y, wide, high: (1 - y, x, high, wide),
}
MOVES: dict[str, Callable[..., Move]] = {
    "flip": flip,
    "tip": tip,
    "quarter": quarter,
    "crop": crop,
    "scale": scale,
    "colour": colour,
}
