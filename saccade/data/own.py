"""A user's own files as splits: tables and lines (`OwnRows`), graphs with outputs of their nodes (`OwnParts`), or one
long text (`OwnText`). Where no validation files are given, a share of the training files is split off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from saccade.data import source
from saccade.data.origin import DataOrigin
from saccade.data.reader import Reader, ReadRequest, readable, reader_of
from saccade.data.skipped import Skipped
from saccade.data.split import held_out, split
from saccade.error import SaccadeError
from saccade.field.field import Kind
from saccade.recipe import Recipe

Row = tuple[Any, ...]


class OwnFiles(DataOrigin):
    """Files by split, and the reader that all of them share."""

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind], reader: Reader) -> None:
        self.data, self.seed, self.task, self.kinds, self.reader = recipe.data, recipe.seed, recipe.task, kinds, reader
        self.files = {"train": self.data.files, "val": self.data.validation, "test": self.data.test}
        self.splits = ("train", "val", "test") if self.data.test else ("train", "val")
        plain = reader.holds is None  # a reader that knows what its files hold knows their header
        self.headed = plain and not self.data.columns and any(map(source.is_table, self.data.files))

    def made_of(self) -> dict[str, Any]:
        """The hash of every file, and of the files that a table names."""
        roles = {"files": self.data.files, "validation": self.data.validation, "test": self.data.test}
        numbered = ((f"data.{role}[{n}]", path) for role, paths in roles.items() for n, path in enumerate(paths))
        hashes = {name: self.reader.digest(path) for name, path in numbered}
        if self.reader.holds is None and any(kind.endings for kind in self.kinds.values()):
            hashes |= {f"what data.{role} names": self._hash_of_cells(paths) for role, paths in roles.items() if paths}
        return hashes

    def read(self, files: list[str], skipped: Skipped | None = None, **some: Any) -> Iterator[Row]:
        """All rows of some files that can be read; the others are counted in `skipped`, or refused. some: the split, or
        the part of the time, that is asked for (`ReadRequest`).
        """
        request = replace(_request(self.data, self.task, self.kinds, files, skipped), **some)
        return readable(self.reader.rows(request), request)

    def _hash_of_cells(self, files: list[str]) -> str:
        """One hash over all files that the cells of a table name."""
        total = hashlib.sha256()
        for row in self.reader.rows(_request(self.data, self.task, self.kinds, files, None)):
            for kind, raw in zip(self.kinds.values(), row, strict=True):
                total.update(kind.identity(raw) if kind.endings else b"")
        return total.hexdigest()


class OwnRows(OwnFiles):
    """Rows that are examples. Which of them are split off depends on the identity of their first column alone.

    inner: the splits that the one training folder holds itself.
    """

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind], reader: Reader) -> None:
        super().__init__(recipe, kinds, reader)
        self.inner, self._first = self._inner(), next(iter(kinds.values()))
        self.splits_off = not self.data.validation and "val" not in self.inner
        if self.inner:
            self.files = dict.fromkeys(self.files, self.data.files)
            self.splits = ("train", "val", "test") if "test" in self.inner else ("train", "val")

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        """Those of the split's own files, or of its part of a folder; without any for validation, train and val are
        parts of the training files.
        """
        if name == "test" or not self.splits_off:
            return self.read(self.files[name], skipped, split=name if self.inner else None)
        if name == "train":
            return self._side(self._learned(skipped), "train")
        return self._side(self._learned(), "val")  # what is skipped, train has counted

    def learnable(self, rows: Iterator[Row]) -> Iterator[Row]:
        return self._side(rows, "train") if self.splits_off else rows

    def sided(self) -> Iterator[tuple[Row, bool]]:
        share, seed = self.data.share, self.seed
        return ((row, not held_out(self._identity(row), share, seed)) for row in self._learned())

    def _learned(self, skipped: Skipped | None = None) -> Iterator[Row]:
        """The rows of the training files, without what a folder says is for something else."""
        return self.read(self.data.files, skipped, split="train" if self.inner else None)

    def _inner(self) -> tuple[str, ...]:
        """The splits that the training folder holds; refuses others beside them."""
        found = {path: self.reader.splits(Path(path)) for path in self.data.files}
        split = next((path for path, splits in found.items() if splits), None)
        if split is None:
            return ()
        told = f"{split} has splits of its own ({', '.join(found[split])})"
        if self.data.validation or self.data.test:
            raise SaccadeError(f"{told}: leave out data.validation and data.test, or name the folders of the splits")
        if len(self.data.files) > 1:
            raise SaccadeError(f"{told}: give this one folder, or name the folders of the splits")
        return found[split]

    def _side(self, rows: Iterator[Row], side: str) -> Iterator[Row]:
        return split(rows, side, self._identity, share=self.data.share, seed=self.seed)

    def _identity(self, row: Row) -> bytes:
        return self._first.identity(row[0])


class OwnParts(OwnFiles):
    """Rows whose places have outputs of their own, as the nodes of a graph have. Without validation files, a share of
    the places is split off; a split knows nothing of the outputs of the others' places.
    """

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind], reader: Reader) -> None:
        super().__init__(recipe, kinds, reader)
        self.splits_off, self._first = not self.data.validation, next(iter(kinds.values()))
        self.parts = self.splits_off

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        """The rows of the split's own files, or those of the training files with the outputs of its places."""
        if name == "test" or not self.splits_off:
            return self.read(self.files[name], skipped)
        return (self._part(row, name) for row in self.read(self.data.files, skipped if name == "train" else None))

    def sided(self) -> Iterator[tuple[Row, bool]]:
        sides = (("train", True), ("val", False))
        return ((self._part(row, name), learned) for row in self.read(self.data.files) for name, learned in sides)

    def _part(self, row: Row, side: str) -> Row:
        *inputs, outputs = row
        of, share, seed = self._first.identity(row[0]), self.data.share, self.seed
        held = (held_out(of + str(place).encode(), share, seed) for place in range(len(outputs)))
        own = (each if is_held == (side == "val") else None for each, is_held in zip(outputs, held, strict=True))
        return (*inputs, tuple(own))


