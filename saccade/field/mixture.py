"""A mixture of Gaussians as Y: the one that points are likeliest from, told at once (amortised clustering).

A model learns from points alone: the loss is minus their mean log-likelihood under the mixture that it tells. Where it
is known what they were drawn from, `evaluate` says how likely they are under that, which no model should pass by much.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.cloud import points_of
from saccade.field.field import Array, Column, Encoded, PooledTarget, Taken, Term
from saccade.field.gaussians import Gaussians, Sample, as_json, fitted, gaussians_of
from saccade.field.points import Points
from saccade.field.result import Result
from saccade.field.tally import Tally, mean
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

MIXTURE = "mixture.json"
LEAST = 1e-3  # spread of a Gaussian, in units of the spread of all points: a single point would be infinitely likely
DIGITS = 4  # significant ones of a number that is printed


class MixtureConfig(Config):
    """The keys of a mixture in a recipe."""

    kind: Literal["mixture"] = Field("mixture", description="mixture")
    count: int = Field(4, ge=1, description="Gaussians")


class Frame(NamedTuple):
    """Mean and spread of the training points along each axis: a model tells means as (m - mean) / spread."""

    mean: list[float]
    spread: list[float]


class Mixture(PooledTarget):
    """`count` Gaussians with a weight, a mean and a spread along each axis. A raw thing is a set of points, or a
    `Sample` that knows what its points were drawn from.
    """

    kind: ClassVar[str] = "mixture"
    keys: ClassVar[type[MixtureConfig]] = MixtureConfig
    along: ClassVar[bool] = False
    reads: ClassVar[tuple[str, ...]] = ("points",)
    unit, noun = "points to explain", "mixture"  # not "points": a batch's budget counts those of X alone
    answer, main, known = "values", "loglikelihood", ("loglikelihood",)

    def __init__(self, frame: Frame, config: MixtureConfig) -> None:
        self.config, self.axes = config, len(frame.mean)
        self.mean, self.spread = np.array(frame.mean), np.array(frame.spread)
        self.head = f"mixture({config.count}, {self.axes})"

    @classmethod
    def stored(cls, column: str) -> str:
        return MIXTURE

    @staticmethod
    def made(config: MixtureConfig, raws: Iterable[Any]) -> bytes:
        """Mean and spread of all training points."""
        rows = [each for each in (_sample(raw).points.astype(np.float64) for raw in raws) if len(each)]
        if not rows:
            raise SaccadeError("there is no point to learn from: all sets are empty, or in the validation split")
        if len({each.shape[1] for each in rows}) > 1:
            raise SaccadeError("all points have as many numbers, and here some have more than others")
        points = np.concatenate(rows)
        spread = points.std(0)
        spread[spread == 0] = 1.0
        return json.dumps(Frame(points.mean(0).tolist(), spread.tolist())._asdict()).encode()

    @classmethod
    def load(cls, config: MixtureConfig, files: Mapping[str, bytes], column: str) -> Mixture:
        if MIXTURE not in files:
            raise SaccadeError(f"there is no {MIXTURE}: without it nobody knows the units of the points")
        return cls(Frame(**json.loads(files[MIXTURE])), config)

    @property
    def model(self) -> Mapping[str, Any]:
        return {"pooler": False}

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"points": Array("<f4", (self.axes,), ragged=True)}

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """The points of each in units of the frame."""
        return {"points": [self._framed(_sample(each).points) for each in raws]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """points (B,N,D), zeros behind the end of a set."""
        rows = taken["points"]
        lengths = np.array([len(each) for each in rows], np.int64)
        found = np.zeros((len(rows), max(lengths, default=0), self.axes), np.float32)
        for row, own in zip(found, rows, strict=True):
            row[: len(own)] = own
        return Input({"points": torch.from_numpy(found)}, torch.from_numpy(lengths))

    def counts(self, y: Input) -> dict[str, int]:
        return {"surprise": y.rows}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Minus the mean log-likelihood of each set's points, summed over the sets."""
        return {"surprise": Term(self._surprise(model, states, y).sum())}

    def losses(self, model: Model, states: States, y: Input) -> Tensor:
        each = self._surprise(model, states, y)
        return torch.stack([each, torch.ones_like(each)], 1)

    def results(self, scores: Tensor) -> list[Result]:
        """The mixture of each row, the Gaussian with the largest weight first."""
        shares, means, spreads = (each.double().cpu().numpy() for each in _parts(scores))
        found = []
        for row in range(len(scores)):
            order = np.argsort(-shares[row])
            told = Gaussians(
                np.exp(shares[row][order]),
                means[row][order] * self.spread + self.mean,
                np.exp(spreads[row][order]) * self.spread,
            )
            found.append(Result(_rounded(told), _written(told), 0.0))
        return found

    def likely(self, scores: Tensor, said: Result) -> Tensor:
        """Minus the squared distances of the means from the result's, in units of the spread."""
        wanted = torch.from_numpy((np.array(said.value["means"]) - self.mean) / self.spread).to(scores)
        shares, means, _ = _parts(scores)
        order = shares.argsort(-1, descending=True).unsqueeze(-1).expand_as(means)
        return -(means.gather(1, order) - wanted).square().mean((1, 2))

    def matters(self, said: Result) -> str:
        return "how near the means stay (minus the squared distance, in units of the spread of all points)"

    @staticmethod
    def cell(text: Any, folder: Path) -> Sample:
        """Points as JSON, perhaps with the mixture that they were drawn from; or the path of a file of points."""
        held = Points.cell(text, folder)
        return _sample(held) if not text.lstrip().startswith("{") else _told(json.loads(text))

    @staticmethod
    def cells(raw: Any, folder: Path) -> list[str]:
        """A cell with the points as JSON, and what they were drawn from."""
        return [as_json(_sample(raw))]

    @staticmethod
    def identity(raw: Any) -> bytes:
        return Points.identity(_sample(raw).points)

    def report(self, column: Column, *, pieces: bool = False) -> str:
        count = f"{self.config.count} Gaussian{'' if self.config.count == 1 else 's'}"
        return f"mixtures of {count} in {self.axes} dimensions, {int(column.lengths().sum()):,} {self.unit}"

    def show(self, raw: Any) -> str:
        found = _sample(raw)
        return f"{len(found.points):,} points" if found.drawn_from is None else _written(found.drawn_from)

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """The mean log-likelihood of each set's points; without an answer, under one Gaussian for all sets."""
        usual = Gaussians(np.ones(1), self.mean[None], self.spread[None])
        told = (usual if each.value is None else gaussians_of(each.value, self.axes) for each in results)
        found = [each.loglikelihood(_sample(raw).points) for each, raw in zip(told, raws, strict=True)]
        return {"loglikelihood": mean(np.array(found))}

    def beside(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Any]:
        """The same under the mixtures that the points were drawn from, where all are known."""
        known = [(each.drawn_from, each.points) for each in map(_sample, raws) if each.drawn_from is not None]
        if not known or len(known) < len(raws):
            return {}
        true = float(np.mean([each.loglikelihood(points) for each, points in known]))
        return {"true": {"what": "the mixtures that the points were drawn from", "loglikelihood": true}}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """One Gaussian, fitted to each set by itself."""
        every = [_sample(row[-1]).points for row in rows]
        found = float(np.mean([fitted(each).loglikelihood(each) for each in every]))
        return {"what": "one Gaussian fitted to each set", "loglikelihood": found}

    def _framed(self, points: np.ndarray) -> np.ndarray:
        if not len(points):
            return np.empty((0, self.axes), np.float32)
        if points.shape[1] != self.axes:
            raise SaccadeError(f"a point has {self.axes} numbers here; this set's have {points.shape[1]}")
        return ((points - self.mean) / self.spread).astype(np.float32)

    def _surprise(self, model: Model, states: States, y: Input) -> Tensor:
        """Minus the mean log-likelihood of each set's points in their own units, (B,)."""
        shares, means, spreads = _parts(model.say(states))
        points = y.values["points"].to(means.dtype)
        each = _joint(points, shares, means, spreads).logsumexp(2)  # (B,N)
        lengths = y.lengths[0]
        real = torch.arange(points.shape[1], device=points.device) < lengths.unsqueeze(1)
        total = each.masked_fill(~real, 0.0).sum(1)
        return float(np.log(self.spread).sum()) - total / lengths.clamp(min=1)


