"""`Task`: X to Y. It turns rows into batches, states into a loss, inputs into results, and says how good they are.

There is one class for all of them: what differs is in the fields, in the way through the corpus that Y names
(`saccade.data.rows`), in how an answer comes about (`answer`) and in what is learned beside the likelihood
(`objective`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from saccade.config import ModelConfig, read
from saccade.data.batch import random_of
from saccade.data.corpus import Corpus
from saccade.data.rows import Order, Picked, rows_of, unit_of
from saccade.data.supply import Supply, by_line
from saccade.error import SaccadeError
from saccade.field.field import Column, Field, Source, Streamed, Target, Term
from saccade.field.kinds import SOURCES
from saccade.field.label import LABELS
from saccade.field.result import Result
from saccade.field.text.spelling import spelled
from saccade.field.text.text import SPECIAL_FILE, Text
from saccade.model.feed import balance
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, Recipe, TrainConfig
from saccade.task.answer import Answer, answer_of
from saccade.task.batch import Batch, states_of
from saccade.task.inputs import named
from saccade.task.objective import Objective, objective_of
from saccade.task.pair import Pair, pair_of, pair_of_model

Files = Mapping[str, bytes]


class Task:
    """x: the fields of the inputs by name; y: that of the output, by `name`; None: the model is looked into alone."""

    def __init__(
        self,
        verb: str,
        x: Mapping[str, Source],
        name: str = "",
        y: Target | None = None,
        *,
        asks: str = "answer",
        objective: str | None = None,
    ) -> None:
        self.verb, self.x, self.name, self.y, self.asks = verb, dict(x), name, y, asks
        self.fields: dict[str, Field] = {**self.x, **({} if y is None else {name: y})}
        self.unit = unit_of(self.fields)
        self.rows = None if y is None else rows_of(y.rows, self.fields)
        self.answer: Answer = answer_of(self)
        self.objective: Objective | None = None if objective is None else objective_of(objective, self)

    @property
    def text(self) -> Text | None:
        """The vocabulary of its texts, where it has any."""
        return next((each.text for each in self.fields.values() if each.text is not None), None)

    @property
    def target(self) -> Target:
        """Y; refuses where there is none."""
        if self.y is None:
            told = f"there is no {LABELS}: without it nobody knows what the classes are called"
            raise SaccadeError(f"{told}; this model can be looked into alone")
        return self.y

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the embed, the vocabulary and the head that the fields ask for."""
        asked: dict[str, Any] = dict(self.target.model)
        for each in self.x.values():
            asked |= each.model
        if model.pool != "auto" or self.target.needs != "pooled":
            asked.pop("pool", None)
        if len(self.x) > 1:
            asked["embed"] = {name: each.model["embed"] for name, each in self.x.items()}
        written = self.target.model.get("embed", asked.get("embed"))
        if written != asked.get("embed"):  # a decoder that reads what it writes, beside another X
            asked["decoder_keys"] = {"embed": written, **model.decoder_keys}
        return model.model_copy(update={**asked, "head": self.target.head})

    def limits(self, model: Model) -> dict[str, int | None]:
        """How long an example may be in each column: what its field allows, and what the model has positions for."""
        if not self.x:
            return {}
        found = {name: _limit(each, model.room_of(name)) for name, each in self.x.items()}
        return found if self.y is None else {**found, self.name: _limit(self.y, model.room)}

    def limit(self, model: Model) -> int | None:
        """Of the first input; of an output that stands alone, what the model has positions for."""
        return model.room if not self.x else next(iter(self.limits(model).values()))

    def walk(
        self, corpus: Corpus, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Epoch, position and batch without end, from any place on."""
        assert self.rows is not None
        order = Order(config.batch, config.accumulate, seed)
        for number, place, picked in self.rows.walk(partial(self._seen, corpus, seed), order, epoch, position):
            yield number, place, self.batch(picked, random_of(seed, number, place))

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """Everything once."""
        assert self.rows is not None
        return (self.batch(picked) for picked in self.rows.whole(corpus.columns, Order(config.batch)))

    def batch(self, picked: Picked, draw: np.random.Generator | None = None) -> Batch:
        """The examples that were picked, as tensors; draw: random numbers of (seed, epoch, position)."""
        x = {name: each.collate(picked.taken[name], draw) for name, each in self.x.items()}
        y = self.target.collate(picked.taken[self.name], draw)
        return Batch(x, self.target.given(y, draw), y, self.target.counts(y), picked.lane, picked.fresh)

    def windowed(self, length: int) -> Task:
        """The same with windows of another length, where Y is one long stream."""
        y = self.target.windowed(length)
        return Task(self.verb, self.x, self.name, y, asks=self.asks)

    def closing(self, closed: bool) -> Task:
        """The same as data are read whose texts have an end, or none; an output after an X has its own."""
        if self.x:
            return self
        return Task(self.verb, {}, self.name, cast(Streamed, self.target).closing(closed), asks=self.asks)

    def terms(self, model: Model, batch: Batch, train: TrainConfig | None = None) -> dict[str, Term]:
        """The terms of the loss. train: while learning, with what the recipe adds for that: smoothing, a second pass
        that should agree, an objective, and how evenly experts are visited.
        """
        if train is None:
            return self.target.loss(model, states_of(model, batch), batch.y, learning=False)
        shown = batch.twice() if self.target.passes == 2 else batch
        with balance(model) as uneven:
            found = self.target.loss(model, states_of(model, shown), batch.y, learning=True)
        if self.objective is not None:
            found = self.objective.terms(model, batch, found)
        if uneven:
            found["balance"] = Term(torch.stack(uneven).mean(), train.balance * batch.count, told=False)
        return found

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """A result for each input, in their order; one that is empty or over-long gets a note instead."""
        return self.answer.predict(model, inputs, decode)

    def judge(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics of the results for rows, and what belongs beside them."""
        return self.answer.judge(model, rows, decode)

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """A cheap metric and a few (input, output), to be seen while training."""
        return self.answer.quick(model, rows, decode)

    def inputs(self, row: Sequence[Any]) -> Any:
        """What of a row is shown to the model: the one input, several by name, or a text to go on from."""
        if len(self.x) > 1:
            return dict(zip(self.x, row, strict=False))
        return row[0]

    def glimpse(self, rows: Sequence[Sequence[Any]]) -> Any:
        """A short input of rows, to try out a search on."""
        told = ((len(self.shown(self.inputs(row)).strip()) or 1 << 30, number) for number, row in enumerate(rows))
        row = rows[min(told)[1]]
        small = [each.glimpse(raw) for each, raw in zip(self.fields.values(), row, strict=True)]
        return self.inputs(small)

    def shown(self, value: Any) -> str:
        """An input in one line."""
        if len(self.x) > 1:
            return "; ".join(f"{name}: {each.show(value[name])}" for name, each in self.x.items())
        return next(iter(self.fields.values())).show(value)

    def sample(self, value: Any) -> str:
        """An input as it is kept with a run, to be offered again; of several, as JSON."""
        if len(self.x) > 1:
            return json.dumps({name: each.sample(value[name]) for name, each in self.x.items()}, ensure_ascii=False)
        return next(iter(self.fields.values())).sample(value)

    def cell(self, text: str, folder: Path) -> Any:
        """An input as a line of a file in a folder names it; of several, JSON's names and values."""
        return self._from(text, "line") if len(self.x) != 1 else next(iter(self.x.values())).cell(text, folder)

    def line(self, text: str) -> Any:
        """An input as the command line names it; of several, JSON's names and values."""
        return self._from(text, "line")

    def received(self, value: Any) -> Any:
        """An input as it comes over the network, where a string is never a path."""
        return self._from(value, "received")

    def _from(self, value: Any, door: str) -> Any:
        if not self.x:
            return value
        if len(self.x) == 1:
            return getattr(next(iter(self.x.values())), door)(value)
        given = named(_table(value) if isinstance(value, str) else value, self.x)
        return {name: getattr(each, door)(given[name]) for name, each in self.x.items()}

    def _seen(self, corpus: Corpus, seed: int, epoch: int) -> Mapping[str, Column]:
        """The columns as an epoch shows them."""
        unmerging = {name: each.unmerging for name, each in self.fields.items() if each.unmerging is not None}
        return spelled(corpus.columns, unmerging, seed, epoch)


def files_of(pair: Pair, supply: Supply) -> dict[str, bytes]:
    """The fields of a pair, made from its training rows, as the files of a run; columns that share a file are read
    together, row by row.
    """
    columns: dict[str, list[int]] = {}
    for number, (name, part) in enumerate(pair.parts.items()):
        columns.setdefault(part.kind.stored(name), []).append(number)
    parts = list(pair.parts.values())
    return {file: made(parts[numbers[0]], supply, numbers) for file, numbers in columns.items()}


def made(part: Any, supply: Supply, numbers: Sequence[int]) -> bytes:
    """One file of a field, from its columns of the training rows."""
    rows = supply.everything() if part.kind.everything else supply.once()
    content: bytes = part.kind.made(part.config, (row[number] for row in rows for number in numbers))
    return content


def along(pair: Pair, supply: Supply, files: Files, source: str) -> dict[str, bytes]:
    """The fields of a pair with those that come along with weights to start from; the others are the new data's."""
    found: dict[str, bytes] = {}
    for number, (name, part) in enumerate(pair.parts.items()):
        file = part.kind.stored(name)
        if file in found:
            continue
        if not part.kind.along:
            found[file] = made(part, supply, [number])
        elif file not in files:
            raise SaccadeError(f"{source} has no {file}: its weights belong to one that is not there")
        else:
            found |= {each: files[each] for each in (file, SPECIAL_FILE) if each in files}
    return found


def task_of(recipe: Recipe, files: Files, model: ModelConfig | None = None) -> Task:
    """The task of a recipe with the fields in a run's files; model: the one it runs on, if not the recipe's."""
    pair, config = pair_of(recipe), model or recipe.model
    needs = pair.y.kind.needs
    x = {name: part.kind.load(part.config, files, name, needs) for name, part in pair.x.items()}
    manner = {} if x else {"closed": by_line(recipe.data), "remembers": config is not None and config.memory > 0}
    y = pair.y.kind.load(pair.y.config, files, pair.name, **manner)
    return Task(pair.verb, x, pair.name, y, asks=pair.asks, objective=recipe.train.objective)


def task_of_model(config: ModelConfig, files: Files) -> Task:
    """The task of a model from elsewhere: what its stacks can do."""
    pair = pair_of_model(config, LABELS in files)
    if pair is None:
        kind = SOURCES["text"]
        return Task("read", {"source": kind.load(read(kind.keys, {"limit": None}), files, "source", None)})
    x = {name: part.kind.load(part.config, files, name, pair.y.kind.needs) for name, part in pair.x.items()}
    y = pair.y.kind.load(pair.y.config, files, pair.name, **({} if x else {"framed": True}))
    return Task(pair.verb, x, pair.name, y, asks=pair.asks)


def _table(text: str) -> Any:
    """Several inputs by name, as JSON writes them."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # which is no table, and is told so


def _limit(field: Field, room: int | None) -> int | None:
    """The longest example of a field for a stack that has so many positions; where all are as long, its own alone."""
    ragged = any(array.ragged for array in field.arrays.values())
    found = (field.limit, room - field.around if room is not None and ragged else None)
    return min((each for each in found if each is not None), default=None)
