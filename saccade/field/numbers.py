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
from saccade.field.field import Array, Column, Encoded, Pooled, Taken, Term
from saccade.field.result import Result
from saccade.field.tally import Tally, mean
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

NUMBERS = "numbers.json"
DIGITS = 6  # of a number that is told


class NumbersConfig(Config):
    """The keys of numbers in a recipe."""

    kind: Literal["numbers"] = Field("numbers", description="numbers")
    loss: Literal["squared", "absolute"] = Field("squared", description="which errors are made small")


class Spread(NamedTuple):
    """Mean and spread of each number in the training rows: a model learns (y - mean) / spread."""

    mean: list[float]
    spread: list[float]


class Numbers(Pooled):
    """n numbers, told in their own units; learned and compared in units of their spread."""

    kind: ClassVar[str] = "numbers"
    keys: ClassVar[type[NumbersConfig]] = NumbersConfig
    along: ClassVar[bool] = False
    several: ClassVar[bool] = True
    unit, noun = "numbers", "number"
    answer, main, known = "values", "mse", ("mse", "mae")

    def __init__(self, spread: Spread, config: NumbersConfig) -> None:
        self.config, self.count = config, len(spread.mean)
        self.mean, self.spread = np.array(spread.mean), np.array(spread.spread)
        self.head = f"numbers({self.count})"

    @classmethod
    def stored(cls, column: str) -> str:
        """Mean and spread as JSON."""
        return NUMBERS

    @staticmethod
    def made(config: NumbersConfig, raws: Iterable[Sequence[float]]) -> bytes:
        """Mean and spread of the training rows."""
        rows = [tuple(each) for each in raws]
        if not rows:
            raise SaccadeError("there is no row with numbers to learn from")
        if len({len(each) for each in rows}) > 1:
            few, many = min(map(len, rows)), max(map(len, rows))
            raise SaccadeError(f"every row has as many numbers; here some have {few}, some {many}")
        values = np.array(rows, np.float64)
        spread = values.std(0)
        least = 1e-9 * np.abs(values).max(0)  # what rounding leaves of numbers that are all the same
        flat = [str(n + 1) for n, each in enumerate(spread) if each <= least[n]]
        if flat:
            raise SaccadeError(f"number {', '.join(flat)} is the same in all training rows: there is nothing to learn")
        return json.dumps(Spread(values.mean(0).tolist(), spread.tolist())._asdict()).encode()

    @classmethod
    def load(cls, config: NumbersConfig, files: Mapping[str, bytes], column: str) -> Numbers:
        """The field with what a run's files say of its numbers."""
        if NUMBERS not in files:
            raise SaccadeError(f"there is no {NUMBERS}: without it nobody knows the units of the numbers")
        return cls(Spread(**json.loads(files[NUMBERS])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """As they are told."""
        return {"values": Array("<f8", (self.count,))}

    @property
    def published(self) -> dict[str, Any]:
        """What config.json at Hugging Face says of it."""
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

    def counts(self, y: Input) -> dict[str, int]:
        """One an example."""
        return {self.config.loss: y.rows}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Summed over the examples, the mean over the numbers of each."""
        said, wanted = model.say(states), y.values["values"]
        error = LOSSES[self.config.loss](said, wanted.to(said.dtype), reduction="none")
        return {self.config.loss: Term(error.mean(1).sum())}

    def results(self, scores: torch.Tensor) -> list[Result]:
        """The numbers of each row (B,n) in their own units."""
        values = scores.double().cpu().numpy() * self.spread + self.mean
        rows = [[float(f"{each:.{DIGITS}g}") for each in row] for row in values]
        return [Result(row[0] if self.count == 1 else row, told(row), 0.0) for row in rows]

    def likely(self, scores: torch.Tensor, said: Result) -> torch.Tensor:
        """Minus the squared distance from what was said, in units of the spread."""
        values = np.atleast_1d(said.value)
        wanted = torch.from_numpy((values - self.mean) / self.spread).to(scores)
        return -(scores - wanted).square().mean(-1)

    def matters(self, said: Result) -> str:
        """What an ablation measures."""
        return f"how near the numbers stay to {said.text} (minus the squared distance, in units of their spread)"

    @staticmethod
    def cell(text: str | Sequence[str], folder: Path) -> tuple[float, ...]:
        """Numbers of one cell, with spaces or semicolons between them, or of several cells."""
        cells = text.replace(";", " ").split() if isinstance(text, str) else [each.strip() for each in text]
        cells = [part for each in cells for part in each.replace(";", " ").split()]
        return tuple(_number(each) for each in cells)

    @staticmethod
    def identity(raw: Any) -> bytes:
        """The numbers."""
        return repr(raw).encode()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """Mean and spread of each."""
        pairs = zip(self.mean, self.spread, strict=True)
        count = f"{self.count} number{'' if self.count == 1 else 's'}"
        return f"{count}: {', '.join(f'{each:.4g} (spread {spread:.4g})' for each, spread in pairs)}"

    def show(self, raw: Any) -> str:
        """The numbers."""
        return told(np.atleast_1d(raw).tolist())

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """The errors of each; an input without an answer counts as if the mean had been said."""
        said = np.array([self.mean if each.value is None else np.atleast_1d(each.value) for each in results], float)
        return self._errors(said, np.array([np.atleast_1d(each) for each in raws], float))

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The mean of the training rows as the answer to everything."""
        wanted = np.array([np.atleast_1d(row[-1]) for row in rows], float)
        found = self._errors(np.broadcast_to(self.mean, wanted.shape), wanted)
        return {"what": f"always {told(self.mean.tolist())}", **{name: each.value for name, each in found.items()}}

    def _errors(self, said: np.ndarray, wanted: np.ndarray) -> dict[str, Tally]:
        away = said - wanted
        return {"mse": mean((away**2).mean(1), -1), "mae": mean(np.abs(away).mean(1), -1)}


def told(numbers: Sequence[float]) -> str:
    """Numbers in a line."""
    return " ".join(f"{each:.{DIGITS}g}" for each in numbers)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SaccadeError(f"{text!r:.40} is no number") from None
    if not math.isfinite(value):
        raise SaccadeError(f"{text!r:.40} is no finite number")
    return value


LOSSES: dict[str, Callable[..., torch.Tensor]] = {"squared": F.mse_loss, "absolute": F.l1_loss}
