"""Tracks as X: where everybody in a scene was, step by step. Agents have no order, and may come late or leave early."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field

from saccade import spec
from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, Taken
from saccade.field.file import FileSource
from saccade.field.tracks.scene import ENDINGS, TRACKS, as_json, as_lists, of_json, tracks_of, unreadable
from saccade.field.unit import Lengths, Side, Unit
from saccade.model.embed import EMBEDS
from saccade.model.input import Input

ROOM = 1.5  # of a drawing, for what comes: as many times the steps seen, straight on
DIGITS = 4  # behind the point of a share of a drawing
LEAST = 1e-6  # of a step: agents that never move


class TracksConfig(Config):
    """The keys of tracks in a recipe."""

    kind: Literal["tracks"] = Field("tracks", description="tracks")
    limit: int | None = Field(None, ge=1, description="agents of the largest scene; those with more are left out")
    embed: str = Field(
        "tracks", description="how a track becomes a vector: tracks(depth=1, heading=True), layers over its steps"
    )


class TracksShape(NamedTuple):
    """What was learned from the training scenes: their steps, the axes of a place, and how far an agent goes in a step:
    the root of the mean square.
    """

    steps: int
    axes: int
    unit: float


class Tracks(FileSource):
    """places (N,T,D) and which of them were seen; a scene of fewer steps than the longest has none of the first."""

    kind: ClassVar[str] = "tracks"
    media, inside = TRACKS, "places"
    keys: ClassVar[type[TracksConfig]] = TracksConfig
    held: ClassVar[str | None] = "scenes"
    endings: ClassVar[tuple[str, ...]] = ENDINGS
    recorded: ClassVar[bool] = True
    inherited: ClassVar[tuple[str, ...]] = ("embed",)
    unit, noun = "agents", "scene"

    def __init__(self, shape: TracksShape, config: TracksConfig) -> None:
        self.shape, self.config, self.limit = shape, config, config.limit

    @staticmethod
    def made(config: TracksConfig, raws: Iterable[Any]) -> bytes:
        """The steps of the longest scene, the axes of all, and how far agents go."""
        axes, steps, squares, count = set[int](), 0, 0.0, 0
        for raw in raws:
            scene = tracks_of(raw)
            axes.add(scene.shape[2])
            gone = np.diff(scene, axis=1)
            known = np.isfinite(gone).all(2)
            steps, squares, count = max(steps, scene.shape[1]), squares + (gone[known] ** 2).sum(), count + known.sum()
        if len(axes) != 1:
            told = "some places have 2 numbers and some 3" if axes else "there is no scene to learn from"
            raise SaccadeError(f"{told}: give scenes of one kind, and more than the validation split takes")
        unit = float(np.sqrt(squares / max(count, 1)))
        return json.dumps(TracksShape(steps, axes.pop(), unit if unit > LEAST else 1.0)._asdict()).encode()

    @classmethod
    def load(cls, config: TracksConfig, files: Mapping[str, bytes], column: str, needs: str | None) -> Tracks:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows how many steps the model reads")
        return cls(TracksShape(**json.loads(files[name])), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Places are kept in full, since they may be far from 0."""
        steps, axes, _ = self.shape
        return {"places": Array("<f8", (steps, axes), ragged=True), "seen": Array("|b1", (steps,), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays are the places."""
        return {}

    @property
    def model(self) -> Mapping[str, Any]:
        """Vectors of agents. The states are averaged where one must stand for all."""
        steps, axes, unit = self.shape
        sizes = {"steps": steps, "axes": axes, "unit": float(f"{unit:.6g}")}
        return {"embed": spec.completed(self.config.embed, EMBEDS, "embed", **sizes), "pool": "mean", "pooler": False}

    @property
    def lengths(self) -> Lengths:
        return Lengths("agents", (2, 5, 10, 20))

    @property
    def asked(self) -> Mapping[str, Any]:
        return {"steps": self.shape.steps, "axes": self.shape.axes}

    def bucket(self, raw: Any) -> int:
        return len(tracks_of(raw))

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Places, 0 where an agent was not seen, and whether it was; the last step of a scene is the last here."""
        found = [self._steps(tracks_of(each)) for each in raws]
        seen = [np.isfinite(each).all(2) for each in found]
        return {"places": [np.nan_to_num(each) for each in found], "seen": seen}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """places (B,N,T,D) from the origin of their scene, seen (B,N,T), origin (B,N,D): float32 has it exactly."""
        lengths = np.array([len(each) for each in taken["places"]], np.int64)
        most, (steps, axes, _) = max(lengths, default=0), self.shape
        places = np.zeros((len(lengths), most, steps, axes), np.float32)
        seen = np.zeros((len(lengths), most, steps), bool)
        origins = np.zeros((len(lengths), most, axes), np.float32)
        for row, (own, there) in enumerate(zip(taken["places"], taken["seen"], strict=True)):
            centre = origin(own, there)
            places[row, : len(own)] = (own - centre) * there[..., None]
            seen[row, : len(own)], origins[row, : len(own)] = there, centre
        values = {"places": places, "seen": seen, "origin": origins}
        full = not len(lengths) or lengths.min() == most
        return Input({name: torch.from_numpy(each) for name, each in values.items()}, () if full else lengths.tolist())

    @staticmethod
    def opened(raw: Any) -> np.ndarray:
        return tracks_of(raw)

    @staticmethod
    def digest(raw: Any) -> bytes:
        """The hash of its tracks in one order, so that two orders of the agents are the same."""
        return digest(tracks_of(raw))

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """How many agents there are, and how many of them come late, leave early or are missed in between."""
        lengths, seen = column.lengths(), column.array("seen")
        median, most = np.quantile(lengths, [0.5, 1.0], method="inverted_cdf")
        count = f"{len(lengths):,} scene{'' if len(lengths) == 1 else 's'}"
        late, early = int((~seen[:, 0]).sum()), int((~seen[:, -1]).sum())
        agents = f"{len(seen):,} agents, {median} in a scene (median), {most} (most)"
        partly = f"{late:,} appear and {early:,} leave midway"
        return f"{count} of {self.shape.steps} steps: {agents}; {partly}; {self.shape.unit:.3g} a step"

    def show(self, raw: Any) -> str:
        """The name of its file, or how large it is."""
        if isinstance(raw, str | Path):
            return str(raw)
        agents, steps, _ = tracks_of(raw).shape
        return f"a scene of {agents:,} agent{'' if agents == 1 else 's'} in {steps:,} steps"

    def sample(self, raw: Any) -> str:
        return as_json(tracks_of(raw))

    @classmethod
    def cell(cls, text: str, folder: Path) -> Any:
        """A scene written as JSON, or the path of its file, relative to the folder of the table."""
        return of_json(text, "this cell") if text.lstrip()[:1] in ("[", "{") else super().cell(text, folder)

    def line(self, text: str) -> Any:
        """A scene written as JSON, or the path of its file."""
        return of_json(text, "this") if str(text).lstrip()[:1] in ("[", "{") else super().line(text)

    def received(self, value: Any) -> np.ndarray:
        """Tracks, or the same as JSON in a string; never a path."""
        if isinstance(value, Mapping | list):
            return tracks_of(value)
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            return of_json(value, "this")
        raise SaccadeError('this run reads scenes of tracks: give one as [[[x, y], null, ...], ...] or {"tracks": ...}')

    def side(self, x: Input) -> Side:
        """The agents, each where it was seen last, with their tracks; places as shares of a square, from above."""
        count = int(x.lengths[0][0]) if x.lengths else x.values["places"].shape[1]
        places = x.values["places"][0, :count].cpu().double() + x.values["origin"][0, :count].cpu().double().unsqueeze(
            1
        )
        scene = np.where(x.values["seen"][0, :count].cpu().numpy()[..., None], places.numpy(), np.nan)
        frame = _frame(scene)
        tracks = as_lists(np.round(shares(scene, frame), DIGITS))
        last = [next((place for place in reversed(track) if place is not None), None) for track in tracks]
        names = [str(number + 1) for number in range(count)]
        units = [
            Unit(n, name, n, False, None if at is None else tuple(at))
            for n, (name, at) in enumerate(zip(names, last, strict=True))
        ]
        return Side(units, names, f"a scene of {count:,} agents", "tracks", {"tracks": tracks, "frame": frame})

    def _steps(self, scene: np.ndarray) -> np.ndarray:
        """A scene with as many steps as the model reads, nobody being there in the first of a shorter one."""
        agents, steps, axes = scene.shape
        if axes != self.shape.axes:
            raise unreadable(f"a place has {self.shape.axes} numbers here; this scene's have {axes}")
        if steps > self.shape.steps:
            told = f"this scene has {steps:,} steps, and the model was made for {self.shape.steps}"
            raise unreadable(f"{told}: give the last {self.shape.steps} of them")
        return np.concatenate([np.full((agents, self.shape.steps - steps, axes), np.nan), scene], 1)


def origin(places: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The middle of all places (N,T,D) that were seen, (D,), rounded to float32: what is subtracted comes back."""
    middle = places[seen].mean(0) if seen.any() else np.zeros(places.shape[2])
    return middle.astype(np.float32).astype(np.float64)


def digest(scene: np.ndarray) -> bytes:
    """A hash that no order of the agents changes."""
    rows = sorted(each.tobytes() for each in scene)
    return hashlib.sha256(repr(scene.shape).encode() + b"".join(rows)).digest()


def shares(places: np.ndarray, frame: Sequence[float]) -> np.ndarray:
    """The first two axes of places as shares of a square frame (left, below, side), the second counted downwards."""
    left, below, side = frame
    return np.stack([(places[..., 0] - left) / side, 1 - (places[..., 1] - below) / side], -1)


def _frame(scene: np.ndarray) -> list[float]:
    """Left, below and side of a square that holds a scene, and where its agents come if they go straight on."""
    flat = scene[..., :2]
    known = [flat[np.isfinite(flat).all(2)]]
    for track in flat:
        own = track[np.isfinite(track).all(1)]
        if len(own) > 1:
            known.append(own[-1:] + (own[-1] - own[-2]) * ROOM * len(track))
    points = np.concatenate(known)
    low, high = points.min(0), points.max(0)
    side = float((high - low).max()) or 1.0
    left, below = ((low + high) / 2 - side / 2).tolist()
    return [left, below, side]