def _parts(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The logarithms of the weights (B,K), the means (B,K,D), and the logarithms of the spreads (B,K,D)."""
    axes = (scores.shape[2] - 1) // 2
    scores = scores if scores.dtype == torch.float64 else scores.float()
    shares, means, spreads = scores.split((1, axes, axes), 2)
    return shares.squeeze(2).log_softmax(1), means, spreads.clamp(min=math.log(LEAST))


def _joint(points: Tensor, shares: Tensor, means: Tensor, spreads: Tensor) -> Tensor:
    """log w_k N(x_n; m_k, s_k), (B,N,K). The squares are multiplied out, so that nothing is as large as (B,N,K,D)."""
    inverse = (-2 * spreads).exp()  # (B,K,D)
    squares = points.square() @ inverse.mT - 2 * points @ (means * inverse).mT
    squares = squares + (means.square() * inverse).sum(2).unsqueeze(1)
    constant = shares - spreads.sum(2) - means.shape[2] * math.log(2 * math.pi) / 2
    return constant.unsqueeze(1) - squares / 2


def _sample(raw: Any) -> Sample:
    """A raw thing as a sample."""
    if isinstance(raw, Sample):
        return raw
    return _told(raw) if isinstance(raw, Mapping) and "weights" in raw else Sample(points_of(raw))


def _told(table: Mapping[str, Any]) -> Sample:
    """A sample from a table of its points and, where they are known, weights, means and spreads."""
    points = points_of({"points": table.get("points", [])})
    return Sample(points, gaussians_of(table, points.shape[1]) if "weights" in table else None)


def _rounded(told: Gaussians) -> dict[str, Any]:
    """A mixture as plain numbers."""
    return {
        name: np.vectorize(lambda each: float(f"{each:.6g}"))(values).tolist()
        for name, values in told._asdict().items()
    }


def _written(told: Gaussians) -> str:
    """A mixture in one line: of each Gaussian its weight, mean and spread."""
    rows = zip(told.weights, told.means, told.spreads, strict=True)
    return "; ".join(f"{share:.3f} at {_joined(mean)} (spread {_joined(spread)})" for share, mean, spread in rows)


def _joined(values: np.ndarray) -> str:
    return " ".join(f"{each:.{DIGITS}g}" for each in values)
