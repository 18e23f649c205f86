"""`DataOrigin`: where the rows of a recipe come from; a generator, a named data set, or a user's own files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from saccade.data import named, source
from saccade.data.skipped import Skipped
from saccade.recipe import Recipe

Row = tuple[Any, ...]


def ungrouped(row: Row) -> str | None:
    """None: rows that are all of one kind."""
    return None


class DataOrigin(ABC):
    """splits: train, val and perhaps others. splits_off: val is a part of the training files. headed: the files are
    tables whose columns were not named, so that the first line may be a header. fresh: training rows are drawn anew in
    each epoch. surveyed: how many training rows the fields learn from; None: all. parts: the splits share their rows,
    whose places are split.
    """

    splits: tuple[str, ...]
    splits_off: bool = False
    headed: bool = False
    fresh: bool = False
    surveyed: int | None = None
    parts: bool = False

    @abstractmethod
    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        """The rows of a split; skipped counts those that are left out, by reason."""

    def epoch(self, number: int) -> Iterator[Row]:
        """The training rows of an epoch."""
        return self.rows("train")

    @abstractmethod
    def made_of(self) -> dict[str, Any]:
        """What the rows depend on: the hash of every file, or the version of the generator."""

    def group(self, row: Row) -> str | None:
        """What kind of example a row is: `saccade evaluate` also measures each kind by itself; None: there is one."""
        return None

    def changed(self, before: Mapping[str, Any]) -> list[str]:
        """The keys of an earlier `made_of` whose values differ now: the files that changed."""
        now = self.made_of()
        return sorted(key for key, value in before.items() if now.get(key) != value)

    def learnable(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows without those that belong to a validation split off the training files."""
        return rows

    def sided(self) -> Iterator[tuple[Row, bool]]:
        """Every row of the training files, with whether it is learned from or held out."""
        return ((row, True) for row in self.rows("train"))


class NamedSet(DataOrigin):
    """The splits of a named data set, wherever its files lie."""

    def __init__(self, recipe: Recipe) -> None:
        self.data_set, self.pair, self.apart = str(recipe.data.name), recipe.data.pair, recipe.data.apart
        self.splits = tuple(named.data(self.data_set).splits)

    def rows(self, name: str, skipped: Skipped | None = None) -> Iterator[Row]:
        return named.rows_of(self.data_set, name, self.pair, skipped, self.apart)

    def group(self, row: Row) -> str | None:
        return named.data(self.data_set).group(row)

    def made_of(self) -> dict[str, Any]:
        found = {each: named.files(self.data_set, each, self.pair) for each in self.splits}
        return {
            f"{each} {path.name}": source.digest(path) for each, paths in found.items() for path in paths
        } | self.apart
