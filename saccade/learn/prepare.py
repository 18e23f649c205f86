"""From a recipe to what is needed before the first step: the data, the fields, the task, the model and the corpora, in
this order, and a report to read.

A run begins with new weights (`begin`) or with those of another run (`start`), or it goes on (`resume`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.corpus import Corpus
from saccade.data.fresh import Examples
from saccade.data.report import report
from saccade.data.supply import Supply
from saccade.error import SaccadeError
from saccade.learn.corpora import RowCounter, corpus_of, extent_of, training_of
from saccade.learn.cost import trained
from saccade.learn.footprint import refuse_batch, refuse_model
from saccade.learn.scale import by_data
from saccade.learn.survey import Survey, survey
from saccade.learn.tuned import tuned
from saccade.model.model import Model
from saccade.recipe import Recipe
from saccade.recipes.read import at_size
from saccade.store.load import load
from saccade.store.run import Run
from saccade.task import objective
from saccade.task.pair import Pair, along_with, pair_of, tables_of_model
from saccade.task.task import Task, fields_along, task_of
from saccade.words.embedding import begin as begin_table
from saccade.words.vectors import Vectors
from saccade.words.vectors import load as load_vectors
from saccade.zoo.fit import exportable

Say = Callable[[str], None]
FORMAT = 2  # of what a run says of its data; the first had other arrays, and so other fingerprints
SHOWN = 100  # validation examples that a quick metric looks at


class Prepared(NamedTuple):
    """Everything that the loop needs."""

    run: Run
    task: Task
    supply: Supply
    train: Examples
    val: Corpus
    rows: list[tuple[Any, ...]]  # the first of the validation split, for cheap metrics and samples while training
    extent: int  # of the validation split, in a unit that does not depend on the fields (characters)
    leaks: Mapping[str, Mapping[str, int]]  # by column and split; empty for a run that goes on, which counts none
    duplicates: int | None = None  # training rows that are copies of an earlier one, where they were counted


def prepare(recipe: Recipe, say: Say) -> Prepared:
    """The parts of a new run, at the size that its training data ask for where the recipe has sizes."""
    recipe = at_size(recipe, by_data(recipe, say)[0])
    return begin(recipe, say) if recipe.start is None else start(recipe, say)


def begin(recipe: Recipe, say: Say) -> Prepared:
    """A new run whose weights are drawn."""
    pair = pair_of(recipe)
    supply = pair.supply(recipe)
    vectors = load_vectors(recipe.train.embedding) if recipe.train.embedding else None
    config = _model_of(recipe)
    _check(recipe, pair, config)
    # Refuses a wrong part of the model, and one that is too large, before the data are read, which may take long.
    refuse_model(recipe, config.model_copy(update={"vocab": config.vocab or 1}))
    say("reading the training data")
    seen = survey(pair, supply, None, RowCounter("training data", say))
    task = task_of(recipe, seen.files, config)
    _check_labels(seen, supply, task, say)
    model = _new_model(task, task.configure(config), recipe)
    if vectors is not None:
        _embed(model, task, vectors, str(recipe.train.embedding), say)
    run = _new_run(recipe, model, task, seen.files)
    return _prepared(recipe, run, supply, say, seen)


def start(recipe: Recipe, say: Say) -> Prepared:
    """A new run that begins with the weights, and the fields, of another."""
    pair = pair_of(recipe)
    supply = pair.supply(recipe)
    source = _load_start(str(recipe.start))
    if source.quantised is not None:
        raise SaccadeError(
            f"{recipe.start} holds {source.quantised} weights, which do not train: start from what they were made of"
        )
    config = tuned(source, recipe, say)
    _check(recipe, pair, config)
    along = fields_along(pair, source.files, str(recipe.start))
    seen = survey(pair, supply, along, RowCounter("training data", say))
    inheriting = along_with(recipe, _tables(source))
    task = task_of(inheriting, seen.files, config)
    _check_labels(seen, supply, task, say)
    model = _new_model(task, _configured(config, task), recipe)
    _copy_weights(source.model, model, say)
    run = _new_run(inheriting, model, task, seen.files)
    prepared = _prepared(recipe, run, supply, say, seen)
    run.about["trained"] = trained(source)  # what the weights cost before this training
    return prepared


def resume(recipe: Recipe, files: dict[str, bytes], say: Say) -> Prepared:
    """The parts of a run that goes on: the recipe and the fields are those of its folder, and a checkpoint has its
    weights.
    """
    pair = pair_of(recipe)
    supply = pair.supply(recipe)
    config = _model_of(recipe)
    _check(recipe, pair, config)
    task = task_of(recipe, files, config)
    model = _new_model(task, _configured(config, task), recipe)
    return _prepared(recipe, _new_run(recipe, model, task, files), supply, say)


def _model_of(recipe: Recipe) -> ModelConfig:
    assert recipe.model is not None  # a recipe has a model or a start, and this one has no start
    return recipe.model


def _check(recipe: Recipe, pair: Pair, config: ModelConfig) -> None:
    """Refuses a model or an objective that does not fit this pair, before any data is read."""
    pair.check(config, recipe.start)
    if recipe.train.objective is not None:
        objective.check(recipe.train.objective, pair)


def _configured(config: ModelConfig, task: Task) -> ModelConfig:
    """The model as the task needs it; a table of tokens that is longer than the tokenizer's vocabulary stays so."""
    asked = task.configure(config)
    return asked.model_copy(update={"vocab": max(asked.vocab, config.vocab)})


