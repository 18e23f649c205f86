"""A number for each pair of places of X as Y, such as the distance of two points; pairs may be without one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field

from saccade.config import Config, ModelConfig
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, PlacesTarget, Taken, Term, UnreadableError
from saccade.field.numbers import DIGITS
from saccade.field.result import Result
from saccade.field.tally import Counts, Tally, ratio
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

AS_JSON = "[[null, 1.5], [1.5, null]]"
FEW = 8  # places whose numbers are all written out


class PairsConfig(Config):
    """The keys of numbers of pairs in a recipe."""

    kind: Literal["pairs"] = Field("pairs", description="pairs")
    symmetric: bool = Field(True, description="whether the number of two places is the same both ways")


class PairNumbers(PlacesTarget):
    """A table of numbers (N,N), NaN where one is not known: such pairs are neither learned nor measured. A model learns
    the numbers in units of their spread; results and metrics are in the numbers' own units.
    """

    kind: ClassVar[str] = "pairs"
    keys: ClassVar[type[PairsConfig]] = PairsConfig
    along: ClassVar[bool] = False
    unit, noun = "pairs", "table of numbers"
    main, known = "rmse", ("rmse", "mae")

    def __init__(self, mean: float, spread: float, config: PairsConfig) -> None:
        self.mean, self.spread, self.config = mean, spread, config
        self.head = f"pairs(1, {config.symmetric})"

    @staticmethod
    def made(config: PairsConfig, raws: Iterable[Any]) -> bytes:
        """The mean and the spread of all known numbers, as JSON."""
        total, squares, count = 0.0, 0.0, 0
        for raw in raws:
            table = table_of(raw)
            known = table[np.isfinite(table)].astype(np.float64)
            total, squares, count = total + known.sum(), squares + (known**2).sum(), count + known.size
        if not count:
            raise SaccadeError("there is no pair with a number to learn from")
        mean = float(total / count)
        spread = math.sqrt(max(squares / count - mean**2, 0))
        if spread <= 1e-9 * abs(mean):
            raise SaccadeError("all pairs of the training rows have the same number: there is nothing to learn")
        return json.dumps({"mean": mean, "spread": spread}).encode()

    @classmethod
    def load(cls, config: PairsConfig, files: Mapping[str, bytes], column: str) -> PairNumbers:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows the units of the numbers")
        return cls(**json.loads(files[name]), config=config)

    @property
    def model(self) -> Mapping[str, Any]:
        return {"pooler": False}

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The rows of a table one after another."""
        return {"values": Array("<f4", (), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays are the numbers."""
        return {}

    def fits(self, config: ModelConfig) -> None:
        if not config.pair:
            raise SaccadeError("numbers of pairs are read from vectors of pairs: give the model some (model.pair = 32)")

    def encode(self, raws: Sequence[Any]) -> Encoded:
        return {"values": [table_of(each).ravel() for each in raws]}

    def sizes(self, column: Column) -> np.ndarray:
        """The places of each table."""
        return np.sqrt(column.lengths()).round().astype(np.int64)

    def fault(self, size: int, limit: int | None) -> str | None:
        """By the places of a table, of which the pairs are the square."""
        if not size:
            return "no pairs"
        return f"pairs of more than {limit} places" if limit is not None and math.isqrt(size) > limit else None

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """values (B,N,N) in units of their spread, 0 where a number is not known, and which are known."""
        sides = [math.isqrt(len(each)) for each in taken["values"]]
        found = np.full((len(sides), *[max(sides, default=0)] * 2), np.nan, np.float32)
        for table, own, side in zip(found, taken["values"], sides, strict=True):
            table[:side, :side] = own.reshape(side, side)
        known = np.isfinite(found)
        values = np.where(known, (found - self.mean) / self.spread, 0).astype(np.float32)
        return Input({"values": torch.from_numpy(values), "known": torch.from_numpy(known)}, torch.tensor(sides))

    def counts(self, y: Input) -> dict[str, int]:
        return {"squared": int(y.values["known"].sum())}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Squared errors, summed over the known pairs."""
        return {"squared": Term(self._errors(model, states, y).sum())}

    def losses(self, model: Model, states: States, y: Input) -> torch.Tensor:
        errors = self._errors(model, states, y)
        return torch.stack([errors.sum((1, 2)), y.values["known"].sum((1, 2)).to(errors.dtype)], 1)

    def results(self, scores: torch.Tensor, lengths: Sequence[int]) -> list[Result]:
        """The numbers of all pairs, from scores (B,T,T,1) of which each row has so many places."""
        values = scores[..., 0].double().cpu().numpy() * self.spread + self.mean
        return [_result(table[:n, :n]) for table, n in zip(values, lengths, strict=True)]

    def told(self, taken: Taken) -> None:
        """None: a table of numbers does not come again."""

    @staticmethod
    def cell(text: Any, folder: Path) -> np.ndarray:
        """A table as JSON, null where a number is not known."""
        try:
            found = json.loads(text) if isinstance(text, str) else text
        except (ValueError, RecursionError):
            raise _unreadable(f"{text!r:.40} is no JSON") from None
        return table_of(found)

    @staticmethod
    def cells(raw: Any, folder: Path) -> list[str]:
        rows = ([None if each != each else float(str(each)) for each in row] for row in table_of(raw))
        return [json.dumps(list(rows))]

    @staticmethod
    def identity(raw: Any) -> bytes:
        return table_of(raw).tobytes()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        known = int(np.isfinite(column.array("values")).sum())
        return f"{known:,} known numbers of pairs, mean {self.mean:.4g} (spread {self.spread:.4g})"

    def show(self, raw: Any) -> str:
        return _told(table_of(raw))

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """Of every known pair; an input without an answer counts as if the mean had been predicted."""
        return self._tallies([each.value for each in results], raws)

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The mean of the training numbers as the answer to everything."""
        found = self._tallies([None] * len(rows), [row[-1] for row in rows])
        return {"what": f"always {self.mean:.4g}", **{name: each.value for name, each in found.items()}}

    def _errors(self, model: Model, states: States, y: Input) -> torch.Tensor:
        """Squared errors (B,N,N) in units of the spread, 0 where nothing is known."""
        said, wanted, known = model.say(states)[..., 0], y.values["values"], y.values["known"]
        if said.shape != wanted.shape:
            raise SaccadeError(f"a table of {said.shape[1]} x {said.shape[2]} numbers fits this X; got {wanted.shape}")
        error = F.mse_loss(said.float(), wanted, reduction="none")
        return error * known

    def _tallies(self, said: Sequence[Any], raws: Sequence[Any]) -> dict[str, Tally]:
        """From tables of answers; None: the mean everywhere."""
        rows = []
        for answer, raw in zip(said, raws, strict=True):
            wanted = table_of(raw).astype(np.float64)
            known = np.isfinite(wanted)
            away = (self.mean if answer is None else np.asarray(answer, np.float64)[known]) - wanted[known]
            rows.append(((away**2).sum(), np.abs(away).sum(), known.sum()))
        counts = np.array(rows, np.float64).reshape(-1, 3)
        return {"rmse": Tally(counts[:, [0, 2]], _root, -1), "mae": Tally(counts[:, [1, 2]], ratio, -1)}


def table_of(raw: Any) -> np.ndarray:
    """A square table of numbers, float32, NaN where one is not known (None)."""
    try:
        found = np.array(raw, np.float32)
    except (TypeError, ValueError):
        raise _unreadable("its rows are of numbers and null, all equally long") from None
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise _unreadable(f"it has a row and a column for each place; got {found.shape}")
    if np.isinf(found).any():
        raise _unreadable("an infinite number is none")
    return found


def _root(total: Counts) -> float:
    """The root of a mean."""
    return math.sqrt(ratio(total)) if total[1] else math.nan


def _result(table: np.ndarray) -> Result:
    """The answer that holds these numbers."""
    value = [[float(f"{each:.{DIGITS}g}") for each in row] for row in table.tolist()]
    return Result(value, _told(table), 0.0)


def _told(table: np.ndarray) -> str:
    """The numbers in one line, rows apart from each other; of many the first ones, and how many there are."""
    rows = [" ".join("?" if each != each else f"{each:.3g}" for each in row[:FEW]) for row in table[:FEW].tolist()]
    more = f" ... ({len(table)} x {len(table)})" if len(table) > FEW else ""
    return "; ".join(rows) + more


def _unreadable(why: str) -> UnreadableError:
    return UnreadableError(f"this is no table of numbers of pairs, such as {AS_JSON}: {why}", "no table of pairs")
