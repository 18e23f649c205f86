"""`Supply`: the rows that a recipe's data gives, split by split, read anew whenever they are asked for.

Rows are (source, target), (text, label) or, for a language model, (piece of text,). They come from a generator, a named
data set or a user's own files; of those a validation split is made where none is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from saccade.config import read
from saccade.data import copies, named, recall, source
from saccade.data.split import leak, split
from saccade.error import SaccadeError, nearest
from saccade.recipe import DataConfig, RecallConfig, Recipe

Row = tuple[str, ...]
LINE = 40  # characters from which a line of text is unlikely to occur twice by chance


class Generator(NamedTuple):
    """Data that are made here: the rows of a split, what they depend on, and the task they are for."""

    rows: Callable[[int, str, int], Iterator[Row]]
    made_of: Callable[[], dict[str, Any]]
    task: str = "translate"


def _dates(_: DataConfig) -> Generator:
    from saccade.data import dates  # babel takes a while

    def rows(count: int, split: str, seed: int) -> Iterator[Row]:
        return ((each.source, each.target) for each in dates.examples(count, split=split, seed=seed))

    return Generator(rows, lambda: {"dates": dates.VERSION, "babel": version("babel")})


def _copy(_: DataConfig) -> Generator:
    def rows(count: int, split: str, seed: int) -> Iterator[Row]:
        return copies.examples(count, split=split, seed=seed)

    return Generator(rows, lambda: {"copy": copies.VERSION})


def _recall(data: DataConfig) -> Generator:
    config = data.recall or read(RecallConfig, {})

    def rows(count: int, split: str, seed: int) -> Iterator[Row]:
        return recall.examples(count, config, split=split, seed=seed)

    return Generator(rows, lambda: {"recall": recall.VERSION, **config.model_dump()}, "write")


GENERATED: dict[str | None, Callable[[DataConfig], Generator]] = {"dates": _dates, "copy": _copy, "recall": _recall}


class Supply:
    """The rows of a recipe's splits."""

    def __init__(self, recipe: Recipe) -> None:
        self.task, self.seed, self.data = recipe.task, recipe.seed, recipe.data
        if self.data.name is None and not self.data.files:
            raise SaccadeError("the recipe names no data: give files (--files a.en a.de), or data.name")
        check_task(recipe)
        own = [source.lasting(each) for each in (*self.data.files, *self.data.validation, *self.data.test)]
        if self.task == "write" and len({source.is_table(each) for each in own}) > 1:
            raise SaccadeError("some of the files are tables, and others texts without columns: give one kind")

    @property
    def splits(self) -> tuple[str, ...]:
        """What there is, train and val always among them."""
        if self.data.name in GENERATED:
            return ("train", "val", "test")
        if self.data.name is not None:
            return tuple(named.data(self.data.name).splits)
        return ("train", "val", "test") if self.data.test else ("train", "val")

    @property
    def language(self) -> str:
        """Of the target, where it is known."""
        return language_of(self.data)

    @property
    def by_line(self) -> bool:
        """Whether every row is a text of its own, with an end, not a piece of one long text."""
        if self.data.name is not None:
            return self.data.name in GENERATED or named.data(self.data.name).by_line
        return any(source.is_table(each) for each in self.data.files)

    def rows(self, name: str, skipped: Counter[str] | None = None) -> Iterator[Row]:
        """The rows of a split."""
        if name not in self.splits:
            raise SaccadeError(f"this data has no split {name!r}; {nearest(name, self.splits)}")
        rows = self._rows(name, skipped)
        if not self.data.both or name != "train":
            return rows
        turned = (each for row in rows for each in (row, row[::-1]))
        held = self.data.files and not self.data.validation  # a target may be a source that is held back
        return self._part(turned, "train") if held else turned

    def texts(self) -> Iterator[str]:
        """Every text of the training rows, once, in however many directions they are learned from."""
        return (text for row in self._rows("train", None) for text in row)

    def _rows(self, name: str, skipped: Counter[str] | None) -> Iterator[Row]:
        if self.data.name in GENERATED:
            return self._generated(name)
        if self.data.name is not None:
            return self._named(name, skipped)
        return self._own(name, skipped) if self.task != "write" or self.by_line else self._text(name)

    def made_of(self) -> dict[str, Any]:
        """What the rows depend on: the hash of every file, or the version of the generator."""
        if self.data.name in GENERATED:
            sizes = {"examples": self.data.examples, "held": self.data.held, "seed": self.seed}
            return {**GENERATED[self.data.name](self.data).made_of(), **sizes}
        if self.data.name is not None:  # wherever the files lie
            found = {each: named.files(self.data.name, each, self.data.pair) for each in self.splits}
            return {f"{each} {path.name}": source.digest(path) for each, paths in found.items() for path in paths}
        given = {"files": self.data.files, "validation": self.data.validation, "test": self.data.test}
        numbered = ((f"data.{role}[{n}]", path) for role, paths in given.items() for n, path in enumerate(paths))
        return {name: source.digest(path) for name, path in numbered}

    def changed(self, before: Mapping[str, Any]) -> list[str]:
        """The files that differ from those that `made_of` told of before. A generator keeps its splits apart itself."""
        if self.data.name in GENERATED:
            return []
        now = self.made_of()
        return sorted(key for key, value in before.items() if now.get(key) != value)

    def reading(self) -> dict[str, Any]:
        """What the files are read as, beside what stands in them."""
        own = (*self.data.files, *self.data.validation, *self.data.test)
        way = {"both": True} if self.data.both else {}
        return {"task": self.task, "by_line": self.by_line, "kinds": [source.kind(each) for each in own], **way}

    def leaked(self, name: str, column: int = 0) -> int:
        """How many sources of a split (column 1: targets; for a text: long lines) stand in the training data too."""
        return leak(self._told(self.rows("train"), column), self._told(self.rows(name), column))

    def _told(self, rows: Iterator[Row], column: int) -> Iterator[str]:
        if self.task != "write":
            return (row[column] for row in rows)
        return (line for row in rows for line in row[0].split("\n") if len(line) >= LINE)

    def _generated(self, name: str) -> Iterator[Row]:
        made = GENERATED[str(self.data.name)](self.data)
        count = self.data.examples if name == "train" else self.data.held
        return made.rows(count, name, self.seed)

    def _named(self, name: str, skipped: Counter[str] | None) -> Iterator[Row]:
        assert self.data.name is not None
        if named.data(self.data.name).pairs:
            return named.rows(self.data.name, name, self.data.pair, skipped=skipped)
        if self.by_line:
            return ((line,) for path in named.files(self.data.name, name) for line in source.lines(path))
        return ((piece,) for piece in named.text(self.data.name, name))

    def _own(self, name: str, skipped: Counter[str] | None) -> Iterator[Row]:
        given = self._files(name)
        if given:
            rows = self._read(given, skipped)
            return rows if name != "train" or self.data.validation else self._part(rows, "train")
        return self._part(self._read(self.data.files, None), name)

    def _files(self, name: str) -> list[str]:
        return {"train": self.data.files, "val": self.data.validation, "test": self.data.test}[name]

    def labels(self) -> Iterator[str]:
        """Every label of the training files, those of the rows that are split off for validation too."""
        if self.data.name is not None or self.data.validation:
            return (row[1] for row in self.rows("train"))
        return (row[1] for row in self._read(self.data.files, None))

    def _part(self, rows: Iterator[Row], side: str) -> Iterator[Row]:
        return (tuple(row) for row in split(rows, side, share=self.data.share, seed=self.seed))

    def _read(self, files: Sequence[str], skipped: Counter[str] | None) -> Iterator[Row]:
        width = 1 if self.task == "write" else 2
        columns = self.data.columns or (["text"] if width == 1 else None)
        if self.data.columns and len(self.data.columns) != width:
            raise SaccadeError(f"{self.task} reads {width} columns; data.columns names {len(self.data.columns)}")
        for row in source.rows(files, columns=columns, skipped=skipped, strict=not self.data.skip):
            if len(row) != width:
                there = "there is 1" if len(row) == 1 else f"there are {len(row)}"
                hint = " (are its cells apart by ';'? They should be by a comma or a tab)" if ";" in row[0] else ""
                raise SaccadeError(f"{', '.join(files)}: {self.task} reads {width} columns, and {there}{hint}")
            yield row if self.task != "classify" else (row[0], row[1].strip())

    def _text(self, name: str) -> Iterator[Row]:
        if self.data.columns:
            raise SaccadeError("data.columns is of tables (.tsv .csv .jsonl), and a text has no columns: leave it out")
        given = self._files(name)
        if (given and name != "train") or self.data.validation:
            return ((piece,) for path in given for piece in source.text(path))
        if len(self.data.files) != 1:
            raise SaccadeError(f"{len(self.data.files)} texts: give one, or say which to validate on (data.validation)")
        span = {"start": 0, "stop": self._edge} if name == "train" else {"start": self._edge, "stop": None}
        return ((piece,) for piece in source.text(self.data.files[0], **span))

    @cached_property
    def _edge(self) -> int:
        """The character of the one text at which validation begins; to find it the whole file is read."""
        return int(sum(map(len, source.text(self.data.files[0]))) * (1 - self.data.share))


