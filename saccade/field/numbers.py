"""Numbers as Y: one or several of them, from a pooled state, by least squares or least absolute errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field

from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, PooledTarget, Taken, Term
from saccade.field.result import Result
from saccade.field.tally import Tally, mean
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

NUMBERS = "numbers.json"
DIGITS = 6  # significant ones of a number that is printed


class NumbersConfig(Config):
    """The keys of numbers in a recipe."""

    kind: Literal["numbers"] = Field("numbers", description="numbers")
    loss: Literal["squared", "absolute"] = Field("squared", description="which errors are made small")


class Spread(NamedTuple):
    """Mean and spread of each number in the training rows: a model learns (y - mean) / spread."""

    mean: list[float]
    spread: list[float]


class Numbers(PooledTarget):
    """n numbers. A model learns them in units of their spread; results and metrics are in the numbers' own units."""

    kind: ClassVar[str] = "numbers"
    keys: ClassVar[type[NumbersConfig]] = NumbersConfig
    blends: ClassVar[bool] = True
    along: ClassVar[bool] = False
    several: ClassVar[bool] = True
    unit, noun = "numbers", "number"
    answer, main, known = "values", "mse", ("mse", "mae")

    def __init__(self, spread: Spread, config: NumbersConfig) -> None:
        self.config, self.count = config, len(spread.mean)
        self.mean, self.spread = np.array(spread.mean), np.array(spread.spread)
        self.head, self.main = f"numbers({self.count})", ERRORS[config.loss]

    @classmethod
    def stored(cls, column: str) -> str:
        return NUMBERS

    @staticmethod
    def made(config: NumbersConfig, raws: Iterable[Sequence[float]]) -> bytes:
        """Mean and spread of the training rows, as JSON."""
        rows = [tuple(each) for each in raws]
        if not rows:
            raise SaccadeError("there is no row with numbers to learn from")
        if len({len(each) for each in rows}) > 1:
            few, many = min(map(len, rows)), max(map(len, rows))
            raise SaccadeError(f"every row needs the same count of numbers; here some have {few}, some {many}")
        values = np.array(rows, np.float64)
        spread = values.std(0)
        least = 1e-9 * np.abs(values).max(0)  # what rounding leaves of numbers that are all the same
        flat = [str(n + 1) for n, each in enumerate(spread) if each <= least[n]]
        if flat:
            raise SaccadeError(f"number {', '.join(flat)} is the same in all training rows: there is nothing to learn")
        return json.dumps(Spread(values.mean(0).tolist(), spread.tolist())._asdict()).encode()

    @classmethod
    def load(cls, config: NumbersConfig, files: Mapping[str, bytes], column: str) -> Numbers:
        if NUMBERS not in files:
            raise SaccadeError(f"there is no {NUMBERS}: without it nobody knows the units of the numbers")
        return cls(Spread(**json.loads(files[NUMBERS])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"values": Array("<f8", (self.count,))}

    @property
    def published(self) -> dict[str, Any]:
        """What a Hugging Face config.json says of it."""
        return {"problem_type": "regression", "num_labels": self.count}

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """The numbers of each; refuses another count."""
        found = [tuple(map(float, each if isinstance(each, Sequence | np.ndarray) else [each])) for each in raws]
        for each in found:
            if len(each) != self.count:
                raise SaccadeError(f"{self.count} numbers were expected; got {len(each)}")
        return {"values": [np.array(each) for each in found]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Floats (B,n) in units of their spread."""
        return Input({"values": torch.from_numpy(((taken["values"] - self.mean) / self.spread).astype(np.float32))})

    def blended(self, given: Input, other: torch.Tensor, share: torch.Tensor) -> Input:
        """The numbers between both."""
        values = given.values["values"]
        return Input({"values": values[other].lerp_(values, share.view(-1, 1))})

    def counts(self, y: Input) -> dict[str, int]:
        return {self.config.loss: y.rows}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """The mean error of each example's numbers, summed over the examples."""
        said, wanted = model.say(states), y.values["values"]
        error = LOSSES[self.config.loss](said, wanted.to(said.dtype), reduction="none")
        return {self.config.loss: Term(error.mean(1).sum())}

    def losses(self, model: Model, states: States, y: Input) -> torch.Tensor:
        said, wanted = model.say(states), y.values["values"]
        each = LOSSES[self.config.loss](said, wanted.to(said.dtype), reduction="none").mean(1)
        return torch.stack([each, torch.ones_like(each)], 1)

    def results(self, scores: torch.Tensor) -> list[Result]:
        """The numbers of each row (B,n) in their own units."""
        values = scores.double().cpu().numpy() * self.spread + self.mean
        rows = [[float(f"{each:.{DIGITS}g}") for each in row] for row in values]
        return [Result(row[0] if self.count == 1 else row, joined(row), 0.0) for row in rows]

    def likely(self, scores: torch.Tensor, said: Result) -> torch.Tensor:
        """Minus the squared distance from the result's numbers, in units of the spread."""
        values = np.atleast_1d(said.value)
        wanted = torch.from_numpy((values - self.mean) / self.spread).to(scores)
        return -(scores - wanted).square().mean(-1)

    def matters(self, said: Result) -> str:
        return f"how near the numbers stay to {said.text} (minus the squared distance, in units of their spread)"

    @staticmethod
    def cell(text: str | Sequence[str], folder: Path) -> tuple[float, ...]:
        """Numbers of one cell, with spaces or semicolons between them, or of several cells."""
        cells = [text] if isinstance(text, str) else text
        return tuple(_number(part) for each in cells for part in each.replace(";", " ").split())

    @staticmethod
    def cells(raw: Any, folder: Path) -> list[str]:
        """A cell for each number, as short as it can be read back from."""
        return [repr(float(each)) for each in np.atleast_1d(raw)]

    @staticmethod
    def identity(raw: Any) -> bytes:
        return repr(raw).encode()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        pairs = zip(self.mean, self.spread, strict=True)
        count = f"{self.count} number{'' if self.count == 1 else 's'}"
        return f"{count}: {', '.join(f'{each:.4g} (spread {spread:.4g})' for each, spread in pairs)}"

    def show(self, raw: Any) -> str:
        return joined(np.atleast_1d(raw).tolist())

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """The errors of each; an input without an answer counts as if the mean had been predicted."""
        said = np.array([self.mean if each.value is None else np.atleast_1d(each.value) for each in results], float)
        return self._errors(said, np.array([np.atleast_1d(each) for each in raws], float))

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The mean of the training rows as the answer to everything."""
        wanted = np.array([np.atleast_1d(row[-1]) for row in rows], float)
        found = self._errors(np.broadcast_to(self.mean, wanted.shape), wanted)
        return {"what": f"always {joined(self.mean.tolist())}", **{name: each.value for name, each in found.items()}}

    def _errors(self, said: np.ndarray, wanted: np.ndarray) -> dict[str, Tally]:
        away = said - wanted
        return {"mse": mean((away**2).mean(1), -1), "mae": mean(np.abs(away).mean(1), -1)}


def joined(numbers: Sequence[float]) -> str:
    """Numbers in one line, with spaces between them."""
    return " ".join(f"{each:.{DIGITS}g}" for each in numbers)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SaccadeError(f"{text!r:.40} is no number") from None
    if not math.isfinite(value):
        raise SaccadeError(f"{text!r:.40} is no finite number")
    return value


ERRORS = {"squared": "mse", "absolute": "mae"}  # the metric that a loss makes small
LOSSES: dict[str, Callable[..., torch.Tensor]] = {"squared": F.mse_loss, "absolute": F.l1_loss}
