"""The futures of tracks as Y: for every agent of X several ways on, each with a probability (Alahi et al. 2016; Ngiam
et al. 2022).

The model tells how far a way leads from where an agent would be if it went on as in its last step. What is learned is
the best of the futures (the winner takes all, but for a share), and which of them it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, field_validator
from torch import Tensor

from saccade.config import Config, ModelConfig
from saccade.error import SaccadeError
from saccade.field.field import Array, Column, Encoded, PlacesTarget, Taken, Term
from saccade.field.move import JOINT, moves
from saccade.field.result import Result
from saccade.field.tally import Tally, ratio
from saccade.field.tracks.error import ERRORS, Errors, errors, straight
from saccade.field.tracks.scene import Sequel, as_json, sequel_of
from saccade.field.tracks.tracks import digest, origin, shares
from saccade.field.unit import Side
from saccade.model.futures import parted
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.tracks import Stance, stance

FEW = 8  # agents that are told of in a line
TINY = 1e-12  # below a root, whose slope is infinite at 0
DIGITS = 4  # behind the point of a place that is told


class FuturesConfig(Config):
    """The keys of futures in a recipe."""

    kind: Literal["tracks"] = Field("tracks", description="tracks")
    count: int = Field(20, ge=1, description="futures that are told of each agent")
    share: float = Field(
        0.1, ge=0, lt=1, description="of what is learned that goes to all futures alike, and not to the best alone"
    )
    spread: float = Field(
        0.1,
        ge=0,
        description="which future it was: 0, the best alone; above, all by exp(-distance / spread), in units of the "
        "error of going straight on",
    )
    heading: bool = Field(True, description="whether a future is told ahead and sideways of its agent, or by the axes")
    whole: bool = Field(False, description="whether those alone are measured who are there at every step, as papers do")
    augment: str = Field("", description='of whole scenes, in training alone: "turn(180) mirror(0.5) scale(0.9, 1.1)"')

    @field_validator("augment")
    @classmethod
    def _known(cls, text: str) -> str:
        moves(text, JOINT)
        return text


class FuturesShape(NamedTuple):
    """What was learned from the training scenes: how many steps were seen and come, the axes of a place, and how far
    off going straight on is, the root of the mean square.
    """

    seen: int
    steps: int
    axes: int
    unit: float


class Futures(PlacesTarget):
    """K futures of S steps for each agent. Who was not seen at the last step of X is looked at and not foretold; who
    leaves early is learned and measured as long as it is there.
    """

    kind: ClassVar[str] = "tracks"
    keys: ClassVar[type[FuturesConfig]] = FuturesConfig
    along: ClassVar[bool] = False
    recorded: ClassVar[bool] = True
    unit, noun = "agents", "scene"
    main, known = "ade", ("ade", "fde", "ade_best", "fde_best")

    def __init__(self, shape: FuturesShape, config: FuturesConfig) -> None:
        self.shape, self.config = shape, config
        self.moves = moves(config.augment, JOINT)
        self.head = f"futures({config.count}, {shape.steps}, {shape.axes})"

    @classmethod
    def stored(cls, column: str) -> str:
        return f"{column}.futures.json"

    @staticmethod
    def made(config: FuturesConfig, raws: Iterable[Any]) -> bytes:
        """How many steps there are, and how far off going straight on is."""
        kinds, squares, count = set[tuple[int, int, int]](), 0.0, 0
        for raw in raws:
            seen, future = sequel_of(raw)
            kinds.add((seen.shape[1], future.shape[1], future.shape[2]))
            away = future - straight(seen, future.shape[1])
            known = np.isfinite(away).all(2)
            squares, count = squares + (away[known] ** 2).sum(), count + known.sum()
        if len(kinds) != 1:
            told = "scenes are alike in the steps that are seen and that come" if kinds else "there is no scene"
            raise SaccadeError(f"{told}: {sorted(kinds) or 'all are in the validation split, or there is none'}")
        if not count:
            raise SaccadeError("nobody who was seen at the last step is there at a later one: there is no future")
        return json.dumps(FuturesShape(*kinds.pop(), float(np.sqrt(squares / count)) or 1.0)._asdict()).encode()

    @classmethod
    def load(cls, config: FuturesConfig, files: Mapping[str, bytes], column: str) -> Futures:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows how many steps come")
        return cls(FuturesShape(**json.loads(files[name])), config)

    @property
    def model(self) -> Mapping[str, Any]:
        return {"pooler": False}

    @property
    def arrays(self) -> Mapping[str, Array]:
        steps, axes = self.shape.seen + self.shape.steps, self.shape.axes
        return {"places": Array("<f8", (steps, axes), ragged=True), "seen": Array("|b1", (steps,), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays are the places."""
        return {}

    def fits(self, config: ModelConfig) -> None:
        told = config.embed if isinstance(config.embed, str) else " ".join(config.embed.values())
        if "tracks" not in told:
            raise SaccadeError("futures are told of tracks: write [x.NAME] kind = 'tracks'")

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """What was seen and what came, one behind the other."""
        found = [np.concatenate(sequel_of(each), 1) for each in raws]
        steps = self.shape.seen + self.shape.steps
        for each in found:
            if each.shape[1:] != (steps, self.shape.axes):
                told = f"a scene has {self.shape.seen} steps and {self.shape.steps} that come, {self.shape.axes} axes"
                raise SaccadeError(f"{told}; here they are {each.shape[1]} and {each.shape[2]}")
        there = [np.isfinite(each).all(2) for each in found]
        return {"places": [np.nan_to_num(each) for each in found], "seen": there}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """places (B,N,T,D) and seen (B,N,T) as X has them, future (B,N,S,D), and known (B,N,S): where it is learned."""
        lengths = np.array([len(each) for each in taken["places"]], np.int64)
        most, before = max(lengths, default=0), self.shape.seen
        places = np.zeros((len(lengths), most, before + self.shape.steps, self.shape.axes), np.float32)
        there = np.zeros(places.shape[:3], bool)
        for row, (own, seen) in enumerate(zip(taken["places"], taken["seen"], strict=True)):
            places[row, : len(own)] = (own - origin(own[:, :before], seen[:, :before])) * seen[..., None]
            there[row, : len(own)] = seen
        known = there[..., before:] & there[..., before - 1 : before]
        values = {"places": places[:, :, :before], "seen": there[..., :before], "future": places[:, :, before:]}
        values["known"] = known
        made = {name: torch.from_numpy(np.ascontiguousarray(each)) for name, each in values.items()}
        return Input(made, torch.from_numpy(lengths))

    def moved(self, x: Mapping[str, Input], y: Input, draw: np.random.Generator) -> tuple[Mapping[str, Input], Input]:
        """Whole scenes turned, mirrored or larger: what was seen and what comes alike."""
        if not self.moves:
            return x, y
        name, given = _scenes(x)
        seen, future = given.values["places"], y.values["future"]
        (B, N, T, D), S = seen.shape, future.shape[2]
        both = torch.cat((seen, future), 2).flatten(1, 2)
        for move in self.moves:
            both = move(both, draw)
        # a motion has a fixed point of its own: what is not there goes back to 0
        places, future = both.view(B, N, T + S, D).split((T, S), 2)
        places = places * given.values["seen"].unsqueeze(3)
        future = future * y.values["known"].unsqueeze(3)
        shown = Input({**given.values, "places": places}, given.lengths, given.places, given.side)
        return {**x, name: shown}, Input({**y.values, "places": places, "future": future}, y.lengths)

    def adds(self) -> list[str]:
        return [f"augmentation ({self.config.augment})"] if self.moves else []

    def counts(self, y: Input) -> dict[str, int]:
        count = int(y.values["known"].any(2).sum())
        return {"displacement": count, "future": count}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """displacement: the mean distance of the best future over the steps that are known, in units of the error of
        going straight on, with a share for all futures; future: the cross-entropy of which of them it was.
        """
        scores, away = self._distances(model, states, y)
        scored = y.values["known"].any(2)
        scores, away = scores[scored], away[scored]  # (A,K)
        best = away.min(1)
        share = self.config.share if learning else 0.0
        found = (1 - share) * best.values + share * away.mean(1)
        wanted = F.one_hot(best.indices, away.shape[1]).to(scores.dtype)
        if self.config.spread:
            wanted = (-away.detach() / self.config.spread).softmax(1)
        return {"displacement": Term(found.sum()), "future": Term(-(wanted * scores).sum())}

    def placed(self, scores: Tensor, x: Mapping[str, Input]) -> Tensor:
        """The places of the futures in the scene's own coordinates, (B,N,K(1+SD)) in float64; NaN for who was not seen
        at the last step.
        """
        _, given = _scenes(x)
        count, axes = self.config.count, self.shape.axes
        found = stance(given.values["places"].double(), given.values["seen"], self.config.heading)
        logs, futures = self._futures(scores.double(), found)
        futures = found.outwards(futures) + found.here[:, :, None, None]
        futures = futures + given.values["origin"].double()[:, :, None, None]
        futures = futures.masked_fill(~found.now[..., None, None, None], torch.nan)
        assert futures.shape[2:] == (count, self.shape.steps, axes)
        return torch.cat((logs.unsqueeze(3), futures.flatten(3)), 3).flatten(2)

    def results(self, scores: Tensor, lengths: Sequence[int]) -> list[Result]:
        """For each agent its futures, the likeliest first, with their probabilities; None for who is not foretold."""
        found = []
        for row, n in zip(scores.double().cpu(), lengths, strict=True):
            parts = row[:n].unflatten(1, (self.config.count, -1))
            chances, futures = parts[..., 0].softmax(1).numpy(), parts[..., 1:].numpy()
            order = np.argsort(-chances, 1)
            agents = [
                _told(chances[agent][order[agent]], futures[agent][order[agent]], self.shape.axes) for agent in range(n)
            ]
            sure = [np.log(max(each["probabilities"][0], TINY)) for each in agents if each is not None]
            found.append(Result(agents, _written(agents), float(sum(sure))))
        return found

    def told(self, taken: Taken) -> None:
        """None: a future does not come again."""

    def marked(self, side: Side, said: Result) -> Side:
        """The side of the tracks with the futures on it, as shares of its square."""
        if side.kind != "tracks" or said.value is None:
            return side
        futures = [
            None
            if each is None
            else {
                "ways": np.round(shares(np.array(each["futures"]), side.shown["frame"]), 4).tolist(),
                "probabilities": each["probabilities"],
            }
            for each in said.value
        ]
        return side.showing(futures=futures)

    @staticmethod
    def cell(text: Any, folder: Path) -> Sequel:
        """What was seen and what came, as JSON."""
        return sequel_of(text)

    @staticmethod
    def cells(raw: Any, folder: Path) -> list[str]:
        seen, future = sequel_of(raw)
        return [f'{{"seen": {as_json(seen)}, "future": {as_json(future)}}}']

    @staticmethod
    def identity(raw: Any) -> bytes:
        return digest(np.concatenate(sequel_of(raw), 1))

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """How many are foretold, and how many of them leave before the end."""
        there = column.array("seen")
        before = self.shape.seen
        known = there[:, before:] & there[:, before - 1 : before]
        scored, whole = known.any(1), known.all(1)
        count = f"{int(scored.sum()):,} of {len(there):,} agents are foretold"
        early = f"{int((scored & ~whole).sum()):,} of them leave midway"
        return f"{count} for {self.shape.steps} steps, {early}; straight on is {self.shape.unit:.3g} off"

    def show(self, raw: Any) -> str:
        future = sequel_of(raw).future
        last = [row[np.isfinite(row).all(1)][-1:] for row in future]
        places = [_joined(each[0]) if len(each) else "?" for each in last[:FEW]]
        more = f" ... ({len(last)} agents)" if len(last) > FEW else ""
        return "; ".join(f"{n} to {place}" for n, place in enumerate(places, 1)) + more

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """Mean and last distance of the likeliest future and of the best one; without an answer, of straight on."""
        rows = [self._errors(result.value, sequel_of(raw)) for result, raw in zip(results, raws, strict=True)]
        return _tallied(rows)

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """Everybody goes on as in the last step."""
        found = _tallied([self._errors(None, sequel_of(row[-1])) for row in rows])
        what = "constant velocity: the last step repeated"
        return {"what": what, **{name: each.value for name, each in found.items()}}

    def _errors(self, said: Sequence[Any] | None, raw: Sequel) -> Errors:
        return errors(said, raw, whole=self.config.whole)

    def _futures(self, said: Tensor, found: Stance) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B,N,K), and ways (B,N,K,S,D) from here, as each agent sees them: straight on, and more."""
        logs, off = parted(said, self.config.count, self.shape.axes)
        times = torch.arange(1, off.shape[3] + 1, dtype=off.dtype, device=off.device).unsqueeze(1)
        along = found.inwards(found.velocity).to(off.dtype)[:, :, None, None] * times
        return logs, along + off * self.shape.unit

    def _distances(self, model: Model, states: States, y: Input) -> tuple[Tensor, Tensor]:
        """Log-probabilities and mean distances (B,N,K) of all futures, in units of the error of going straight on."""
        said, places, known = model.say(states), y.values["places"], y.values["known"]
        if said.shape[:2] != known.shape[:2]:
            raise SaccadeError(f"there should be a future for each of {said.shape[1]} agents; got {known.shape[1]}")
        found = stance(places.to(said.dtype), y.values["seen"], self.config.heading)
        logs, futures = self._futures(said, found)
        wanted = found.inwards(y.values["future"].to(futures.dtype) - found.here.unsqueeze(2))
        away = ((futures - wanted.unsqueeze(2)).square().sum(4) + TINY).sqrt()  # (B,N,K,S)
        count = known.sum(2).clamp(min=1).unsqueeze(2)
        return logs, (away * known.unsqueeze(2)).sum(3) / count / self.shape.unit


def _scenes(x: Mapping[str, Input]) -> tuple[str, Input]:
    """The input that is of tracks, with its name."""
    return next((name, each) for name, each in x.items() if "origin" in each.values)


def _told(chances: np.ndarray, futures: np.ndarray, axes: int) -> dict[str, Any] | None:
    """The futures of an agent as plain numbers."""
    if not np.isfinite(futures).all():
        return None
    ways = futures.reshape(len(futures), -1, axes)
    return {"futures": ways.round(DIGITS).tolist(), "probabilities": chances.round(DIGITS).tolist()}


def _written(agents: Sequence[dict[str, Any] | None]) -> str:
    """Where each agent most likely comes to, in one line."""
    rows = [
        f"{number}: not seen last"
        if each is None
        else f"{number} to {_joined(each['futures'][0][-1])} ({each['probabilities'][0]:.0%})"
        for number, each in enumerate(agents[:FEW], 1)
    ]
    return "; ".join(rows) + (f" ... ({len(agents)} agents)" if len(agents) > FEW else "")


def _joined(place: Iterable[float]) -> str:
    return ",".join(f"{each:.5g}" for each in place)


def _tallied(rows: Sequence[Errors]) -> dict[str, Tally]:
    table = np.array(rows, np.float64).reshape(-1, len(ERRORS) * 2)
    return {name: Tally(table[:, 2 * n : 2 * n + 2], ratio, -1) for n, name in enumerate(ERRORS)}
