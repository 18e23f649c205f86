"""`Task`: a pair of fields, X to Y. It says what a batch is, what a loss, what a result, and how good it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.corpus import Corpus
from saccade.data.field import Field, Label, Text
from saccade.data.supply import Supply
from saccade.decode.sequence import Sequence as Written
from saccade.error import SaccadeError
from saccade.model.model import Model
from saccade.recipe import DataConfig, DecodeConfig, TrainConfig
from saccade.task.answer import Answer
from saccade.task.batch import Batch, Result
from saccade.task.classify import Classify
from saccade.task.translate import Translate
from saccade.task.write import Write

# The fields of a run, as files; the last where its model comes from elsewhere: {"pad": [0], "begin": ..., "end": ...}
TOKENIZER, LABELS, SPECIAL = "tokenizer.json", "labels.json", "special.json"


class Task(Protocol):
    """What every task does; each says how in its own file."""

    text: Text
    columns: tuple[str, ...]

    @property
    def fields(self) -> dict[str, Field]:
        """The field of each column of a corpus."""

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the vocabulary and the head that the task asks for."""

    def walk(
        self, corpus: Corpus, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Epoch, position and batch without end, from any place on."""

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """Everything once."""

    def loss(self, model: Model, batch: Batch, smoothing: float = 0.0, agree: float = 0.0) -> Tensor:
        """Summed over what is wanted; with agree, of two passes that should say the same."""

    def measures(self, loss: float, count: int, characters: int) -> Mapping[str, float]:
        """What a mean loss over `count` predictions says."""

    def predict(
        self, model: Model, inputs: Sequence[str], decode: DecodeConfig, limit: int | None = None
    ) -> list[Result]:
        """A result for each input, in their order; limit: the tokens of the longest input."""

    def read(self, text: str, limit: int | None = None) -> list[int]:
        """The tokens that a model is shown of one input; refuses one that is empty or over-long."""

    def write(self, model: Model, read: list[int], decode: DecodeConfig) -> Written | None:
        """What a model writes that was shown these tokens; None: it writes nothing, but names a label."""

    def stream(self, model: Model, text: str, decode: DecodeConfig, limit: int | None = None) -> Iterator[str]:
        """The result for one input, piece by piece, as soon as each is certain."""

    def judge(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics of the results for rows of inputs and references, and what belongs beside them."""

    def quick(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """A cheap metric and a few (input, output), to be seen while training."""


def fields_of(name: str, supply: Supply, data: DataConfig) -> dict[str, bytes]:
    """The fields of a task, made from its training rows, as the files of a run."""

    def text(texts: Iterable[str]) -> bytes:
        return Text.train(texts, data.tokenizer, vocab=data.vocab, lower=data.lower).to_bytes()

    if name == "classify":
        labels = Label.train(supply.labels()).to_bytes()
        return {TOKENIZER: text(row[0] for row in supply.rows("train")), LABELS: labels}
    return {TOKENIZER: text(supply.texts())}


def text_of(files: Mapping[str, bytes]) -> Text:
    """The texts of a run, by its files."""
    if TOKENIZER not in files:
        raise SaccadeError(f"there is no {TOKENIZER}: without its tokenizer a model cannot read text")
    return Text.from_bytes(files[TOKENIZER], json.loads(files[SPECIAL]) if SPECIAL in files else None)


def task_of(
    name: str,
    files: Mapping[str, bytes],
    language: str = "en",
    *,
    ask: str | None = None,
    segment: int | None = None,
    framed: bool = False,
) -> Task:
    """The task of this name with the fields in a run's files.

    ask: the token before the answers, where they alone count; segment: its tokens, where a model remembers others;
    framed: texts to go on from are read with what their tokenizer puts around them.
    """
    text = text_of(files)
    if name == "classify":
        if LABELS not in files:
            raise SaccadeError(f"there is no {LABELS}: without it nobody knows what the classes are called")
        return Classify(text, Label.from_bytes(files[LABELS]))
    if name == "translate":
        return Translate(text, language)
    if ask is not None:
        return Answer(text, ask, segment=segment)
    return Write(text, remembers=segment is not None, framed=framed)
