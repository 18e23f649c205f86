"""From a recipe to what is needed before the first step: fields, corpora, the model, and a report to read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data import corpus
from saccade.data.corpus import Corpus
from saccade.data.named import folders
from saccade.data.report import report
from saccade.data.supply import Supply
from saccade.error import SaccadeError
from saccade.learn.cost import trained
from saccade.model.model import Model
from saccade.recipe import Recipe
from saccade.store.run import Run, load
from saccade.task import objective
from saccade.task.pair import Pair, along_with, pair_of
from saccade.task.task import Task, along, files_of, task_of
from saccade.words.embedding import begin
from saccade.words.vectors import load as load_vectors
from saccade.zoo.build import build

Say = Callable[[str], None]
FORMAT = 2  # of what a run says of its data; the first had other arrays, and so other fingerprints
TOLD = 100_000  # rows between two lines about the making of a corpus
SHOWN = 100  # validation examples that a quick metric looks at


class Prepared(NamedTuple):
    """Everything but the loop."""

    run: Run
    task: Task
    train: Corpus
    val: Corpus
    rows: list[tuple[Any, ...]]  # the first of the validation split, to show what the model says of them
    extent: int  # of the validation split, in a unit that does not depend on the fields (characters)


def prepare(recipe: Recipe, say: Say, files: dict[str, bytes] | None = None) -> Prepared:
    """A new run's parts; `files` are the fields of a run that is gone on with, which are not made again."""
    pair = pair_of(recipe)
    supply, resumed = pair.supply(recipe), files is not None
    vectors = load_vectors(recipe.train.embedding) if recipe.train.embedding and not resumed else None
    begun = None if recipe.start is None or resumed else _start(recipe.start)
    config = _config(recipe, begun)
    pair.check(config)
    if recipe.train.objective is not None:
        objective.check(recipe.train.objective, pair)
    if files is None:
        files = _made(recipe, pair, supply, begun, config, say)
    task = task_of(recipe, files, config)
    if not resumed:
        _encodes(supply, task)
        _say_header(supply, task, say)
    torch.manual_seed(recipe.seed)
    wide, config = config.vocab, task.configure(config)
    if (begun is not None or resumed) and wide > config.vocab:  # tables are often longer than the tokenizer
        config = config.model_copy(update={"vocab": wide})
    task.target.fits(config)
    model = Model(config)
    if begun is not None:
        _take_over(model, begun.model, say)
    if vectors is not None:
        if task.text is None:
            raise SaccadeError("train.embedding brings vectors of words, and no field here is a text: leave it out")
        known = begin(cast(Tensor, model.table), task.text, vectors)
        say(f"embedding: {known:,} of {config.vocab:,} tokens begin with the vectors of {recipe.train.embedding}")
    told = recipe if begun is None or begun.recipe is None else along_with(recipe, begun.recipe)
    run = Run(model, recipe=told.model_copy(update={"model": model.config, "start": None}))
    run.files = files
    task.target.fits_room(model.room)
    train, val = (corpus_of(recipe, supply, run, each, say) for each in ("train", "val"))
    run.about = {
        "asked": recipe.model_dump(mode="json", exclude_none=True),
        "data": {"train": train.fingerprint, "val": val.fingerprint, "made_of": supply.made_of(), "format": FORMAT},
    }
    if begun is not None:
        run.about["trained"] = trained(begun)  # before this training
    rows = list(islice(supply.rows("val"), SHOWN))
    return Prepared(run, task, train, val, rows, extent_of(supply, task, val, "val"))


def _made(
    recipe: Recipe, pair: Pair, supply: Supply, begun: Run | None, config: ModelConfig, say: Say
) -> dict[str, bytes]:
    """The fields of a new run: from the weights to start from, or from the training rows."""
    if begun is None:
        build(config.model_copy(update={"vocab": config.vocab or 1}), device="meta")  # a wrong part is told now
        say("reading the training data")
        return files_of(pair, supply)
    if begun.quantised is not None:
        raise SaccadeError(
            f"{recipe.start} holds {begun.quantised} weights, which do not train: start from what they were made of"
        )
    return along(pair, supply, begun.files, str(recipe.start))


def say_report(prepared: Prepared, say: Say) -> None:
    """The corpus and the model in a few lines."""
    recipe, task = prepared.run.recipe, prepared.task
    assert recipe is not None
    supply = pair_of(recipe).supply(recipe)
    whole = not task.x and not supply.by_line
    for name, each in (("train", prepared.train), ("val", prepared.val)):
        first, *rest = report(each, task.fields, whole=whole).lines()
        say(f"{name}: {first}")
        for line in rest:
            say(line)
    if recipe.data.files:
        _say_leaks(supply, say)
    model = prepared.run.model
    count = sum(each.numel() for each in model.parameters())
    depth = model.config.encoder + model.config.decoder
    say(f"model: {count:,} parameters, {depth} layers, width {model.config.width}, {model.config.heads} heads")