def _new_model(task: Task, config: ModelConfig, recipe: Recipe) -> Model:
    task.target.fits(config)
    refuse_model(recipe, config)
    torch.manual_seed(recipe.seed)
    return Model(config)


def _embed(model: Model, task: Task, vectors: Vectors, folder: str, say: Say) -> None:
    """Begins the rows of tokens that are words with the vectors of these words."""
    if task.text is None:
        raise SaccadeError("train.embedding brings vectors of words, and no field here is a text: leave it out")
    known = begin_table(cast(Tensor, model.table), task.text, vectors)
    say(f"embedding: {known:,} of {model.config.vocab:,} tokens begin with the vectors of {folder}")


def _new_run(recipe: Recipe, model: Model, task: Task, files: dict[str, bytes]) -> Run:
    task.target.fits_room(model.room)
    made = recipe.model_copy(update={"model": model.config, "start": None, "changes": None})
    return Run(model, recipe=made, files=files, task=task)


def _prepared(recipe: Recipe, run: Run, supply: Supply, say: Say, seen: Survey | None = None) -> Prepared:
    """The run with its corpora, and what its manifest says of them. recipe: as the caller gave it."""
    train, val = training_of(recipe, supply, run, say), corpus_of(recipe, supply, run, "val", say)
    refuse_batch(recipe, run.task, run.model, train)
    run.about = {
        "asked": recipe.model_dump(mode="json", exclude_none=True),
        "data": {"train": train.fingerprint, "val": val.fingerprint, "made_of": supply.made_of(), "format": FORMAT},
    }
    rows = supply.rows("val")
    first = list(islice(rows, SHOWN))
    extent = extent_of(run.task, chain(first, rows), val)
    leaks, duplicates = ({}, None) if seen is None else (seen.leaks, seen.duplicates)
    return Prepared(run, run.task, supply, train, val, first, extent, leaks, duplicates)


def _check_labels(seen: Survey, supply: Supply, task: Task, say: Say) -> None:
    """Refuses held-out labels that no training row has, and warns of a label that may be a header: both before hours of
    training.
    """
    if not task.target.everything:
        return
    for split in supply.separate:
        for number, row in enumerate(supply.rows(split), 1):
            try:
                task.target.encode([row[-1]])
            except SaccadeError as problem:
                raise SaccadeError(f"{split}, example {number:,}: no training row has this; {problem}") from None
    if seen.header is not None:
        found = f"the label of the first line, {seen.header!r}, stands in no other"
        say(f"{found}: if that line is a header, name its columns (data.columns)")


