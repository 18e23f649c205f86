"""Augmentation of points: what may change about where they are without changing what they show.

A recipe writes it as a row of calls, `augment = "turn(10) scale(0.9, 1.1) shift(0.05)"`. Each is a function of
coordinates (B,N,D), which lie about 0.5, and of random numbers; all points of a set move alike, but for `jitter`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade import spec
from saccade.attend.numbers import is_number
from saccade.error import SaccadeError

Move = Callable[[Tensor, np.random.Generator], Tensor]
MIDDLE = 0.5


def moves(text: str, table: Mapping[str, Callable[..., Move]] | None = None) -> list[Move]:
    """The augmentations of a recipe in their order; refuses a name or an argument that means nothing. table: those that
    may be (`JOINT`); without it, all.
    """
    return spec.sequence(text, MOVES if table is None else table, "augmentation of points")


def turn(degrees: float) -> Move:
    """Turned around the middle by up to so many degrees, either way, in the plane of the first two axes."""
    _check(
        is_number(degrees) and 0 < degrees <= 180, "turn(degrees) turns by up to so many, above 0 up to 180", degrees
    )

    def turned(places: Tensor, draw: np.random.Generator) -> Tensor:
        angles = draw.uniform(-degrees, degrees, len(places)) * math.pi / 180
        matrix = _unit(places)
        matrix[:, 0, 0] = matrix[:, 1, 1] = np.cos(angles)
        matrix[:, 0, 1], matrix[:, 1, 0] = -np.sin(angles), np.sin(angles)
        return _mapped(places, matrix)

    return turned


def mirror(share: float) -> Move:
    """Mirrored across the first axis: that share of all sets."""
    _check(is_number(share) and 0 < share <= 1, "mirror(share) mirrors that share of all, above 0 up to 1", share)

    def mirrored(places: Tensor, draw: np.random.Generator) -> Tensor:
        matrix = _unit(places)
        matrix[:, 1, 1] = np.where(draw.random(len(places)) < share, -1.0, 1.0)
        return _mapped(places, matrix)

    return mirrored


def scale(low: float, high: float) -> Move:
    """Larger or smaller around the middle, along each axis by a factor of its own from low to high."""
    _check(
        is_number(low) and is_number(high) and 0 < low <= high,
        "scale(low, high) makes a set larger by factors between both, above 0",
        (low, high),
    )

    def scaled(places: Tensor, draw: np.random.Generator) -> Tensor:
        factors = np.exp(draw.uniform(math.log(low), math.log(high), (len(places), places.shape[2])))
        return _mapped(places, _unit(places) * factors[:, None])

    return scaled


def shear(most: float) -> Move:
    """Slanted: the first coordinate grows with the second, by up to so much, either way."""
    _check(is_number(most) and most > 0, "shear(most) slants by up to so much, above 0", most)

    def sheared(places: Tensor, draw: np.random.Generator) -> Tensor:
        matrix = _unit(places)
        matrix[:, 0, 1] = draw.uniform(-most, most, len(places))
        return _mapped(places, matrix)

    return sheared


def shift(most: float) -> Move:
    """Moved along each axis by up to so much, either way, where the whole space is 1."""
    _check(is_number(most) and most > 0, "shift(most) moves by up to so much, above 0", most)

    def shifted(places: Tensor, draw: np.random.Generator) -> Tensor:
        by = draw.uniform(-most, most, (len(places), 1, places.shape[2]))
        return places + torch.from_numpy(by).to(places)

    return shifted


def jitter(spread: float) -> Move:
    """Each point moved by itself, by normal noise of this spread."""
    _check(is_number(spread) and spread > 0, "jitter(spread) moves each point by itself; its spread is above 0", spread)

    def jittered(places: Tensor, draw: np.random.Generator) -> Tensor:
        return places + torch.from_numpy(draw.normal(0, spread, places.shape)).to(places)

    return jittered


def _unit(places: Tensor) -> np.ndarray:
    """The matrix that changes nothing, for each set."""
    return np.broadcast_to(np.eye(places.shape[2]), (len(places), places.shape[2], places.shape[2])).copy()


def _mapped(places: Tensor, matrix: np.ndarray) -> Tensor:
    """Each set by its matrix (B,D,D), around the middle."""
    return (places - MIDDLE) @ torch.from_numpy(matrix).to(places).mT + MIDDLE


def _check(fits: bool, told: str, given: Any) -> None:
    if not fits:
        raise SaccadeError(f"{told}; got {given!r}")


MOVES: dict[str, Callable[..., Move]] = {
    "turn": turn,
    "mirror": mirror,
    "scale": scale,
    "shear": shear,
    "shift": shift,
    "jitter": jitter,
}
JOINT = {name: MOVES[name] for name in ("turn", "mirror", "scale", "shear")}  # that move what belongs together alike
