"""From a recipe to what is needed before the first step: fields, corpora, the model, and a report to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from saccade.config import ModelConfig
from saccade.data import corpus
from saccade.data.corpus import Corpus
from saccade.data.field import Label, Text
from saccade.data.named import folders
from saccade.data.report import report
from saccade.data.source import is_table
from saccade.data.supply import Supply
from saccade.error import SaccadeError, nearest
from saccade.learn.cost import trained
from saccade.model.model import Model
from saccade.recipe import DataConfig, Recipe
from saccade.store.run import Run, load
from saccade.task.classify import Classify
from saccade.task.task import LABELS, SPECIAL, TOKENIZER, Task, fields_of, task_of
from saccade.words.embedding import begin
from saccade.words.vectors import load as load_vectors
from saccade.zoo.build import build

Say = Callable[[str], None]
TOLD = 100_000  # rows between two lines about the making of a corpus
CLASSES = 12  # labels that the report names
SHOWN = 100  # validation examples that a quick metric looks at


class Prepared(NamedTuple):
    """Everything but the loop."""

    run: Run
    task: Task
    train: Corpus
    val: Corpus
    rows: list[tuple[str, ...]]  # the first of the validation split, to show what the model says of them
    characters: int  # of the validation text, where its tokens say all of it


def prepare(recipe: Recipe, say: Say, files: dict[str, bytes] | None = None) -> Prepared:
    """A new run's parts; `files` are the fields of a run that is gone on with, which are not made again."""
    supply, resumed = Supply(recipe), files is not None
    vectors = load_vectors(recipe.train.embedding) if recipe.train.embedding and files is None else None
    begun = None if recipe.start is None or files is not None else _start(recipe.start)
    if begun is not None:
        if begun.quantised is not None:
            raise SaccadeError(
                f"{recipe.start} holds {begun.quantised} weights, which do not train: start from what they were made of"
            )
        files = _along(begun, recipe)
    config = _config(recipe, begun)
    if files is None:
        build(config.model_copy(update={"vocab": config.vocab or 1}), device="meta")  # a wrong part is told now
        say("reading the training data")
        files = fields_of(recipe.task, supply, recipe.data)
    segment = recipe.train.length if config.memory else None
    task = task_of(recipe.task, files, supply.language, ask=recipe.data.ask, segment=segment)
    if isinstance(task, Classify) and not resumed:
        _knows_labels(supply, task)
        _say_header(supply, say)
    torch.manual_seed(recipe.seed)
    wide, config = config.vocab, task.configure(config)
    if (begun is not None or resumed) and wide > config.vocab:  # tables are often longer than the tokenizer
        config = config.model_copy(update={"vocab": wide})
    model = Model(config)
    if begun is not None:
        _take_over(model, begun.model, say)
    if vectors is not None:
        known = begin(model.embed.tokens.weight, Text.from_bytes(files[TOKENIZER]), vectors)
        say(f"embedding: {known:,} of {config.vocab:,} tokens begin with the vectors of {recipe.train.embedding}")
    data = recipe.data if begun is None else _told(recipe.data, begun)
    run = Run(model, recipe=recipe.model_copy(update={"model": model.config, "start": None, "data": data}))
    run.files = files
    _fits(run, recipe)
    train, val = (corpus_of(recipe, supply, task, each, run.limit, say) for each in ("train", "val"))
    run.about = {
        "asked": recipe.model_dump(mode="json", exclude_none=True),
        "data": {"train": train.fingerprint, "val": val.fingerprint, "made_of": supply.made_of()},
    }
    if begun is not None:
        run.about["trained"] = trained(begun)  # before this training
    rows = list(islice(supply.rows("val"), SHOWN))
    return Prepared(run, task, train, val, rows, characters_of(supply, task, val, "val"))


def say_report(prepared: Prepared, say: Say) -> None:
    """The corpus and the model in a few lines."""
    recipe = prepared.run.recipe
    assert recipe is not None
    supply = Supply(recipe)
    whole = recipe.task == "write" and not supply.by_line
    for name, each in (("train", prepared.train), ("val", prepared.val)):
        first, *rest = report(each, whole=whole).lines()
        say(f"{name}: {first}")
        for line in rest:
            say(line)
    if isinstance(prepared.task, Classify):
        say(_classes(prepared.task.labels.names, prepared.train))
    if recipe.data.files:
        _say_leaks(supply, say)
    model = prepared.run.model
    count = sum(each.numel() for each in model.parameters())
    depth = model.config.encoder + model.config.decoder
    say(f"model: {count:,} parameters, {depth} layers, width {model.config.width}, {model.config.heads} heads")


def _fits(run: Run, recipe: Recipe) -> None:
    """Refuses windows of text that are longer than a table of positions, and two passes that cannot differ."""
    room, config = run.model.room, run.model.config
    if recipe.train.agree and not (config.dropout or config.attention_dropout):
        raise SaccadeError(
            "train.agree compares passes that differ by their dropout: set model.dropout, or leave it out"
        )
    if recipe.train.agree and config.memory:
        raise SaccadeError("train.agree makes two passes, and a memory goes on from one: leave out one of them")
    if recipe.task == "write" and room is not None and recipe.train.length > room:
        raise SaccadeError(f"train.length = {recipe.train.length} does not fit the model's {room} positions")


def _knows_labels(supply: Supply, task: Classify) -> None:
    """Refuses a label that no training row has, before hours of training, in files of one's own for val and test."""
    for split in supply.splits[1:]:
        for number, (_, label) in enumerate(supply.rows(split), 1):
            if label not in task.labels.names:
                told = nearest(label, task.labels.names)
                raise SaccadeError(f"{split}, example {number:,}: no training row has the label {label!r}; {told}")


