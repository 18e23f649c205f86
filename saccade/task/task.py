"""`Task`: X to Y. It turns rows into batches, states into a loss, inputs into results, and says how good they are.

There is one class for all tasks. They differ in their fields, in the way through the corpus that Y names
(`saccade.data.rows`), in how an answer is made (`answer`) and in what is learned in training alone (`objective`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from saccade.config import ModelConfig
from saccade.data.batch import random_of
from saccade.data.corpus import Corpus
from saccade.data.fresh import Examples
from saccade.data.rows import Batching, Picked, rows_of, unit_of
from saccade.data.supply import by_line
from saccade.error import SaccadeError
from saccade.field.field import Column, Field, Source, StreamTarget, Target, Term
from saccade.field.result import Result
from saccade.field.text.blanks import fills
from saccade.field.text.text import SPECIAL_FILE, Text
from saccade.field.text.unmerge import unmerged_columns
from saccade.model.feed import balance
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, Recipe, TrainConfig
from saccade.task.answer import Answer, Judgement
from saccade.task.answers.kinds import answer_of
from saccade.task.batch import Batch, states_of
from saccade.task.inputs import named
from saccade.task.objective import Objective, objective_of
from saccade.task.pair import Pair, pair_of, pair_of_model, part_of_model

Files = Mapping[str, bytes]


class Task:
    """x: the fields of the inputs by name; y: that of the output, called `name`; None: the model is only looked at."""

    def __init__(
        self,
        verb: str,
        x: Mapping[str, Source],
        name: str = "",
        y: Target | None = None,
        *,
        asks: str = "answer",
        objective: str | None = None,
        lacks: str = "it has no output",
    ) -> None:
        """lacks: without a Y, what the model is, for the sentence that says what it can be used for."""
        self.lacks = lacks
        self.verb, self.x, self.name, self.y, self.asks = verb, dict(x), name, y, asks
        self.fields: dict[str, Field] = {**self.x, **({} if y is None else {name: y})}
        self.unit = unit_of(self.fields)
        if y is not None:
            y.joined(self.x)
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
            raise SaccadeError(
                f"{self.lacks}, so it gives no answers: look into it (saccade look FOLDER TEXT), take its "
                "vectors (run.model.encode in Python), or train it to give some (saccade train classify --files "
                "texts.tsv -o start=FOLDER)"
            )
        return self.y

    @property
    def judged(self) -> str | None:
        """The metric of its objective by which the best checkpoint is chosen; None: that is the loss."""
        return None if self.objective is None else self.objective.judged

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the embed, the vocabulary and the head that the fields ask for."""
        asked: dict[str, Any] = dict(self.target.asked_of(model))
        own = asked.get("embed")
        *others, last = self.x.values() if self.x else [self.target]
        for each in others:
            asked |= each.model if model.join == "one" else _without_pool(each.model)
        asked |= last.model
        chosen = (
            model.pool != "auto" or model.class_tokens
        )  # the recipe's own pool, or class token, goes before a field's
        if chosen or self.target.needs != "pooled":
            asked.pop("pool", None)
        if len(self.x) > 1:
            asked["embed"] = {name: each.model["embed"] for name, each in self.x.items()}
        written = own or asked.get("embed")
        if written != asked.get("embed"):  # a decoder reads its own tokens, whatever X is
            asked["decoder_keys"] = {"embed": written, **model.decoder_keys}
        return model.model_copy(update=asked)

    def limits(self, model: Model) -> dict[str, int | None]:
        """How long an example may be in each column: what its field allows, and what the model has positions for."""
        if not self.x:
            return {}
        found = {name: _limit(each, model.room_of(name)) for name, each in self.x.items()}
        return found if self.y is None else {**found, self.name: _limit(self.y, model.room)}

    def limit(self, model: Model) -> int | None:
        """How long the first input may be; without an X, how many positions the model has."""
        return model.room if not self.x else next(iter(self.limits(model).values()))

    def walk(
        self, corpus: Examples, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Epoch, position and batch without end, from any place on."""
        assert self.rows is not None
        batching = Batching(config.batch, config.accumulate, seed)
        for number, place, picked in self.rows.walk(partial(self._columns_of, corpus, seed), batching, epoch, position):
            yield number, place, self.batch(picked, random_of(seed, number, place))

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """All batches of a corpus, every example once."""
        assert self.rows is not None
        return (self.batch(picked) for picked in self.rows.whole(corpus.columns, Batching(config.batch)))

    def batch(self, picked: Picked, draw: np.random.Generator | None = None) -> Batch:
        """Picked examples as tensors; draw: random numbers of (seed, epoch, position)."""
        x: Mapping[str, Input] = {name: each.collate(picked.taken[name], draw) for name, each in self.x.items()}
        y = self.target.collate(picked.taken[self.name], draw)
        if draw is not None:
            x, y = self.target.moved(x, y, draw)
        if draw is not None and self.objective is not None:
            x, y = self.objective.change(x, y, draw)
        return Batch(x, self.target.given(y, draw), y, self.target.counts(y), picked.lane, picked.fresh)

    def windowed(self, length: int) -> Task:
        """The same task with windows of another length, where Y is one long stream."""
        y = self.target.windowed(length)
        return Task(self.verb, self.x, self.name, y, asks=self.asks)

    def closing(self, closed: bool) -> Task:
        """The same task for data whose texts end with an end token, or not. After an X a text always has one."""
        if self.x:
            return self
        return Task(self.verb, {}, self.name, cast(StreamTarget, self.target).closing(closed), asks=self.asks)

    def terms(self, model: Model, batch: Batch, train: TrainConfig | None = None) -> dict[str, Term]:
        """The terms of the loss. train: in training, with what the recipe adds there: smoothing, a second pass that
        should agree, an objective, and how evenly experts are used.
        """
        if train is None:
            return self.target.loss(model, states_of(model, batch), batch.y, learning=False)
        shown = batch.twice() if self.target.passes == 2 else batch
        with balance(model) as uneven:
            found = self.target.loss(model, states_of(model, shown), batch.y, learning=True)
        if self.objective is not None:
            found = self.objective.terms(model, batch, found)
        if uneven:
            found["balance"] = Term(torch.stack(uneven).mean(), train.balance * batch.count, reported=False)
        return found

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """A result for each input, in their order; one that is empty or over-long gets a note instead."""
        return self.answer.predict(model, inputs, decode)

    def judge(self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig) -> Judgement:
        """The metrics of the results for rows, what belongs to them (signatures, intervals), and the results."""
        return self.answer.judge(model, rows, decode)

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """Cheap metrics and a few (input, output), for a validation while training."""
        return self.answer.quick(model, rows, decode)

    def inputs(self, row: Sequence[Any]) -> Any:
        """The part of a row that the model is shown: the one input, several by name, or a text to continue."""
        if len(self.x) > 1:
            return dict(zip(self.x, row, strict=False))
        return row[0]

    def glimpse(self, rows: Sequence[Sequence[Any]]) -> Any:
        """The beginning of the shortest input of rows that is not blank, to try out a search on."""
        sizes = ((len(self.shown(self.inputs(row)).strip()) or 1 << 30, number) for number, row in enumerate(rows))
        row = rows[min(sizes)[1]]
        small = [each.glimpse(raw) for each, raw in zip(self.fields.values(), row, strict=True)]
        return self.inputs(small)

    def shown(self, value: Any) -> str:
        """An input in one line."""
        if len(self.x) > 1:
            return "; ".join(f"{name}: {each.show(value[name])}" for name, each in self.x.items())
        return next(iter(self.fields.values())).show(value)

    def sample(self, value: Any) -> str:
        """An input as it is kept with a run, to be offered as an example; several as JSON."""
        if len(self.x) > 1:
            return json.dumps({name: each.sample(value[name]) for name, each in self.x.items()}, ensure_ascii=False)
        return next(iter(self.fields.values())).sample(value)

    def cell(self, text: str, folder: Path) -> Any:
        """An input from a line of a file in a folder; several as a JSON object by name."""
        if len(self.x) != 1:
            return self._parsed(text, "line")
        return _read_by(next(iter(self.x.values())), "cell", text, folder)

    def line(self, text: str) -> Any:
        """An input as the command line names it; several as a JSON object by name."""
        return self._parsed(text, "line")

    def received(self, value: Any) -> Any:
        """An input as it comes over the network, where a string is never a path."""
        return self._parsed(value, "received")

    def _parsed(self, value: Any, method: str) -> Any:
        """An input read by a method of its fields: `line` or `received`."""
        if not self.x:
            return value
        if len(self.x) == 1:
            return _read_by(next(iter(self.x.values())), method, value)
        given = named(_from_json(value) if isinstance(value, str) else value, self.x)
        return {name: _read_by(each, method, given[name]) for name, each in self.x.items()}

    def _columns_of(self, corpus: Examples, seed: int, epoch: int) -> Mapping[str, Column]:
        """The columns in an epoch: with rows drawn anew, and tokens taken apart anew, where that is asked for."""
        unmerging = {name: each.unmerging for name, each in self.fields.items() if each.unmerging is not None}
        return unmerged_columns(corpus.seen(epoch), unmerging, seed, epoch)


def _without_pool(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a field asks of a model that pools the states of another."""
    return {key: value for key, value in asked.items() if key not in ("pool", "pooler")}


def _read_by(field: Source, method: str, value: Any, *more: Any) -> Any:
    """An input read by a method of its field; one that is blank stays as it is, and gets a note later."""
    return value if field.blank(value) else getattr(field, method)(value, *more)


def fields_along(pair: Pair, files: Files, source: str) -> dict[str, bytes]:
    """The files of a pair's fields that come with the weights a run starts from; refuses weights without them."""
    found: dict[str, bytes] = {}
    for name, part in pair.parts.items():
        file = part.kind.stored(name)
        if not part.kind.along:
            continue
        if file not in files:
            raise SaccadeError(f"{source} has no {file}: its weights belong to one that is not there")
        found |= {each: files[each] for each in (file, SPECIAL_FILE) if each in files}
    return found


def task_of(recipe: Recipe, files: Files, model: ModelConfig | None = None) -> Task:
    """The task of a recipe, with the fields in a run's files; model: the one it runs on, if not the recipe's."""
    pair, config = pair_of(recipe), model or recipe.model
    needs = pair.y.kind.needs
    x = {name: part.kind.load(part.config, files, name, needs) for name, part in pair.x.items()}
    manner = {} if x else {"closed": by_line(recipe.data), "remembers": config is not None and config.memory > 0}
    y = pair.y.kind.load(pair.y.config, files, pair.name, **manner)
    return Task(pair.verb, x, pair.name, y, asks=pair.asks, objective=recipe.train.objective)


def task_of_model(config: ModelConfig, files: Files) -> Task:
    """The task of a model from elsewhere, by its stacks."""
    source = part_of_model(config, files)
    pair = pair_of_model(config, files, fills(files), source)
    if pair is None:
        x = {"source": source.kind.load(source.config, files, "source", None)}
        return Task("look", x, lacks=_without_output(config))
    x = {name: part.kind.load(part.config, files, name, pair.y.kind.needs) for name, part in pair.x.items()}
    y = pair.y.kind.load(pair.y.config, files, pair.name, **({} if x else {"framed": True}))
    return Task(pair.verb, x, pair.name, y, asks=pair.asks)


def _without_output(config: ModelConfig) -> str:
    """What a model is whose output means nothing here."""
    if config.head is None:
        return "this model is an encoder without a head"
    return f"this model is an encoder whose head, {config.head}, does not tell the names of what it predicts"


def _from_json(text: str) -> Any:
    """The JSON value of a text; a text that is no JSON stays one, and `named` then says what was expected."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _limit(field: Field, room: int | None) -> int | None:
    """The longest example of a field: by its own limit and, where lengths differ, by the positions of its stack."""
    ragged = any(array.ragged for array in field.arrays.values())
    found = (field.limit, room - field.around if room is not None and ragged else None)
    return min((each for each in found if each is not None), default=None)
