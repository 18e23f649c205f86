"""A set of points as X: rows of numbers without an order, some of which may be coordinates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field, field_validator

from saccade import spec
from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.cloud import ENDINGS, POINTS, as_json, is_picture, of_json, points_of
from saccade.field.field import Array, Column, Encoded, Taken
from saccade.field.file import FileSource
from saccade.field.move import moves
from saccade.field.picture import PICTURE
from saccade.field.unit import Lengths, Side, Unit
from saccade.model.embed import EMBEDS
from saccade.model.input import Input

SHOWN = 3  # digits of a point that is a unit of a map
CELLS = 32.0  # places are counted in this share of the space, so that positions made for pictures fit them
PLANE = 2  # axes of a place


class PointsConfig(Config):
    """The keys of a set of points in a recipe."""

    kind: Literal["points"] = Field("points", description="points")
    coordinates: int | None = Field(
        None, ge=0, description="how many numbers of a point say where it is; by default 2 of pictures, else none"
    )
    normalise: Literal["none", "spread"] = Field(
        "spread", description="of the numbers that are no coordinates: each by its mean and spread in training"
    )
    sample: int | None = Field(
        None, ge=1, description="points of a set that training draws, others in each epoch; at use all are read"
    )
    limit: int | None = Field(None, ge=1, description="points of the largest set; those with more are left out")
    augment: str = Field("", description='of coordinates, in training alone: "turn(10) scale(0.9, 1.1) shift(0.05)"')
    embed: str = Field(
        "points", description="how points become vectors: points; points(waves=5), with sines of coordinates"
    )

    @field_validator("augment")
    @classmethod
    def _known(cls, text: str) -> str:
        moves(text)
        return text


class PointsShape(NamedTuple):
    """What was learned from the training sets: the numbers of a point and how many are coordinates; where the space
    begins along each of these and how long its longest side is; mean and spread of the other numbers.
    """

    features: int
    coordinates: int
    low: list[float]
    size: float
    mean: list[float]
    spread: list[float]


class Points(FileSource):
    """points (N,F), in any order: coordinates from 0 to 1, and other numbers by their mean and spread."""

    kind: ClassVar[str] = "points"
    media, inside = POINTS, "numbers"
    keys: ClassVar[type[PointsConfig]] = PointsConfig
    held: ClassVar[str | None] = "sets of points"
    reads: ClassVar[tuple[str, ...]] = ("image",)
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    inherited: ClassVar[tuple[str, ...]] = ("coordinates", "normalise", "embed")
    unit, noun = "points", "point set"

    def __init__(self, shape: PointsShape, config: PointsConfig) -> None:
        self.shape, self.config, self.limit = shape, config, config.limit
        self.moves = moves(config.augment)
        if self.moves and not shape.coordinates:
            raise SaccadeError("augment moves coordinates, and these points have none: set x.NAME.coordinates")

    @staticmethod
    def made(config: PointsConfig, raws: Iterable[Any]) -> bytes:
        """The space that the points lie in, and mean and spread of their other numbers."""
        low = high = total = squares = np.zeros(0)
        count, pictures = 0, False
        for raw in raws:
            found = points_of(raw).astype(np.float64)
            if not len(found):
                continue
            if not count:
                low, high, pictures = found[0], found[0], is_picture(raw)
                total = squares = np.zeros(found.shape[1])
            if found.shape[1] != len(low):
                raise SaccadeError(f"all points have as many numbers: some here have {len(low)}, some {found.shape[1]}")
            low, high = np.minimum(low, found.min(0)), np.maximum(high, found.max(0))
            total, squares, count = total + found.sum(0), squares + (found**2).sum(0), count + len(found)
        if not count:
            raise SaccadeError("there is no point to learn from: all sets are empty, or in the validation split")
        axes = (PLANE if pictures else 0) if config.coordinates is None else config.coordinates
        if axes > len(low):
            raise SaccadeError(f"{axes} coordinates were asked for, and a point has {len(low)} numbers")
        mean = total / count
        spread = np.sqrt(np.maximum(squares / count - mean**2, 0))
        spread[spread <= 1e-6 * np.maximum(np.abs(mean), 1e-6)] = 1.0
        size = float((high - low)[:axes].max(initial=0)) or 1.0
        shape = PointsShape(len(low), axes, low[:axes].tolist(), size, mean[axes:].tolist(), spread[axes:].tolist())
        return json.dumps(shape._asdict()).encode()

    @classmethod
    def load(cls, config: PointsConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Points:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows the space of the points")
        return cls(PointsShape(**json.loads(files[name])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"points": Array("<f4", (self.shape.features,), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """How the other numbers are normalised; the rest stands in its file."""
        return {"normalise": self.config.normalise}

    @property
    def model(self) -> Mapping[str, Any]:
        """Vectors of points. The states are averaged where one must stand for all."""
        sizes = {"features": self.shape.features, "coordinates": self.shape.coordinates}
        return {"embed": spec.completed(self.config.embed, EMBEDS, "embed", **sizes), "pool": "mean", "pooler": False}

    @property
    def space(self) -> np.ndarray | None:
        """The cube that coordinates are shares of."""
        low = np.array(self.shape.low)
        return np.concatenate([low, low + self.shape.size]) if self.shape.coordinates else None

    @property
    def lengths(self) -> Lengths:
        return Lengths("points", (10, 50, 100, 200))

    @property
    def asked(self) -> Mapping[str, Any]:
        return {"numbers": self.shape.features, "coordinates": self.shape.coordinates}

    def bucket(self, raw: Any) -> int:
        return len(points_of(raw))

    def sizes(self, column: Column) -> np.ndarray:
        """The points that training reads of each."""
        lengths = column.lengths()
        return lengths if self.config.sample is None else np.minimum(lengths, self.config.sample)

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Coordinates from 0 to 1, and other numbers as the recipe normalises them."""
        return {"points": [self._encoded(points_of(each)) for each in raws]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """points (B,N,F), zeros behind the end of a set; those with two coordinates have places."""
        rows = taken["points"]
        if draw is not None and self.config.sample is not None:
            rows = [_drawn(each, self.config.sample, draw) for each in rows]
        lengths = np.array([len(each) for each in rows], np.int64)
        found = np.zeros((len(rows), max(lengths, default=0), self.shape.features), np.float32)
        for row, own in zip(found, rows, strict=True):
            row[: len(own)] = own
        points, axes = torch.from_numpy(found), self.shape.coordinates
        if draw is not None and self.moves:
            points[..., :axes] = reduce(lambda each, move: move(each, draw), self.moves, points[..., :axes])
            points.masked_fill_(
                torch.arange(found.shape[1]).unsqueeze(1) >= torch.from_numpy(lengths).view(-1, 1, 1), 0
            )
        full = not len(lengths) or lengths.min() == found.shape[1]
        places = points[..., :PLANE] * CELLS if axes == PLANE else None
        return Input({"points": points}, () if full else torch.from_numpy(lengths), places)

    @property
    def moving(self) -> list[str]:
        return [self.config.augment] if self.moves else []

    def adds(self) -> list[str]:
        sampled = [] if self.config.sample is None else [f"{self.config.sample} points of each set at most"]
        return sampled + ([f"augmentation ({self.config.augment})"] if self.moves else [])

    @staticmethod
    def opened(raw: Any) -> np.ndarray:
        return points_of(raw)

    @staticmethod
    def digest(raw: Any) -> bytes:
        """The hash of its points in one order, so that two orders of a set are the same."""
        found = points_of(raw)
        return hashlib.sha256(repr(found.shape).encode() + found[np.lexsort(found.T)].tobytes()).digest()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        lengths = column.lengths()
        median, longest = np.quantile(lengths, [0.5, 1.0], method="inverted_cdf")
        count = f"{len(lengths):,} set{'' if len(lengths) == 1 else 's'}"
        axes = f", {self.shape.coordinates} of them coordinates" if self.shape.coordinates else ""
        numbers = f"{self.shape.features} number{'' if self.shape.features == 1 else 's'}"
        return f"{count} of {median} points (median), {longest} (most), with {numbers}{axes}"

    def show(self, raw: Any) -> str:
        """The name of its file, or how large it is."""
        if isinstance(raw, str | Path):
            return str(raw)
        count = len(points_of(raw))
        return f"a set of {count:,} point{'' if count == 1 else 's'}"

    def sample(self, raw: Any) -> str:
        return as_json(points_of(raw))

    @classmethod
    def cell(cls, text: str, folder: Path) -> Any:
        """A set written as JSON, or the path of its file, relative to the folder of the table."""
        return of_json(text, "this cell") if text.lstrip()[:1] in ("[", "{") else super().cell(text, folder)

    def line(self, text: str) -> Any:
        """A set written as JSON, or the path of its file."""
        return of_json(text, "this") if str(text).lstrip()[:1] in ("[", "{") else super().line(text)

    def received(self, value: Any) -> np.ndarray:
        """Rows of numbers, the same as JSON in a string, or a picture as a data: URL; never a path."""
        if isinstance(value, Mapping | list):
            return points_of(value)
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            return of_json(value, "this")
        if isinstance(value, str) and value.startswith("data:image/"):
            return points_of(PICTURE.received(value))
        raise SaccadeError('this run reads sets of points: give one as [[x, y], ...] or {"points": [[x, y], ...]}')

    def side(self, x: Input) -> Side:
        """The points, each where its first two coordinates are."""
        count = int(x.lengths[0][0]) if x.lengths else x.values["points"].shape[1]
        found = x.values["points"][0, :count].cpu().double().numpy()
        axes, told = self.shape.coordinates, self._own(found)
        told[np.abs(told) < 1e-6 * np.abs(told).max(initial=0)] = 0.0  # what float32 leaves of zeros
        names = [",".join(f"{each:.{SHOWN}g}" for each in row[: axes or None]) for row in told]
        plane = axes >= PLANE
        places = [tuple(each) if plane else None for each in found[:, :PLANE].clip(0, 1).tolist()]
        units = [Unit(n, name, n, False, place) for n, (name, place) in enumerate(zip(names, places, strict=True))]
        return Side(units, names, f"a set of {count:,} points", "points" if plane else "words")

    def _encoded(self, found: np.ndarray) -> np.ndarray:
        """The points of one set."""
        shape, axes = self.shape, self.shape.coordinates
        if not len(found):
            return np.empty((0, shape.features), np.float32)
        if found.shape[1] != shape.features:
            raise SaccadeError(f"a point has {shape.features} numbers here; this set's have {found.shape[1]}")
        places = (found[:, :axes] - np.array(shape.low)) / shape.size
        others = found[:, axes:]
        if self.config.normalise == "spread":
            others = (others - np.array(shape.mean)) / np.array(shape.spread)
        return np.concatenate([places, others], 1).astype(np.float32)

    def _own(self, encoded: np.ndarray) -> np.ndarray:
        """Points (N,F) in their own units again."""
        shape, axes = self.shape, self.shape.coordinates
        places = encoded[:, :axes] * shape.size + np.array(shape.low)
        others = encoded[:, axes:]
        if self.config.normalise == "spread":
            others = others * np.array(shape.spread) + np.array(shape.mean)
        return np.concatenate([places, others], 1)


def _drawn(points: np.ndarray, count: int, draw: np.random.Generator) -> np.ndarray:
    """So many points of a set, each at most once."""
    if len(points) <= count:
        return points
    return points[np.argpartition(draw.random(len(points)), count)[:count]]
