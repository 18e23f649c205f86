"""`ElementsTarget`: a set of elements as Y, whatever they are: queries ask for them through a decoder (DETR).

What a kind of element is (boxes, events), its metrics and how it is shown, is said by the classes made of it.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.error import SaccadeError, nearest
from saccade.field.elements.criterion import Told, Wanted, denoising_loss, set_loss
from saccade.field.elements.denoise import Denoising, denoising
from saccade.field.elements.element import Elements, elements, placed
from saccade.field.elements.matcher import Weights
from saccade.field.elements.overlap import ends
from saccade.field.elements.scores import CRITERIA
from saccade.field.field import Array, Column, Encoded, Source, Taken, Target, Term, UnreadableError
from saccade.field.result import Result
from saccade.field.unit import Side, Unit
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.zoo.special import label_options

Inputs = Mapping[str, Input]

SPANS = "spans"  # the head that tells places, where queries have none of their own
MOST = 100  # elements of one answer at most, the surest first
SHOWN = 8  # queries of a look where none is surer than the threshold
ROOM = 2  # queries for each element of the fullest example, at least


class ElementsTarget(Target):
    """Labels and places of a set of elements; a model learns places as shares of the example."""

    along: ClassVar[bool] = False
    everything: ClassVar[bool] = True
    needs, answer = "queries", "match"
    decides: ClassVar[tuple[str, ...]] = ("threshold",)
    endings_out: ClassVar[tuple[str, ...]] = ("json",)
    copies = True
    inherited: ClassVar[tuple[str, ...]] = ("queries", "anchors", "denoise", "criterion")
    ranked: ClassVar[bool] = False  # whether its metrics go along the scores of all that is found, however unsure
    config: Any
    written: ClassVar[str]  # an example of what `cell` reads
    space: np.ndarray | None = None  # the one that X lies in, where it is the same for all examples

    def __init__(self, names: Sequence[str], most: int, config: Any) -> None:
        """most: elements of the fullest example."""
        self.names, self.most, self.config = list(names), most, config
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self.scores = CRITERIA[config.criterion]()
        self.weights = Weights(config.label, config.span, config.overlap)
        self.head = f"elements({self.scores.outputs(len(self.names))}, {self.scores.rare})"
        self.deep_head = self.head.replace(")", ", deep=True)")

    @staticmethod
    def made(config: Any, raws: Iterable[Elements]) -> bytes:
        """The different labels in the order of the alphabet, and how many elements the fullest example has."""
        counts: Counter[str] = Counter()
        most = 0
        for raw in raws:
            counts.update(raw.labels)
            most = max(most, len(raw.labels))
        if not counts:
            raise SaccadeError("there is nothing to look for: no example has an element with a label")
        return json.dumps({"labels": sorted(counts), "most": most}, ensure_ascii=False).encode()

    @classmethod
    def load(cls, config: Any, files: Mapping[str, bytes], column: str) -> Self:
        name = cls.stored(column)
        if name not in files:
            raise SaccadeError(f"there is no {name}: without it nobody knows what the elements are called")
        told = json.loads(files[name])
        return cls(told["labels"], told["most"], config)

    @property
    def model(self) -> Mapping[str, Any]:
        """A decoder of queries, and a head for their places where they have none."""
        if not self.config.anchors:
            return {
                "embed": f"queries({self.config.queries})",
                "pooler": False,
                "named_heads": {SPANS: f"spans({self.axes})"},
            }
        labels = len(self.names) if self.config.denoise else 0
        return {"embed": f"anchors({self.config.queries}, {self.axes}, {labels})", "pooler": False}

    def asked_of(self, config: ModelConfig) -> Mapping[str, Any]:
        """Queries of a decoder; an encoder alone has registers, whose heads are deeper (Fang et al. 2021, YOLOS)."""
        if config.decoder:
            return super().asked_of(config)
        queries = {"registers": self.config.queries, "pooler": False}
        return {**queries, "named_heads": {SPANS: f"spans({self.axes})"}, "head": self.deep_head}

    @property
    def published(self) -> dict[str, Any]:
        """The names of the labels."""
        return label_options(self.names)

    def fits(self, config: ModelConfig) -> None:
        """Refuses fewer queries than an example has elements, and registers with places."""
        if self.config.anchors and not config.decoder:
            raise SaccadeError(
                "anchors are the places of a decoder's queries, and this model is an encoder alone, whose registers "
                "have none: write y.anchors = false and y.denoise = 0, or give model.decoder a depth"
            )
        if self.most > self.config.queries:
            raise SaccadeError(
                f"an example has {self.most} {self.unit}, and {self.config.queries} queries ask for them: set "
                f"y.queries = {ROOM * self.most}"
            )
        if self.config.denoise and not self.config.anchors:
            raise SaccadeError("denoising queries have places: write y.anchors = true, or y.denoise = 0")

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"labels": Array("<u4", (), ragged=True), "spans": Array("<f4", (2 * self.axes,), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays follow from its file alone."""
        return {}

    def sizes(self, column: Column) -> np.ndarray:
        """1 for each example: a batch's budget is of inputs, however much is in them."""
        return np.ones(len(column.lengths()), np.int64)

    def fault(self, size: int, limit: int | None) -> str | None:
        """None: an example may be without any element."""
        return None

    def encode(self, raws: Sequence[Elements]) -> Encoded:
        """The numbers of the labels, and places as shares."""
        wrong = next((each.axes for each in raws if each.axes != self.axes), None)
        if wrong is not None:
            raise SaccadeError(
                f"{self.unit} of these data lie along {wrong} axes, and those of the recipe along {self.axes}"
            )
        return {
            "labels": [np.array([self.number(each) for each in raw.labels], np.uint32) for raw in raws],
            "spans": [self._framed(raw).shares.astype(np.float32) for raw in raws],
        }

    def joined(self, x: Mapping[str, Source]) -> None:
        """Where all examples of an input lie in one space, places are shares of it. Refuses an input that is moved
        without its elements.
        """
        for name, each in x.items():
            if each.moving:
                told = f"x.{name}.augment moves what is to be found ({', '.join(each.moving)}), and its place stays"
                raise SaccadeError(f"{told}: write y.augment, which moves both, or leave it out")
        self.space = next((each.space for each in x.values() if each.space is not None), None)

    def _framed(self, raw: Elements) -> Elements:
        """The elements as parts of the space that X lies in, where that is the same for all."""
        return raw if self.space is None else raw._replace(frame=self.space)

    def number(self, name: str) -> int:
        """The number of a label."""
        if name not in self._numbers:
            raise SaccadeError(f"there is no label {name!r}; {nearest(name, self.names)}")
        return self._numbers[name]

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """labels (B,T) and spans (B,T,2k), zeros behind the last element."""
        counts = [len(each) for each in taken["labels"]]
        labels = np.zeros((len(counts), max(counts, default=0)), np.int64)
        spans = np.zeros((*labels.shape, 2 * self.axes), np.float32)
        for row, count in enumerate(counts):
            labels[row, :count], spans[row, :count] = taken["labels"][row], taken["spans"][row]
        return Input({"labels": torch.from_numpy(labels), "spans": torch.from_numpy(spans)}, torch.tensor(counts))

    def moved(self, x: Inputs, y: Input, draw: np.random.Generator) -> tuple[Inputs, Input]:
        """Moved together where the field moves them, and with denoising queries beside the wanted elements."""
        x, y = self.transformed(x, y, draw)
        if not self.config.denoise:
            return x, y
        labels, spans = y.values["labels"], y.values["spans"]
        made = denoising(labels, spans, y.lengths[0], self.config.denoise, len(self.names), draw)
        return x, Input({**y.values, **made._asdict()}, y.lengths)

    def transformed(self, x: Inputs, y: Input, draw: np.random.Generator) -> tuple[Inputs, Input]:
        """An input and its elements, moved together."""
        return x, y

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input | None:
        """Denoising queries, where there are some. None: the queries alone."""
        if "noised" not in y.values:
            return None
        values = y.values
        return Input({"labels": values["shown"], "noised": values["noised"], "groups": values["groups"]})

    def counts(self, y: Input) -> dict[str, int]:
        """The elements of all examples; one without any counts as one."""
        count = int(y.lengths[0].clamp(min=1).sum())
        return dict.fromkeys(("label", "span", "overlap"), count)

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Of labels, places and overlaps; learning: with those of denoising queries."""
        told = self.told_of(model, states)
        wanted = Wanted(y.values["labels"], y.values["spans"], y.lengths[0].tolist())
        found = set_loss(self.scores, self.weights, told.queries(None, self.config.queries), wanted)
        if learning and "noised" in y.values:
            asked = Denoising(*(y.values[name] for name in Denoising._fields))
            noised = denoising_loss(self.scores, told.queries(self.config.queries, None), asked)
            found = {name: each + noised[name] / self.config.denoise for name, each in found.items()}
        weights = self.weights._asdict()
        return {name: Term(each, weights[name]) for name, each in found.items()}

    def adds(self) -> list[str]:
        moved = getattr(self.config, "augment", "")
        noised = [f"{self.config.denoise} groups of denoising queries"] if self.config.denoise else []
        return noised + ([f"augmentation ({moved})"] if moved else [])

    def told_of(self, model: Model, states: States) -> Told:
        """What each layer tells of each query."""
        spans = torch.stack(states.spans) if states.spans else model.say(states, SPANS)
        return Told(model.say(states), spans)

    def results(self, told: Told, frames: Sequence[np.ndarray], threshold: float) -> list[Result]:
        """What the last layer found in each example, in the units of its frame, the surest first."""
        chances = self.scores.probabilities(told.scores[-1]).cpu().double().numpy()
        spans = told.spans[-1].float().cpu().double().numpy()
        rows = zip(frames, chances, spans, strict=True)
        return [self._result(frame, likely, own, threshold) for frame, likely, own in rows]

    def _result(self, frame: np.ndarray, chances: np.ndarray, spans: np.ndarray, threshold: float) -> Result:
        """The elements of one example: the likeliest label of each query."""
        labels, scores = chances.argmax(1), chances.max(1)
        order = np.argsort(-scores, kind="stable")[:MOST]
        order = order[scores[order] >= threshold]
        found = placed([self.names[each] for each in labels[order]], spans[order], frame, scores[order])
        return self.result(found)

    def side(self, told: Told) -> Side:
        """The queries as units: what each found in the first example, how sure it is, and where; those that are less
        sure than the threshold may be hidden, but not the surest where all are.
        """
        chances = self.scores.probabilities(told.scores[-1, 0]).cpu()
        best = chances.max(1)
        low, high = (each.clamp(0, 1) for each in ends(told.spans[-1, 0].float().cpu()))
        places = [_rectangle(*each) for each in zip(low.tolist(), (high - low).tolist(), strict=True)]
        surest = sorted(best.values.tolist(), reverse=True)
        least = self.config.threshold if surest[0] >= self.config.threshold else surest[:SHOWN][-1]
        rows = zip(best.values.tolist(), best.indices.tolist(), places, strict=True)
        units = [
            Unit(n, f"{self.names[label]} {score:.2f}", n, score < least, place)
            for n, (score, label, place) in enumerate(rows)
        ]
        names = [each.text for each in units]
        text = ", ".join(each.text for each in units if not each.special)
        scores = [round(each, 4) for each in best.values.tolist()]
        return Side(units, names, text, "queries", {"scores": scores, "least": round(least, 2)})

    def likely(self, told: Told, before: Told) -> Tensor:
        """The log-probability (B,) of the labels that queries had found before, summed over those of them that were
        surer than the threshold, or of the surest: what an ablation measures.
        """
        first = self.scores.probabilities(before.scores[-1, 0]).max(1)
        chosen = first.values >= self.config.threshold
        chosen[first.values.argmax()] = True
        found = self.scores.probabilities(told.scores[-1])[:, chosen, first.indices[chosen]]
        return found.double().clamp(min=1e-12).log().sum(1)

    def matters(self, said: Result) -> str:
        """What `likely` measures, in words."""
        return f"the log-probability of the labels that were found ({said.text})"

    def result(self, found: Elements) -> Result:
        """Elements as an answer."""
        score = float(np.log(np.clip(found.scores, 1e-12, 1)).sum()) if found.scores is not None else 0.0
        return Result(self.described(found), self.show(found), score)

    @property
    @abstractmethod
    def axes(self) -> int:
        """Along how many an element lies."""

    @staticmethod
    @abstractmethod
    def place(corners: Sequence[float]) -> dict[str, Any]:
        """Where an element lies, as plain values by name."""

    @staticmethod
    @abstractmethod
    def corners(place: Mapping[str, Any]) -> list[float]:
        """The inverse of `place`."""

    @staticmethod
    @abstractmethod
    def whole(frame: Sequence[float]) -> dict[str, Any]:
        """Where the whole example lies, as plain values by name."""

    @staticmethod
    @abstractmethod
    def frame(table: Mapping[str, Any]) -> list[float]:
        """The inverse of `whole`."""

    @classmethod
    def described(cls, found: Elements) -> list[dict[str, Any]]:
        """Elements as plain values: their labels, how sure a model is of each, and where they lie."""
        scores = [None] * len(found.labels) if found.scores is None else found.scores.tolist()
        rows = zip(found.labels, scores, found.corners.tolist(), strict=True)
        return [{"label": label, **_score(score), **cls.place(corners)} for label, score, corners in rows]

    @classmethod
    def undescribed(cls, value: Sequence[Mapping[str, Any]], frame: Any) -> Elements:
        """The inverse of `described`."""
        corners = np.array([cls.corners(each) for each in value], np.float64).reshape(-1, len(frame))
        scores = np.array([each.get("score", np.nan) for each in value])
        found = Elements(tuple(str(each["label"]) for each in value), corners, np.asarray(frame, np.float64))
        return found if not len(value) or np.isnan(scores).any() else found._replace(scores=scores)

    @classmethod
    def cell(cls, text: Any, folder: Path) -> Elements:
        """A table as JSON: where the whole example lies, and its elements."""
        try:
            table = json.loads(text) if isinstance(text, str) else text
            found = cls.undescribed(table[cls.unit], cls.frame(table))
            return elements(found.labels, found.corners, found.frame)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            told = f"this is no {cls.noun}, such as {cls.written}: {text!r:.60}"
            raise UnreadableError(told, f"no {cls.noun}") from None

    @classmethod
    def cells(cls, raw: Elements, folder: Path) -> list[str]:
        table = {**cls.whole(raw.frame.tolist()), cls.unit: cls.described(raw)}
        return [json.dumps(table, ensure_ascii=False)]

    def found(self, results: Sequence[Result], raws: Sequence[Elements]) -> list[Elements]:
        """What the answers hold, in the frames of the wanted elements."""
        return [self.undescribed(each.value or [], raw.frame) for each, raw in zip(results, raws, strict=True)]

    def filed(self, results: Sequence[Result], rows: Sequence[Sequence[Any]]) -> bytes:
        """A JSON list with a table for each example: its name or number, and what was found."""
        named = zip(names_of(rows), results, strict=True)
        return json.dumps([{"input": name, self.unit: each.value or []} for name, each in named]).encode()

    @staticmethod
    def identity(raw: Elements) -> bytes:
        """The same in whatever order they are."""
        return repr((raw.frame.tolist(), sorted(zip(raw.labels, raw.corners.tolist(), strict=True)))).encode()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        numbers = column.array("labels")
        counts = np.bincount(numbers, minlength=len(self.names)).tolist()
        shown = ", ".join(f"{name!r} {count:,}" for count, name in sorted(zip(counts, self.names, strict=True))[:12])
        lengths = column.lengths()
        return (
            f"{sum(counts):,} {self.unit} in {len(lengths):,} examples, {int(lengths.max(initial=0))} at most, for "
            f"{self.config.queries} queries: {shown}"
        )

    def show(self, raw: Elements) -> str:
        """How many there are of each label."""
        counts = Counter(raw.labels)
        return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "nothing"

    def told(self, taken: Taken) -> None:
        """None: a set does not come again."""

    def copied(self, column: Column, numbers: np.ndarray, wanted: Sequence[Elements]) -> list[Result]:
        """The elements of training examples, each in the frame of the one that it is an answer to."""
        taken = column.take(numbers)
        rows = zip(taken["labels"], taken["spans"], wanted, strict=True)
        return [self._copy(labels, spans, each.frame) for labels, spans, each in rows]

    def _copy(self, labels: np.ndarray, spans: np.ndarray, frame: np.ndarray) -> Result:
        names = [self.names[int(each)] for each in labels]
        return self.result(placed(names, spans.astype(np.float64), frame, np.ones(len(names))))


def names_of(rows: Sequence[Sequence[Any]]) -> list[str | int]:
    """What examples are called: the name of a file, else their number from 1."""
    firsts = (row[0] for row in rows)
    return [str(each) if isinstance(each, str | Path) else number for number, each in enumerate(firsts, 1)]


def _rectangle(low: Sequence[float], size: Sequence[float]) -> tuple[float, float, float, float]:
    """Left, top, width and height of an element along two axes; along one axis it is as high as all."""
    (left, *top), (width, *height) = low, size
    return left, (top or [0.0])[0], width, (height or [1.0])[0]


def _score(score: float | None) -> dict[str, float]:
    """How sure a model is, where one has told it."""
    return {} if score is None else {"score": round(score, 6)}
