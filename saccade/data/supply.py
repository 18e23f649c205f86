"""`Supply`: the rows that a recipe's data gives, split by split, read anew whenever they are asked for.

A row has a raw thing for each column: the inputs, then the output, or a piece of one long text alone. Rows come from a
generator, a named data set or a user's own files; of those a validation split is made where none is given.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from saccade.config import read
from saccade.data import copies, named, recall, source
from saccade.data.reader import Reader, Reading, reader_of
from saccade.data.split import leak, split
from saccade.error import SaccadeError, nearest
from saccade.field.field import Kind
from saccade.recipe import DataConfig, RecallConfig, Recipe

Row = tuple[Any, ...]


class Generator(NamedTuple):
    """Data that are made here: the rows of a split, what they depend on, and the task they are for."""

    rows: Callable[[int, str, int], Iterator[Row]]
    made_of: Callable[[], dict[str, Any]]
    task: str = "translate"
    kinds: tuple[str, ...] = ("text", "text")
    what: str = "pairs of texts"


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

    made_of = {"recall": recall.VERSION, **config.model_dump()}
    return Generator(rows, lambda: made_of, "write", ("text",), "texts to go on with")


GENERATED: dict[str | None, Callable[[DataConfig], Generator]] = {"dates": _dates, "copy": _copy, "recall": _recall}


class Supply:
    """The rows of a recipe's splits. kinds: what each column holds, by its name."""

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind]) -> None:
        self.task, self.seed, self.data, self.kinds = recipe.task, recipe.seed, recipe.data, dict(kinds)
        if self.data.name is None and not self.data.files:
            raise SaccadeError("the recipe names no data: give files (--files a.en a.de), or data.name")
        check_data(recipe, kinds)
        self._reader = None if self.data.name is not None else self._reads()

    @property
    def splits(self) -> tuple[str, ...]:
        """What there is, train and val always among them."""
        if self.data.name in GENERATED:
            return ("train", "val", "test")
        if self.data.name is not None:
            return tuple(named.data(self.data.name).splits)
        return ("train", "val", "test") if self.data.test else ("train", "val")

    @property
    def by_line(self) -> bool:
        """Whether every row is an example of its own, with an end, not a piece of one long text."""
        return by_line(self.data)

    def rows(self, name: str, skipped: Counter[str] | None = None) -> Iterator[Row]:
        """The rows of a split."""
        if name not in self.splits:
            raise SaccadeError(f"this data has no split {name!r}; {nearest(name, self.splits)}")
        rows = islice(self._rows(name, skipped), self.data.first)
        if not self.data.both or name != "train":
            return rows
        turned = (each for row in rows for each in (row, row[::-1]))
        held = self.data.files and not self.data.validation  # a target may be a source that is held back
        return self._part(turned, "train") if held else turned

    def once(self) -> Iterator[Row]:
        """The training rows, in however many directions they are learned from."""
        return islice(self._rows("train", None), self.data.first)

    def everything(self) -> Iterator[Row]:
        """Every row of the training files, those that are split off for validation too."""
        if self._reader is None or self.data.validation or self._reader.pieces:
            return self.rows("train")
        return self._read(self.data.files, None)

    def _rows(self, name: str, skipped: Counter[str] | None) -> Iterator[Row]:
        if self.data.name in GENERATED:
            return self._generated(name)
        if self.data.name is not None:
            return named.rows_of(self.data.name, name, self.data.pair, skipped)
        assert self._reader is not None
        return self._text(name) if self._reader.pieces else self._own(name, skipped)

    def made_of(self) -> dict[str, Any]:
        """What the rows depend on: the hash of every file, or the version of the generator."""
        if self.data.name in GENERATED:
            sizes = {"examples": self.data.examples, "held": self.data.held, "seed": self.seed}
            return {**GENERATED[self.data.name](self.data).made_of(), **sizes}
        if self.data.name is not None:  # wherever the files lie
            found = {each: named.files(self.data.name, each, self.data.pair) for each in self.splits}
            return {f"{each} {path.name}": source.digest(path) for each, paths in found.items() for path in paths}
        assert self._reader is not None
        given = {"files": self.data.files, "validation": self.data.validation, "test": self.data.test}
        numbered = ((f"data.{role}[{n}]", path) for role, paths in given.items() for n, path in enumerate(paths))
        told = {name: self._reader.digest(path) for name, path in numbered}
        if self._reader.holds is None and any(kind.endings for kind in self.kinds.values()):
            told |= {f"what data.{role} names": self._named(paths) for role, paths in given.items() if paths}
        return told

    def _named(self, files: list[str]) -> str:
        """The hash of all files that the cells of a table name."""
        total = hashlib.sha256()
        for row in self._read(files, None):
            for kind, raw in zip(self.kinds.values(), row, strict=True):
                total.update(kind.identity(raw) if kind.endings else b"")
        return total.hexdigest()

    def changed(self, before: Mapping[str, Any]) -> list[str]:
        """The files that differ from those that `made_of` told of before. A generator keeps its splits apart itself."""
        if self.data.name in GENERATED:
            return []
        now = self.made_of()
        return sorted(key for key, value in before.items() if now.get(key) != value)

    def reading(self) -> dict[str, Any]:
        """What the files are read as, beside what stands in them."""
        own = (*self.data.files, *self.data.validation, *self.data.test)
        kinds = {name: kind.kind for name, kind in self.kinds.items()}
        way: dict[str, Any] = {"both": True} if self.data.both else {}
        way |= {} if self.data.first is None else {"first": self.data.first}
        return {"columns": kinds, "by_line": self.by_line, "kinds": [source.kind(each) for each in own], **way}

    def leaked(self, name: str, column: str) -> int:
        """How many things of a column of a split stand in the training data too."""
        place, kind = list(self.kinds).index(column), self.kinds[column]

        def told(rows: Iterator[Row]) -> Iterator[bytes]:
            return (kind.identity(each) for each in kind.parts(row[place] for row in rows))

        return leak(told(self.rows("train")), told(self.rows(name)))

    def headed(self) -> bool:
        """Whether the files are tables whose columns nobody named, so that a first line may be a header."""
        return self._reader is not None and not self.data.columns and any(map(source.is_table, self.data.files))

    def _generated(self, name: str) -> Iterator[Row]:
        made = GENERATED[str(self.data.name)](self.data)
        count = self.data.examples if name == "train" else self.data.held
        return made.rows(count, name, self.seed)

    def _own(self, name: str, skipped: Counter[str] | None) -> Iterator[Row]:
        given = self._files(name)
        if given:
            rows = self._read(given, skipped)
            return rows if name != "train" or self.data.validation else self._part(rows, "train")
        return self._part(self._read(self.data.files, None), name)

    def _files(self, name: str) -> list[str]:
        return {"train": self.data.files, "val": self.data.validation, "test": self.data.test}[name]

    def _part(self, rows: Iterator[Row], side: str) -> Iterator[Row]:
        first = next(iter(self.kinds.values()))
        return split(rows, side, lambda row: first.identity(row[0]), share=self.data.share, seed=self.seed)

    def _reads(self) -> Reader:
        """What the files are read as, the same for every split."""
        own = [*self.data.files, *self.data.validation, *self.data.test]
        return reader_of(own, self._reading(self.data.files, None))

    def _reading(self, files: list[str], skipped: Counter[str] | None) -> Reading:
        return Reading(files, self.kinds, self.task, self.data.columns, skipped, strict=not self.data.skip)

    def _read(self, files: list[str], skipped: Counter[str] | None) -> Iterator[Row]:
        assert self._reader is not None
        return self._reader.rows(self._reading(files, skipped))

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


def by_line(data: DataConfig) -> bool:
    """Whether every row of these data is an example of its own, not a piece of one long text."""
    if data.name is not None:
        return data.name in GENERATED or named.data(data.name).by_line
    return any(source.is_table(each) for each in data.files)


def check_data(recipe: Recipe, kinds: Mapping[str, Kind]) -> None:
    """Refuses data by a name that nothing has, and data that are for another task."""
    name = recipe.data.name
    if name is None:
        return
    if name not in GENERATED and name not in named.DATA:
        raise SaccadeError(f"there is no data set {name!r}; {nearest(name, [*named.DATA, *map(str, GENERATED)])}")
    made = GENERATED[name](recipe.data) if name in GENERATED else named.data(name)
    if made.kinds != tuple(each.kind for each in kinds.values()):
        raise SaccadeError(f"{name} has {made.what}: its task is {made.task}, not {recipe.task}")


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
