"""A label as Y: one of several names, from a pooled state (Devlin et al. 2019)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from saccade.config import Config, ModelConfig
from saccade.error import SaccadeError, nearest
from saccade.field.confusion import class_intervals, confusion, macro_f1
from saccade.field.field import Array, Column, Encoded, PooledTarget, Taken, Term
from saccade.field.loss import score_loss
from saccade.field.result import Result
from saccade.field.tally import Tally, mean
from saccade.field.text.target import added, differs
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.zoo.special import label_options

LABELS = "labels.json"
SHOWN = 12  # labels that the report names


class LabelConfig(Config):
    """The keys of a label in a recipe."""

    kind: Literal["label"] = Field("label", description="label")
    smoothing: float = Field(0.0, ge=0, lt=1, description="the share that all labels have alike")
    agree: float = Field(
        0.0,
        ge=0,
        description="how much two passes under dropout should say the same (R-Drop); a step takes twice as long",
    )


class Label(PooledTarget):
    """Names of classes as numbers, in their order: that of the alphabet where they are gathered from rows."""

    kind: ClassVar[str] = "label"
    keys: ClassVar[type[LabelConfig]] = LabelConfig
    blends: ClassVar[bool] = True
    along: ClassVar[bool] = False
    everything: ClassVar[bool] = True
    unit, noun = "labels", "label"
    answer, main, known = "likeliest", "accuracy", ("accuracy", "macro_f1")
    drawn = "confusion"

    def __init__(self, names: Iterable[str], config: LabelConfig | None = None) -> None:
        self.names, self.config = list(names), config or LabelConfig()  # type: ignore[call-arg]
        if not self.names:
            raise SaccadeError("there is no row with an input and a label: each was left out, or there is none")
        if len(self.names) < 2:
            raise SaccadeError(f"there is only one label ({self.names[0]!r}): there is nothing to learn")
        self._numbers = {name: number for number, name in enumerate(self.names)}
        if len(self._numbers) < len(self.names):
            raise SaccadeError(f"two classes have the same name: {sorted(self.names)}")
        self.head, self.passes = f"label({len(self.names)})", 2 if self.config.agree else 1

    @classmethod
    def stored(cls, column: str) -> str:
        """The names as JSON."""
        return LABELS

    @staticmethod
    def made(config: LabelConfig, raws: Iterable[str]) -> bytes:
        """The different labels of the rows, in the order of the alphabet."""
        return Label(sorted({each.strip() for each in raws})).to_bytes()

    @classmethod
    def load(cls, config: LabelConfig, files: Mapping[str, bytes], column: str) -> Label:
        if LABELS not in files:
            raise SaccadeError(f"there is no {LABELS}: without it nobody knows what the classes are called")
        return cls.from_bytes(files[LABELS], config)

    def to_bytes(self) -> bytes:
        """The names as JSON."""
        return json.dumps(self.names, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, content: bytes, config: LabelConfig | None = None) -> Label:
        """The labels that `to_bytes` wrote down."""
        try:
            names = json.loads(content)
        except ValueError as problem:
            raise SaccadeError(f"these are no labels: {problem}") from None
        if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
            raise SaccadeError("these are no labels: a JSON list of names was expected")
        return cls(names, config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        return {"number": Array("<u4")}

    @property
    def published(self) -> dict[str, Any]:
        """What a Hugging Face config.json says of it: the names of the classes."""
        return label_options(self.names)

    def fits(self, config: ModelConfig) -> None:
        differs(config, self.config.agree)

    def number(self, name: str) -> int:
        if name not in self._numbers:
            raise SaccadeError(f"there is no label {name!r}; {nearest(name, self.names)}")
        return self._numbers[name]

    def encode(self, raws: Sequence[str]) -> Encoded:
        """The number of each; spaces around a name do not count."""
        return {"number": [self.number(each.strip()) for each in raws]}

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """Numbers (B,)."""
        return Input({"number": torch.from_numpy(taken["number"].astype(np.int64))})

    def blended(self, given: Input, other: torch.Tensor, share: torch.Tensor) -> Input:
        """Two numbers, and the share of the first."""
        number = given.values["number"]
        return Input({"number": number, "other": number[other], "share": share})

    def counts(self, y: Input) -> dict[str, int]:
        return {"label": y.rows}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Cross-entropy, summed over the examples; of blended ones, that of both labels by their shares."""
        smoothing, agree = (self.config.smoothing, self.config.agree) if learning else (0.0, 0.0)
        scores = model.say(states).unflatten(0, (-1, y.rows))
        each = score_loss(scores, y.values["number"], smoothing, agree)
        if "other" in y.values:
            each = score_loss(scores, y.values["other"], smoothing, agree).lerp(each, y.values["share"].to(each))
        return {"label": Term(each.sum())}

    def losses(self, model: Model, states: States, y: Input) -> torch.Tensor:
        each = score_loss(model.say(states)[None], y.values["number"])
        return torch.stack([each, torch.ones_like(each)], 1)

    def adds(self) -> list[str]:
        return added(self.config.smoothing, self.config.agree)

    def likely(self, scores: torch.Tensor, said: Result) -> torch.Tensor:
        """The log-probability of a label in each row of scores (B,n)."""
        return scores.log_softmax(-1)[:, self.number(said.text)]

    def matters(self, said: Result) -> str:
        return f"the log-probability of the label {said.text!r}"

    def results(self, scores: torch.Tensor) -> list[Result]:
        """The likeliest label of each row of scores (B,n), and the probabilities of all."""
        logs = scores.float().log_softmax(-1)
        best, ranked = logs.max(-1), logs.exp().sort(-1, descending=True)
        rows = zip(best.indices.tolist(), best.values.tolist(), *(each.tolist() for each in ranked), strict=True)
        return [self._result(*row) for row in rows]

    def told(self, taken: Taken) -> list[Result]:
        names = [self.names[each] for each in taken["number"].tolist()]
        return [Result(name, name, 0.0) for name in names]

    def _result(self, number: int, score: float, shares: list[float], order: list[int]) -> Result:
        """The result of one row: its best label, and the probabilities of all in their order."""
        name = self.names[number]
        chances = {self.names[each]: share for each, share in zip(order, shares, strict=True)}
        return Result(name, name, score, probabilities=chances)

    @staticmethod
    def cell(text: str, folder: Path) -> str:
        """The name; spaces around it do not count."""
        return text.strip()

    @staticmethod
    def identity(raw: str) -> bytes:
        return raw.encode()

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """How many examples each label has, the rarest first: 0 where a label stands in held-out rows only."""
        counts = np.bincount(column.array("number"), minlength=len(self.names)).tolist()
        ranked = sorted(zip(counts, self.names, strict=True))
        shown = ", ".join(f"{name!r} {count:,}" for count, name in ranked[:SHOWN])
        more = f", and {len(self.names) - SHOWN:,} more often" if len(self.names) > SHOWN else ""
        return f"{len(self.names):,} labels: {shown}{more}"

    def tallies(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Tally]:
        said, wanted = _compared(results, raws)
        right = [each == label for each, label in zip(said, wanted, strict=True)]
        return {"accuracy": mean(np.array(right, np.float64)), "macro_f1": macro_f1(said, wanted, self.names)}

    def quick(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, float]:
        """Accuracy alone: of a few examples, the F1 of a class says little."""
        return {"accuracy": self.tallies(results, raws)["accuracy"].value}

    def beside(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Any]:
        """Precision, recall and F1 of each class with their intervals, and the confusion matrix."""
        compared = (*_compared(results, raws), self.names)
        found, within = confusion(*compared), class_intervals(*compared)
        classes = {label: {**each, "interval": within.get(label, {})} for label, each in found.classes().items()}
        return {"classes": classes, "confusion": found.described()}

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The commonest label of the training rows as the answer to everything."""
        name = self.names[int(np.bincount(train().array("number")).argmax())]
        found = self.tallies([Result(name, name, 0.0)] * len(rows), [row[-1] for row in rows])
        return {"what": f"always {name!r}", **{each: tally.value for each, tally in found.items()}}


def _compared(results: Sequence[Result], raws: Sequence[str]) -> tuple[list[str | None], list[str]]:
    """Answers (None: there is none) and wanted labels, without spaces around them."""
    return [each.text.strip() or None for each in results], [raw.strip() for raw in raws]