def _encodes(supply: Supply, task: Task) -> None:
    """Refuses what is wanted in files of one's own for val and test and cannot be said, such as a label that no
    training row has, before hours of training.
    """
    if not task.target.everything:
        return
    for split in supply.splits[1:]:
        for number, row in enumerate(supply.rows(split), 1):
            try:
                task.target.encode([row[-1]])
            except SaccadeError as problem:
                raise SaccadeError(f"{split}, example {number:,}: no training row has this; {problem}") from None


def _say_header(supply: Supply, task: Task, say: Say) -> None:
    """Of a table whose columns nobody named: a label that only the first line has may be the name of a column."""
    if not supply.headed() or not task.target.everything:
        return
    counts = Counter(row[-1] for row in supply.everything())
    first = next(iter(counts))
    if counts[first] == 1 and len(counts) > 2:
        told = f"the label of the first line, {first!r}, stands in no other"
        say(f"{told}: if that line is a header, name its columns (data.columns)")


def supply_of(run: Run, recipe: Recipe) -> Supply:
    """The data that a run was trained on, to measure it; files that have changed since are refused."""
    made_of = run.about.get("data", {}).get("made_of", {})
    found = located(recipe, made_of, run.about.get("folder"))
    supply = pair_of(found).supply(found)
    if changed := supply.changed(made_of):
        raise SaccadeError(
            f"{', '.join(changed)} changed since the run was trained: a split of the new files may hold what it has "
            "learned; put the old ones back (evaluate takes others with --file and --against)"
        )
    return supply


def located(recipe: Recipe, made_of: Mapping[str, Any], folder: str | None) -> Recipe:
    """The recipe with its own files as they lie here or, where these are not those it was trained on, in the folder
    that it was begun in.
    """
    if folder is None or not recipe.data.files:
        return recipe
    roles = ("files", "validation", "test")
    there = {role: [str(Path(folder, each)) for each in getattr(recipe.data, role)] for role in roles}
    moved = recipe.model_copy(update={"data": recipe.data.model_copy(update=there)})
    return moved if not _unchanged(recipe, made_of) and _unchanged(moved, made_of) else recipe


def _unchanged(recipe: Recipe, made_of: Mapping[str, Any]) -> bool:
    try:
        return not pair_of(recipe).supply(recipe).changed(made_of)
    except SaccadeError:  # a file is not there
        return False


def corpus_of(recipe: Recipe, supply: Supply, run: Run, split: str, say: Say) -> Corpus:
    """A split as arrays on the disk, made once; run: whose fields read it."""
    task, limits = run.task.closing(supply.by_line), run.task.limits(run.model)
    options = {
        "made_of": supply.made_of(),
        **supply.reading(),
        "split": split,
        "share": recipe.data.share,
        "seed": recipe.seed,
        "pair": recipe.data.pair,
        "names": recipe.data.columns,
        "limits": limits,
        "fields": {name: hashlib.sha256(content).hexdigest() for name, content in run.files.items()},
        "arrays": {
            name: {key: list(each) for key, each in field.arrays.items()} for name, field in task.fields.items()
        },
        "encoding": {name: dict(field.encoding) for name, field in task.fields.items()},
    }
    key = corpus.key(**options)
    skipped: Counter[str] = Counter()

    told = [0]

    def tell(rows: int) -> None:
        if rows >= told[0] + TOLD:
            say(f"  {split}: {rows:,} rows")
            told[0] = rows

    try:
        made = corpus.build(
            folders()[-1] / "corpora" / key[:24],
            supply.rows(split, skipped),
            task.fields,
            key=key,
            limits=limits,
            skipped=skipped,
            progress=tell,
        )
    except corpus.EmptyError as problem:
        raise SaccadeError(f"{split}: {problem}; give more data, another data.share, or a larger limit") from None
    if made.skipped and not recipe.data.skip:
        reason, count = made.skipped.most_common(1)[0]
        raise SaccadeError(f"{split}: {count:,} examples are {reason}; mend them, or set data.skip = true")
    return made


def extent_of(supply: Supply, task: Task, made: Corpus, split: str) -> int:
    """How much a split holds in a unit that does not depend on the fields."""
    return task.target.extent((row[-1] for row in supply.rows(split)), made.column(task.name))


def _config(recipe: Recipe, begun: Run | None) -> ModelConfig:
    if begun is not None:
        return begun.model.config
    assert recipe.model is not None  # the recipe has one of the two, or it would not be a recipe
    return recipe.model


def _start(path: str) -> Run:
    if not Path(path).is_dir():
        raise SaccadeError(f"start: {path} is no folder: train what it goes on from first, or give -o start=FOLDER")
    return load(path)


def _take_over(model: Model, source: Model, say: Say) -> None:
    """Copies the weights that both have; what is new is told."""
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


def _say_leaks(supply: Supply, say: Say) -> None:
    """What is held out and learned from all the same: of translators also the targets, which may have other sources."""
    told = []
    for split in supply.splits[1:]:
        for column, kind in supply.kinds.items():
            if kind.held is not None and (count := supply.leaked(split, column)):
                told.append(f"{count:,} {kind.held} of {split} are in the training data too")
    say(f"leakage: {'; '.join(told) or 'none'}")
