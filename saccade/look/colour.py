"""Colours of numbers: a scale from nothing to much, and one from minus to plus.

Both are drawn as paths through OKLab (Ottosson 2020), a space in which equal steps look equal, so that lightness alone
tells the order: the picture reads the same in grey, and without telling red from green.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from saccade.error import SaccadeError, nearest

STEPS = 255  # an odd number: the middle of a scale is a colour of its own
NOTHING = (128, 128, 128)  # a cell that is no number

# Stations of a path: lightness, and the two axes green-red and blue-yellow.
MUCH = (
    (0.20, 0.010, -0.075),
    (0.35, 0.040, -0.125),
    (0.50, 0.090, -0.085),
    (0.65, 0.110, 0.025),
    (0.80, 0.050, 0.115),
    (0.95, -0.030, 0.125),
)
SIGNED = (
    (0.36, -0.020, -0.140),
    (0.60, -0.040, -0.115),
    (0.82, -0.025, -0.050),
    (0.965, 0.000, 0.000),
    (0.82, 0.055, 0.075),
    (0.62, 0.120, 0.100),
    (0.38, 0.110, 0.060),
)


def sequential(values: Tensor) -> Tensor:
    """The colours (..., 3) of values from 0 to 1, as bytes: dark blue to light yellow. What is no number is grey."""
    return _look_up(values, "sequential")


def diverging(values: Tensor) -> Tensor:
    """The colours (..., 3) of values from -1 to 1, as bytes: blue, through almost white at 0, to rust."""
    return _look_up((values + 1) / 2, "diverging")


def scale_of(name: str) -> Tensor:
    """All colours of a scale, (255, 3) bytes, from its least to its largest value."""
    if name not in PATHS:
        raise SaccadeError(f"no colours are called {name!r}; {nearest(name, PATHS)}")
    return _scale(name)


def to_lab(colours: Tensor) -> Tensor:
    """OKLab (..., 3) of sRGB bytes (..., 3)."""
    share = colours.double() / 255
    linear = torch.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return (linear @ torch.linalg.inv(CONES_TO_LINEAR).T).clamp(min=0) ** (1 / 3) @ torch.linalg.inv(LAB_TO_CONES).T


def from_lab(lab: Tensor) -> Tensor:
    """sRGB (..., 3) of OKLab (..., 3); inside 0 to 1 where a screen can show the colour."""
    linear = (lab.double() @ LAB_TO_CONES.T) ** 3 @ CONES_TO_LINEAR.T
    curved = 1.055 * linear.clamp(min=0.0031308) ** (1 / 2.4) - 0.055
    return torch.where(linear <= 0.0031308, 12.92 * linear, curved)


def _look_up(values: Tensor, name: str) -> Tensor:
    known = values.isfinite()
    steps = (values.nan_to_num(0.0).clamp(0, 1) * (STEPS - 1)).round().long()
    colours = _scale(name)[steps]
    return colours if bool(known.all()) else torch.where(known.unsqueeze(-1), colours, torch.tensor(NOTHING).byte())


@cache
def _scale(name: str) -> Tensor:
    stations = torch.tensor(PATHS[name], dtype=torch.float64)
    along = torch.linspace(0, len(stations) - 1, STEPS, dtype=torch.float64)
    return (from_lab(_spline(stations, along)).clamp(0, 1) * 255).round().byte()


def _spline(stations: Tensor, along: Tensor) -> Tensor:
    """A smooth curve through stations (N, 3) at places `along` from 0 to N - 1 (Catmull and Rom 1974)."""
    ends = torch.cat((2 * stations[:1] - stations[1:2], stations, 2 * stations[-1:] - stations[-2:-1]))
    left = along.floor().long().clamp(max=len(stations) - 2)
    t = (along - left).unsqueeze(-1)
    a, b, c, d = (ends[left + each] for each in range(4))
    return b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))


# Ottosson's two matrices: from OKLab to the cube roots of what the cones see, and from cones to linear sRGB.
LAB_TO_CONES = torch.tensor(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ],
    dtype=torch.float64,
)
CONES_TO_LINEAR = torch.tensor(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ],
    dtype=torch.float64,
)
PATHS = {"sequential": MUCH, "diverging": SIGNED}