def say_report(prepared: Prepared, say: Say) -> None:
    """The corpus and the model in a few lines."""
    task, supply = prepared.task, prepared.supply
    pieces = not task.x and not supply.by_line
    for name, each in (("train", prepared.train), ("val", prepared.val)):
        first, *rest = report(each, task.fields, whole=pieces).lines()
        say(f"{name}: {first}")
        for line in rest:
            say(line)
    for line in _cramped(prepared):
        say(line)
    if supply.data.files:
        say(f"leakage: {'; '.join(_leaks(prepared)) or 'none'}")
    if prepared.duplicates is not None:
        copies = (
            f"{prepared.duplicates:,} training rows are copies of an earlier one" if prepared.duplicates else "none"
        )
        say(f"duplicates: {copies}")
    model = prepared.run.model
    count = sum(each.numel() for each in model.parameters())
    depth = model.config.encoder + model.config.decoder
    say(f"model: {count:,} parameters, {depth} layers, width {model.config.width}, {model.config.heads} heads")
    say(f"export: {exportable(model.config)}")
    if differs := _only_in_training(task, model.config):
        say(f"loss: in training with {differs}, in validation without")


def _only_in_training(task: Task, config: ModelConfig) -> str:
    """What raises the loss of training above that of validation, in words; empty where both are the same."""
    drops = [f"dropout {config.dropout:g}"] if config.dropout else []
    drops += [f"attention dropout {config.attention_dropout:g}"] if config.attention_dropout else []
    return " and ".join([*(each for field in task.fields.values() for each in field.adds()), *drops])


def _cramped(prepared: Prepared) -> list[str]:
    """What a second loss along the states of X leaves out, where X is one input."""
    task, train = prepared.task, prepared.train
    known = [each.vectors(train.column(name)) for name, each in task.x.items()]
    if len(known) != 1 or known[0] is None:
        return []
    count = task.target.cramped(train.column(task.name), known[0])
    told = f"ctc: {count:,} of {len(train):,} training texts have more letters, and blanks between equal ones, than"
    return [f"{told} their {next(iter(task.x.values())).noun} has states: attention alone learns them"] if count else []


def _leaks(prepared: Prepared) -> list[str]:
    """A line for each column and split of which examples are in the training data too; in translation also for targets,
    which may stand there with other sources.
    """
    kinds, splits = prepared.supply.kinds, prepared.supply.splits[1:]
    counts = ((split, kinds[column].held, each[split]) for split in splits for column, each in prepared.leaks.items())
    return [f"{count:,} {held} of {split} are in the training data too" for split, held, count in counts if count]


def _tables(source: Run) -> list[Mapping[str, Any]]:
    """The tables of the fields of a run; of one from elsewhere, what its model and files say of what it reads."""
    if source.recipe is not None:
        return [source.recipe.y, *source.recipe.x.values()]
    return tables_of_model(source.model.config, source.files)


def _load_start(path: str) -> Run:
    if not Path(path).is_dir():
        raise SaccadeError(f"start: {path} is no folder: train what it goes on from first, or give -o start=FOLDER")
    return load(path)


def _copy_weights(source: Model, model: Model, say: Say) -> None:
    """Copies the weights that both models have; those of a new head stay as they were drawn, and `say` names them."""
    theirs = source.tensors()
    new = []
    with torch.no_grad():
        for name, own in model.tensors().items():
            if name in theirs and theirs[name].shape == own.shape:
                own.copy_(theirs[name])
            elif name in theirs and not name.startswith("head."):
                shapes = f"{tuple(theirs[name].shape)} there, {tuple(own.shape)} here"
                raise SaccadeError(f"{name} does not fit: {shapes}; does the tokenizer belong to the weights?")
            else:
                new.append(name)
    if new:
        say(f"new, not taken over: {', '.join(new)}")