class OwnWindows(OwnFiles):
    """Windows of recordings, which overlap. Without validation files, the last share of the time of each is split off:
    no window lies on both sides.
    """

    def __init__(self, recipe: Recipe, kinds: Mapping[str, Kind], reader: Reader) -> None:
        super().__init__(recipe, kinds, reader)
        self.splits_off, self.headed = not self.data.validation, False

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        """Those of the split's own files, or of its part of the training files."""
        if name == "test" or not self.splits_off:
            return self.read(self.files[name], skipped)
        edge = 1 - self.data.share
        return self.read(self.data.files, skipped, part=(0.0, edge) if name == "train" else (edge, 1.0))

    def sided(self) -> Iterator[tuple[Row, bool]]:
        return ((row, name == "train") for name in ("train", "val") for row in self.rows(name))


class OwnText(OwnFiles):
    """Pieces of one long text; its last part is split off."""

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        """Pieces of the split's own files, or of its span of the one training file."""
        if self.data.columns:
            raise SaccadeError("data.columns is of tables (.tsv .csv .jsonl), and a text has no columns: leave it out")
        given = self.files[name]
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


def own_files(recipe: Recipe, kinds: Mapping[str, Kind]) -> OwnFiles:
    """The files of a recipe, all of which one reader reads."""
    data = recipe.data
    every = [*data.files, *data.validation, *data.test]
    reader = reader_of(every, _request(data, recipe.task, kinds, data.files, None))
    if reader.parts:
        return OwnParts(recipe, kinds, reader)
    if reader.timed:
        return OwnWindows(recipe, kinds, reader)
    return (OwnText if reader.pieces else OwnRows)(recipe, kinds, reader)


def _request(data: Any, task: str, kinds: Mapping[str, Kind], files: list[str], skipped: Skipped | None) -> ReadRequest:
    return ReadRequest(files, kinds, task, data.columns, skipped, not data.skip, windows=data.windows)