def _say_header(supply: Supply, say: Say) -> None:
    """Of a table whose columns nobody named: a label that only the first line has may be the name of a column."""
    if supply.data.columns or not any(map(is_table, supply.data.files)):
        return
    counts = Counter(supply.labels())
    first = next(iter(counts))
    if counts[first] == 1 and len(counts) > 2:
        told = f"the label of the first line, {first!r}, stands in no other"
        say(f"{told}: if that line is a header, name its columns (data.columns)")


def supply_of(run: Run, recipe: Recipe) -> Supply:
    """The data that a run was trained on, to measure it; files that have changed since are refused."""
    made_of = run.about.get("data", {}).get("made_of", {})
    supply = Supply(located(recipe, made_of, run.about.get("folder")))
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
        return not Supply(recipe).changed(made_of)
    except SaccadeError:  # a file is not there
        return False


def corpus_of(recipe: Recipe, supply: Supply, task: Task, split: str, limit: int | None, say: Say) -> Corpus:
    """A split as tokens on the disk, made once."""
    whole = recipe.task == "write"
    options = {
        "made_of": supply.made_of(),
        **supply.reading(),
        "split": split,
        "share": recipe.data.share,
        "seed": recipe.seed,
        "pair": recipe.data.pair,
        "columns": recipe.data.columns,
        "limit": None if whole else limit,
    }
    key = corpus.key(task.fields, **options)
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
            limit=None if whole else limit,
            close=whole and supply.by_line,
            skipped=skipped,
            progress=tell,
        )
    except corpus.EmptyError as problem:
        raise SaccadeError(f"{split}: {problem}; give more data, or another data.share or data.limit") from None
    if made.skipped and not recipe.data.skip:
        reason, count = made.skipped.most_common(1)[0]
        raise SaccadeError(f"{split}: {count:,} examples are {reason}; mend them, or set data.skip = true")
    return made


def characters_of(supply: Supply, task: Task, made: Corpus, split: str) -> int:
    """Of a split's text, with one for the end of each text that has one; 0 where its tokens do not say all of it: what
    is unknown, or not written, costs no bits.
    """
    if supply.task != "write":
        return 0
    count, tokens = 0, made.take("text", range(len(made)))
    for row, said in zip_longest(supply.rows(split), tokens):
        if row is None or said is None or task.text.decode(said) != row[0]:
            return 0
        count += len(row[0]) + supply.by_line
    return count


def _config(recipe: Recipe, begun: Run | None) -> ModelConfig:
    if begun is not None:
        return begun.model.config
    assert recipe.model is not None  # the recipe has one of the two, or it would not be a recipe
    return recipe.model


def _start(path: str) -> Run:
    if not Path(path).is_dir():
        raise SaccadeError(f"start: {path} is no folder: train what it goes on from first, or give -o start=FOLDER")
    return load(path)


def _along(begun: Run, recipe: Recipe) -> dict[str, bytes]:
    """The fields that come with the weights to start from; labels are the new data's."""
    if TOKENIZER not in begun.files:
        raise SaccadeError(f"{recipe.start} has no {TOKENIZER}: its weights belong to a tokenizer that is not there")
    files = {name: begun.files[name] for name in (TOKENIZER, SPECIAL) if name in begun.files}
    if recipe.task == "classify":
        files[LABELS] = Label.train(Supply(recipe).labels()).to_bytes()
    return files


def _told(data: DataConfig, begun: Run) -> DataConfig:
    """What the recipe of a run says of its texts: with a start, they are read by the tokenizer that came along."""
    if begun.recipe is None:
        return data
    return data.model_copy(update={key: getattr(begun.recipe.data, key) for key in ("tokenizer", "vocab", "lower")})


def _take_over(model: Model, source: Model, say: Say) -> None:
    """Copies the weights that both have; what is new is told."""
    theirs = dict(source.named_parameters())
    new = []
    with torch.no_grad():
        for name, own in model.named_parameters():
            if name in theirs and theirs[name].shape == own.shape:
                own.copy_(theirs[name])
            elif name in theirs and not name.startswith("head."):
                shapes = f"{tuple(theirs[name].shape)} there, {tuple(own.shape)} here"
                raise SaccadeError(f"{name} does not fit: {shapes}; does the tokenizer belong to the weights?")
            else:
                new.append(name)
    if new:
        say(f"new, not taken over: {', '.join(new)}")


def _classes(names: list[str], corpus: Corpus) -> str:
    """How many training examples each label has, the rarest first; a label may stand in held out rows alone."""
    counts = np.bincount(corpus.stream("label"), minlength=len(names)).tolist()
    ranked = sorted(zip(counts, names, strict=True))
    shown = ", ".join(f"{name!r} {count:,}" for count, name in ranked[:CLASSES])
    more = f", and {len(names) - CLASSES:,} more often" if len(names) > CLASSES else ""
    return f"labels: {len(names):,}: {shown}{more}"


def _say_leaks(supply: Supply, say: Say) -> None:
    """What is held out and learned from all the same: of translators also the targets, which may have other sources."""
    kinds = {"write": ["long lines"], "translate": ["sources", "targets"], "classify": ["sources"]}[supply.task]
    held = [(split, *each) for split in supply.splits if split != "train" for each in enumerate(kinds)]
    found = [(supply.leaked(split, column), what, split) for split, column, what in held]
    told = [f"{count:,} {what} of {split} are in the training data too" for count, what, split in found if count]
    say(f"leakage: {'; '.join(told) or 'none'}")
