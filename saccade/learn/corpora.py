"""The data of a run: where the user's files lie, the rows, and each split as arrays on the disk."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saccade.data import corpus
from saccade.data.corpus import Corpus
from saccade.data.fresh import Examples, FreshCorpus
from saccade.data.named import folders
from saccade.data.skipped import Skipped
from saccade.data.supply import Row, Supply
from saccade.error import SaccadeError
from saccade.recipe import Recipe
from saccade.store.run import Run
from saccade.task.pair import pair_of
from saccade.task.task import Task

Say = Callable[[str], None]
ROWS, SECONDS = 100_000, 10.0  # between two lines about rows that are read, at most


def supply_of(run: Run, recipe: Recipe) -> Supply:
    """The data that a run was trained on; refuses files that have changed since."""
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
    """The recipe with the paths of its files from here or, where these are not the files it was trained on, from the
    folder that training was started in.
    """
    if folder is None or not recipe.data.files or _unchanged(recipe, made_of):
        return recipe
    roles = ("files", "validation", "test")
    there = {role: [str(Path(folder, each)) for each in getattr(recipe.data, role)] for role in roles}
    moved = recipe.model_copy(update={"data": recipe.data.model_copy(update=there)})
    return moved if _unchanged(moved, made_of) else recipe


def _unchanged(recipe: Recipe, made_of: Mapping[str, Any]) -> bool:
    try:
        return not pair_of(recipe).supply(recipe).changed(made_of)
    except SaccadeError:  # a file is not there
        return False


def training_of(recipe: Recipe, supply: Supply, run: Run, say: Say) -> Examples:
    """The training split: on the disk or, of a generator that draws it anew in each epoch, drawn as it is asked for."""
    if not supply.fresh:
        return corpus_of(recipe, supply, run, "train", say)
    task = run.task.closing(supply.by_line)
    if task.rows is not None and not task.rows.anew:
        problem = f"the rows of {recipe.task} are parts of one long stream, which is made once"
        raise recipe.wrong("data.fresh", f"data.fresh: {problem}; leave it out, and set data.examples")
    limits, key, skipped = task.limits(run.model), _key(recipe, supply, run, "train"), Skipped()
    with _told("train"):
        made = FreshCorpus(supply.epoch, task.fields, key=key, limits=limits, skipped=skipped)
    _refuse_skipped(recipe, "train", made.skipped)
    return made


def corpus_of(recipe: Recipe, supply: Supply, run: Run, split: str, say: Say) -> Corpus:
    """A split as arrays on the disk, made once; run: the one whose fields encode it."""
    task, key, skipped = run.task.closing(supply.by_line), _key(recipe, supply, run, split), Skipped()
    with _told(split):
        made = corpus.build(
            folders()[-1] / "corpora" / key[:24],
            supply.rows(split, skipped),
            task.fields,
            key=key,
            limits=task.limits(run.model),
            skipped=skipped,
            progress=RowCounter(split, say),
        )
    _refuse_skipped(recipe, split, made.skipped)
    return made


def _key(recipe: Recipe, supply: Supply, run: Run, split: str) -> str:
    """The hash of all that a split's corpus is made of."""
    task = run.task.closing(supply.by_line)
    return corpus.key(
        made_of=supply.made_of(),
        **supply.reading(),
        split=split,
        share=recipe.data.share,
        seed=recipe.seed,
        pair=recipe.data.pair,
        names=recipe.data.columns,
        limits=task.limits(run.model),
        fields={name: hashlib.sha256(content).hexdigest() for name, content in run.files.items()},
        arrays={name: {key: list(each) for key, each in field.arrays.items()} for name, field in task.fields.items()},
        encoding={name: dict(field.encoding) for name, field in task.fields.items()},
    )


@contextmanager
def _told(split: str) -> Iterator[None]:
    """An error of a split without examples names it, and says what to do."""
    try:
        yield
    except corpus.EmptyError as problem:
        raise SaccadeError(f"{split}: {problem}; give more data, another data.share, or a larger limit") from None


def _refuse_skipped(recipe: Recipe, split: str, skipped: Skipped) -> None:
    """Refuses a split of which examples were left out, where the recipe says so."""
    if skipped and not recipe.data.skip:
        reason, count = skipped.most_common(1)[0]
        where = skipped.where(reason)
        raise SaccadeError(
            f"{split}: {count:,} examples are {reason}{where and f' ({where})'}; mend them, or set data.skip = true"
        )


def extent_of(task: Task, rows: Iterable[Row], made: Corpus) -> int:
    """How much the rows of a split hold, in a unit that does not depend on the fields; made: their corpus."""
    return task.target.extent((row[-1] for row in rows), made.column(task.name))


class RowCounter:
    """Says now and then how many rows were read so far: after many of them, or after some seconds."""

    def __init__(self, what: str, say: Say) -> None:
        self.what, self.say, self.last, self.told = what, say, 0, time.monotonic()

    def __call__(self, rows: int) -> None:
        if rows >= self.last + ROWS or time.monotonic() > self.told + SECONDS:
            self.say(f"  {self.what}: {rows:,} rows")
            self.last, self.told = rows, time.monotonic()
