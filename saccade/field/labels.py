"""A label for each place of X as Y, such as the nodes of a graph; places may be without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field

from saccade.config import Config
from saccade.error import SaccadeError
from saccade.field.confusion import class_intervals, confusion, macro_f1
from saccade.field.field import Array, Column, Encoded, PlacesTarget, Taken, Term
from saccade.field.label import LABELS, Label
from saccade.field.result import Result
from saccade.field.tally import Tally, mean
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

UNKNOWN = -1  # the number of a place without a label
FEW = 40  # places whose labels are all written out


class LabelsConfig(Config):
    """The keys of labels in a recipe."""

    kind: Literal["labels"] = Field("labels", description="labels")
    smoothing: float = Field(0.0, ge=0, lt=1, description="the share that all labels have alike")


class Labels(PlacesTarget):
    """The labels of all places of an example, None where one is not known. What is not known is neither learned nor
    measured, so the places of one large graph may be split between training, validation and test.
    """

    kind: ClassVar[str] = "labels"
    keys: ClassVar[type[LabelsConfig]] = LabelsConfig
    along: ClassVar[bool] = False
    everything: ClassVar[bool] = True
    unit, noun = "labels", "row of labels"
    main, known = "accuracy", ("accuracy", "macro_f1")
    drawn = "confusion"

    def __init__(self, label: Label, config: LabelsConfig) -> None:
        self.label, self.names, self.config = label, label.names, config
        self.head = f"tags({len(self.names)})"

    @classmethod
    def stored(cls, column: str) -> str:
        """The names as JSON."""
        return LABELS

    @staticmethod
    def made(config: LabelsConfig, raws: Iterable[Sequence[str | None]]) -> bytes:
        """The different labels of all places, in the order of the alphabet."""
        return Label(sorted({each.strip() for row in raws for each in row if each is not None})).to_bytes()

    @classmethod
    def load(cls, config: LabelsConfig, files: Mapping[str, bytes], column: str) -> Labels:
        if LABELS not in files:
            raise SaccadeError(f"there is no {LABELS}: without it nobody knows what the classes are called")
        return cls(Label.from_bytes(files[LABELS]), config)

    @property
    def model(self) -> Mapping[str, Any]:
        return {"pooler": False}

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"numbers": Array("<i4", (), ragged=True)}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Nothing: the arrays follow from its file alone."""
        return {}

    @property
    def published(self) -> dict[str, Any]:
        return self.label.published

    def encode(self, raws: Sequence[Sequence[str | None]]) -> Encoded:
        """The number of each label, -1 where there is none."""

        def number(name: str | None) -> int:
            return UNKNOWN if name is None else self.label.number(name.strip())

        return {"numbers": [np.array([number(each) for each in row], np.int32) for row in raws]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Numbers (B,T), -1 behind the end of a row."""
        rows = taken["numbers"]
        found = np.full((len(rows), max(map(len, rows), default=0)), UNKNOWN, np.int64)
        for row, own in zip(found, rows, strict=True):
            row[: len(own)] = own
        return Input({"numbers": torch.from_numpy(found)}, torch.tensor([len(each) for each in rows]))

    def counts(self, y: Input) -> dict[str, int]:
        return {"labels": int((y.values["numbers"] >= 0).sum())}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Cross-entropy, summed over the places that have a label."""
        smoothing = self.config.smoothing if learning else 0.0
        scores, wanted = self._scores(model, states, y)
        kept = wanted.flatten() >= 0
        scores, wanted = scores.flatten(0, 1)[kept], wanted.flatten()[kept]
        return {"labels": Term(F.cross_entropy(scores.float(), wanted, reduction="sum", label_smoothing=smoothing))}

    def losses(self, model: Model, states: States, y: Input) -> torch.Tensor:
        scores, wanted = self._scores(model, states, y)
        each = F.cross_entropy(scores.mT.float(), wanted, reduction="none", ignore_index=UNKNOWN)
        return torch.stack([each.sum(1), (wanted >= 0).sum(1).to(each.dtype)], 1)

    def adds(self) -> list[str]:
        return [f"label smoothing ({self.config.smoothing:g})"] if self.config.smoothing else []

    def results(self, scores: torch.Tensor, lengths: Sequence[int]) -> list[Result]:
        """The likeliest label of each place, from scores (B,T,n) of which each row has so many."""
        logs = scores.float().log_softmax(-1)
        likeliest = logs.max(-1)
        rows = zip(likeliest.indices.tolist(), likeliest.values.tolist(), logs.exp().tolist(), lengths, strict=True)
        return [self._result(best[:n], logs[:n], shares[:n]) for best, logs, shares, n in rows]

    def told(self, taken: Taken) -> None:
        """None: a row of labels does not come again."""

    @staticmethod
    def cell(text: Any, folder: Path) -> tuple[str | None, ...]:
        """Labels with spaces between them, ? for one that is not known."""
        return tuple(None if each == "?" else each for each in str(text).split())

    @staticmethod
    def cells(raw: Any, folder: Path) -> list[str]:
        return [" ".join("?" if each is None else each for each in raw)]

    @staticmethod
    def identity(raw: Any) -> bytes:
        return repr(tuple(raw)).encode()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        numbers = column.array("numbers")
        counts = np.bincount(numbers[numbers >= 0], minlength=len(self.names)).tolist()
        shown = ", ".join(f"{name!r} {count:,}" for count, name in sorted(zip(counts, self.names, strict=True))[:12])
        return f"{len(self.names):,} labels of {sum(counts):,} places out of {len(numbers):,}: {shown}"

    def show(self, raw: Any) -> str:
        return _told([each or "?" for each in raw])

    def tallies(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Tally]:
        """Of every place that has a label: each counts as an example."""
        said, wanted = self._compared(results, raws)
        right = [each == label for each, label in zip(said, wanted, strict=True)]
        return {"accuracy": mean(np.array(right, np.float64)), "macro_f1": macro_f1(said, wanted, self.names)}

    def counted(self, raw: Any) -> int:
        """As many as places have a label."""
        return sum(each is not None for each in raw)

    def quick(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, float]:
        """Accuracy alone."""
        return {"accuracy": self.tallies(results, raws)["accuracy"].value}

    def beside(self, results: Sequence[Result], raws: Sequence[Any]) -> dict[str, Any]:
        """Precision, recall and F1 of each class with their intervals, the confusion matrix, and how many places."""
        said, wanted = self._compared(results, raws)
        found, within = confusion(said, wanted, self.names), class_intervals(said, wanted, self.names)
        classes = {label: {**each, "interval": within.get(label, {})} for label, each in found.classes().items()}
        return {"classes": classes, "confusion": found.described(), "places": len(wanted)}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The commonest label of the training places as the answer to everything."""
        numbers = train().array("numbers")
        name = self.names[int(np.bincount(numbers[numbers >= 0]).argmax())]
        raws = [row[-1] for row in rows]
        found = self.tallies([Result([name] * len(raw), name, 0.0) for raw in raws], raws)
        return {"what": f"always {name!r}", **{each: tally.value for each, tally in found.items()}}

    def _scores(self, model: Model, states: States, y: Input) -> tuple[torch.Tensor, torch.Tensor]:
        """The head's output (B,T,n) and the wanted numbers (B,T); refuses rows that have another length than X."""
        scores, wanted = model.say(states), y.values["numbers"]
        if scores.shape[:2] != wanted.shape:
            here, there = scores.shape[1], wanted.shape[1]
            raise SaccadeError(f"there should be a label, or none, for each of {here} places; got {there}")
        return scores, wanted

    def _result(self, numbers: list[int], logs: list[float], shares: list[list[float]]) -> Result:
        names = [self.names[each] for each in numbers]
        chances = [dict(zip(self.names, each, strict=True)) for each in shares]
        return Result(names, _told(names), sum(logs), probabilities=chances)

    def _compared(self, results: Sequence[Result], raws: Sequence[Any]) -> tuple[list[str | None], list[str]]:
        """Answers and wanted labels of all places that have one."""
        said: list[str | None] = []
        wanted: list[str] = []
        for result, raw in zip(results, raws, strict=True):
            answers = [None] * len(raw) if result.value is None else result.value
            known = [(one, label.strip()) for one, label in zip(answers, raw, strict=True) if label is not None]
            said += [one for one, _ in known]
            wanted += [label for _, label in known]
        return said, wanted


def _told(names: Sequence[str]) -> str:
    """The labels, or where they are many how often each is there."""
    if len(names) <= FEW:
        return " ".join(names)
    return ", ".join(f"{name} {count:,}" for name, count in Counter(names).most_common())
