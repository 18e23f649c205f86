"""`Supply`: the rows that a recipe's data gives, split by split, read anew whenever they are asked for.

A row has one raw thing for each column: the inputs, then the output; or it is a piece of one long text. Rows come from
a generator, a named data set or a user's own files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data import named, source
from saccade.data.generated import GENERATED, Generated
from saccade.data.origin import DataOrigin, NamedSet
from saccade.data.own import own_files
from saccade.data.skipped import Skipped
from saccade.error import SaccadeError, nearest
from saccade.field.field import Kind
from saccade.recipe import DataConfig, Recipe

Row = tuple[Any, ...]


class TrainingRow(NamedTuple):
    """A row of the training files; learned: whether training learns from it, or it is held out."""

    row: Row
    learned: bool


class Supply:
    """The rows of a recipe's splits. kinds: what each column holds, by its name."""

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind]) -> None:
        self.data, self.kinds = recipe.data, dict(kinds)
        self.origin = _origin(recipe, self.kinds)
        self.splits: tuple[str, ...] = self.origin.splits  # train and val always among them
        self.by_line = by_line(self.data)
        self.headed = self.origin.headed

    @property
    def separate(self) -> tuple[str, ...]:
        """The splits beside train that have data of their own; val may be split off the training files."""
        return self.splits[2:] if self.origin.splits_off else self.splits[1:]

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        """The rows of a split."""
        if name not in self.splits:
            raise SaccadeError(f"this data has no split {name!r}; {nearest(name, self.splits)}")
        rows = islice(self.origin.rows(name, skipped), self.data.first)
        return self.both_ways(rows) if name == "train" else rows

    @property
    def fresh(self) -> bool:
        """Whether the training rows are drawn anew in each epoch."""
        return self.origin.fresh

    def epoch(self, number: int) -> Iterator[Row]:
        """The training rows of an epoch."""
        return self.both_ways(islice(self.origin.epoch(number), self.data.first))

    def once(self) -> Iterator[Row]:
        """The training rows, each once, even where they are learned from both ways."""
        return islice(self.origin.rows("train"), self.data.first)

    def both_ways(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Training rows as they are learned from: with data.both, each turned round too."""
        if not self.data.both:
            return rows
        both = (each for row in rows for each in (row, row[::-1]))
        return self.origin.learnable(both)  # what is a target here may be held out as a source

    def seen(self, every: bool) -> Iterator[TrainingRow]:
        """The training rows, each once; every: with the rows of the same files that are held out. Where there is no end
        of rows, the first.
        """
        if not (every and self.origin.splits_off):
            yield from (TrainingRow(row, True) for row in islice(self.once(), self.origin.surveyed))
            return
        left = self.data.first
        for row, learnable in self.origin.sided():
            learned = learnable and left != 0
            left = left - 1 if learned and left is not None else left
            yield TrainingRow(row, learned)

    def everything(self) -> Iterator[Row]:
        """Every row of the training files, also those split off for validation."""
        return (each.row for each in self.seen(every=True))

    def group(self, row: Row) -> str | None:
        """What kind of example a row is, where the data know of several."""
        return self.origin.group(row)

    def made_of(self) -> dict[str, Any]:
        """What the rows depend on: the hash of every file, or the version of the generator."""
        return self.origin.made_of()

    def changed(self, before: Mapping[str, Any]) -> list[str]:
        """The keys of an earlier `made_of` whose values differ now."""
        return self.origin.changed(before)

    def reading(self) -> dict[str, Any]:
        """How the files are read: what rows depend on beside the files' content."""
        own = (*self.data.files, *self.data.validation, *self.data.test)
        kinds = {name: kind.kind for name, kind in self.kinds.items()}
        way: dict[str, Any] = {"both": True} if self.data.both else {}
        way |= {} if self.data.first is None else {"first": self.data.first}
        return {"columns": kinds, "by_line": self.by_line, "kinds": [source.kind(each) for each in own], **way}


def _origin(recipe: Recipe, kinds: Mapping[str, Kind]) -> DataOrigin:
    if recipe.data.name is None and not recipe.data.files:
        raise SaccadeError("the recipe names no data: give files (--files a.en a.de), or data.name")
    check_data(recipe, kinds)
    if recipe.data.name is None:
        return own_files(recipe, kinds)
    return Generated(recipe) if recipe.data.name in GENERATED else NamedSet(recipe)


def by_line(data: DataConfig) -> bool:
    """Whether every row of these data is an example of its own, not a piece of one long text."""
    if data.name is not None:
        return data.name in GENERATED or named.data(data.name).by_line
    return any(source.is_table(each) for each in data.files)


def check_data(recipe: Recipe, kinds: Mapping[str, Kind]) -> None:
    """Refuses an unknown name of data, and data for another task."""
    name = recipe.data.name
    if name is None:
        return
    if name not in GENERATED and name not in named.DATA:
        raise SaccadeError(f"there is no data set {name!r}; {nearest(name, [*named.DATA, *map(str, GENERATED)])}")
    made = GENERATED[name](recipe.data) if name in GENERATED else named.data(name)
    fits = len(made.kinds) == len(kinds) and all(
        held in (each.kind, *each.reads) for held, each in zip(made.kinds, kinds.values(), strict=True)
    )
    if not fits:
        if made.task != recipe.task:
            raise SaccadeError(f"{name} has {made.what}: its task is {made.task}, not {recipe.task}")
        asked = ", ".join(each.kind for each in kinds.values())
        raise SaccadeError(f"{name} has {made.what} (kinds {', '.join(made.kinds)}), and the recipe says {asked}")


def language_of(data: DataConfig) -> str:
    """The language of the targets, for Moses' rules: from `data.pair`, or from the names of two files (a.en a.de); else
    English.
    """
    pairs = named.data(data.name).pairs if data.name in named.DATA else ()
    pair = data.pair or next(iter(pairs), None)
    if pair:
        return pair.split("-")[1]
    endings = [Path(each.removesuffix(".gz")).suffix for each in data.files]
    languages = len(endings) == 2 and all(re.fullmatch(r"\.[a-z]{2}", each) for each in endings)
    return endings[1][1:] if languages and endings[0] != endings[1] else "en"
