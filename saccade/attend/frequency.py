"""How fast the pairs of a rotary position turn, and slower, for sequences longer than those a model was trained on.

Pair n of `width` numbers turns by w_n = base^(-2n / width) at each position. With s the factor, L the length before:

interpolate  w / s: position p stands where p / s stood                                            Chen et al. 2023
ntk          base s^(width / (width - 2)) for base: the slowest pair as above, the fastest as before    bloc97 2023
yarn         w for pairs that turn often within L, w / s for those that hardly turn, a ramp over n between them;
             q and k are longer by 0.1 ln s + 1, which sharpens softmax                             Peng et al. 2023
llama3       the same with a ramp over the number of turns, and nothing longer                 Grattafiori et al. 2024

None of them depends on the sequence at hand, so that keys in a cache stay right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from saccade.attend.numbers import is_number
from saccade.error import SaccadeError


class Scaling(Protocol):
    """A way of turning more slowly. `gain`: by how much q and k become longer."""

    @property
    def gain(self) -> float: ...

    def frequencies(self, width: int, base: float, device: torch.device | None = None) -> Tensor: ...


def frequencies(width: int, base: float, device: torch.device | None = None) -> Tensor:
    """w_n = base^(-2n / width), (width / 2,) in float64."""
    return base ** (-torch.arange(0, width, 2, device=device, dtype=torch.float64) / width)


@dataclass(frozen=True)
class interpolate:
    """w / factor."""

    factor: float
    gain: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check(self)

    def frequencies(self, width: int, base: float, device: torch.device | None = None) -> Tensor:
        return frequencies(width, base, device) / self.factor


@dataclass(frozen=True)
class ntk:
    """The frequencies of a larger base."""

    factor: float
    gain: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check(self)

    def frequencies(self, width: int, base: float, device: torch.device | None = None) -> Tensor:
        return frequencies(width, self.base(width, base), device)

    def base(self, width: int, base: float) -> float:
        """base factor^(width / (width - 2))."""
        if width < 4:
            raise SaccadeError(f"rotary: ntk needs two pairs at least, and heads of width {width} have fewer")
        return float(base * self.factor ** (width / (width - 2)))


@dataclass(frozen=True)
class yarn:
    """Pairs that turn more than `fast` times within `length` keep their speed, those that turn less than `slow` times
    are interpolated. `attention` is the gain, where it is not the paper's.
    """

    factor: float
    length: int
    fast: float = 32.0
    slow: float = 1.0
    attention: float | None = None

    def __post_init__(self) -> None:
        _check(self)
        if not self.slow < self.fast:
            raise SaccadeError(f"rotary: yarn's fast is more than its slow; got {self.fast!r} and {self.slow!r}")

    @property
    def gain(self) -> float:
        return 0.1 * math.log(self.factor) + 1 if self.attention is None else self.attention

    def frequencies(self, width: int, base: float, device: torch.device | None = None) -> Tensor:
        def pair(turns: float) -> float:
            """The pair, a fraction of one too, that turns so often within `length`."""
            return width * math.log(self.length / (turns * 2 * math.pi)) / (2 * math.log(base))

        first, last = max(math.floor(pair(self.fast)), 0), min(math.ceil(pair(self.slow)), width - 1)
        steps = torch.arange(width // 2, device=device, dtype=torch.float64)
        slowed = ((steps - first) / max(last - first, 0.001)).clamp(0, 1)  # 0.001: a ramp has some width
        return frequencies(width, base, device) * (1 - slowed + slowed / self.factor)


@dataclass(frozen=True)
class llama3:
    """Pairs that turn `high` times or more within `length` keep their speed, those that turn `low` times or less are
    interpolated.
    """

    factor: float
    length: int
    low: float = 1.0
    high: float = 4.0
    gain: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check(self)
        if not self.low < self.high:
            raise SaccadeError(f"rotary: llama3's high is more than its low; got {self.high!r} and {self.low!r}")

    def frequencies(self, width: int, base: float, device: torch.device | None = None) -> Tensor:
        before = frequencies(width, base, device)
        turns = before * self.length / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return before * (kept + (1 - kept) / self.factor)


def as_scaling(asked: dict[str, Any]) -> Scaling | None:
    """The one scaling that is asked for, by its numbers: {"ntk": 4, "yarn": None} or {"yarn": (4, 2048)}."""
    given = {name: value for name, value in asked.items() if value is not None}
    if len(given) > 1:
        raise SaccadeError(f"rotary: {' and '.join(given)} both change the frequencies: choose one")
    for name, value in given.items():
        numbers = value if isinstance(value, tuple | list) else (value,)
        try:
            made: Scaling = SCALINGS[name](*numbers)
        except TypeError:
            raise SaccadeError(f"rotary: {name} is written {WRITTEN[name]}; got {value!r}") from None
        return made
    return None


def _check(scaling: Any) -> None:
    """Refuses what is no positive number, a factor below 1 and a length that is not whole."""
    name = type(scaling).__name__
    for field, value in vars(scaling).items():
        if value is not None and not (is_number(value) and 0 < value < 1e300):
            raise SaccadeError(f"rotary: {name} is written {WRITTEN[name]}, in positive numbers; got {field} {value!r}")
    if scaling.factor < 1:
        raise SaccadeError(f"rotary: {name} slows down by a factor from 1; got {scaling.factor!r}")
    if not isinstance(getattr(scaling, "length", 1), int):
        raise SaccadeError(f"rotary: {name}'s length is a whole number of positions; got {scaling.length!r}")


SCALINGS: dict[str, Any] = {"interpolate": interpolate, "ntk": ntk, "yarn": yarn, "llama3": llama3}
WRITTEN = {
    "interpolate": "interpolate=factor",
    "ntk": "ntk=factor",
    "yarn": "yarn=(factor, length[, fast, slow, gain])",
    "llama3": "llama3=(factor, length[, low, high])",
}