def check_task(recipe: Recipe) -> None:
    """Refuses data by a name that nothing has, and data that are for another task."""
    name = recipe.data.name
    if name is None:
        return
    if name not in GENERATED and name not in named.DATA:
        raise SaccadeError(f"there is no data set {name!r}; {nearest(name, [*named.DATA, *map(str, GENERATED)])}")
    pairs = GENERATED[name](recipe.data).task == "translate" if name in GENERATED else named.data(name).pairs
    task, what = ("translate", "pairs of texts") if pairs else ("write", "texts to go on with")
    if recipe.task != task:
        raise SaccadeError(f"{name} has {what}: its task is {task}, not {recipe.task}")


def language_of(data: DataConfig) -> str:
    """The language of the targets, as Moses' rules call it: of `data.pair`, or as two files are called (a.en a.de);
    English where nobody says.
    """
    pairs = named.data(data.name).pairs if data.name in named.DATA else ()
    pair = data.pair or next(iter(pairs), None)
    if pair:
        return pair.split("-")[1]
    endings = [Path(each.removesuffix(".gz")).suffix for each in data.files]
    told = len(endings) == 2 and all(re.fullmatch(r"\.[a-z]{2}", each) for each in endings)
    return endings[1][1:] if told and endings[0] != endings[1] else "en"
