"""`FreshCorpus`: training rows that are drawn anew in each epoch, when a batch asks for them. Nothing of them lies on
the disk: the seed, the epoch and the number of a row say what it is, so that a run can go on from any place.

Batches need the sizes of a whole epoch. Of dense arrays they are known; of ragged ones a field may know them from the
raw things alone (`Field.lengths_of`), and otherwise, as with texts, the epoch is encoded when it begins. A raw thing
that is dear to draw may be lazy: an object with `__array__` is drawn when its field reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from saccade.data.corpus import Corpus, EmptyError, fitting, flat
from saccade.data.skipped import Skipped
from saccade.field.field import Encoded, Field, Taken

Row = Sequence[Any]


class FreshColumn:
    """One column of an epoch's rows, encoded when they are taken."""

    def __init__(self, field: Field, raws: Sequence[Any]) -> None:
        self.field, self.raws = field, raws
        self._known = field.lengths_of(raws)

    def lengths(self) -> np.ndarray:
        """The positions of each example."""
        if self._known is not None:
            return np.asarray(self._known, np.int64)
        ragged = next(name for name, each in self.field.arrays.items() if each.ragged)
        return np.fromiter(map(len, self._encoded[ragged]), np.int64, len(self.raws))

    def take(self, indices: Iterable[int]) -> Taken:
        """Some examples, as a column of a corpus gives them."""
        chosen = [int(each) for each in indices]
        if self._known is None:
            found = {name: [rows[each] for each in chosen] for name, rows in self._encoded.items()}
        else:
            found = self.field.encode([self.raws[each] for each in chosen])
        return {name: self._typed(name, rows) for name, rows in found.items()}

    def array(self, name: str) -> np.ndarray:
        """All examples of one array, one after another."""
        return flat(self._encoded[name], self.field.arrays[name])

    @cached_property
    def _encoded(self) -> Encoded:
        return self.field.encode(self.raws)

    def _typed(self, name: str, rows: list[Any]) -> Any:
        array = self.field.arrays[name]
        return [np.asarray(each, array.dtype) for each in rows] if array.ragged else flat(rows, array)


class FreshCorpus:
    """rows(epoch): the rows of an epoch, the same whenever they are asked for; limits: of each column, as in a corpus;
    key: the hash of all that they depend on.
    """

    def __init__(
        self,
        rows: Callable[[int], Iterable[Row]],
        fields: Mapping[str, Field],
        *,
        key: str,
        limits: Mapping[str, int | None],
        skipped: Skipped,
    ) -> None:
        """skipped: counts the rows of the first epoch that are left out."""
        self.rows, self.fields, self.limits = rows, fields, limits
        self.fingerprint, self.skipped = key, skipped
        self.columns = self._drawn(0, skipped)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).raws)

    def column(self, name: str) -> FreshColumn:
        """A column of the first epoch."""
        return self.columns[name]

    def seen(self, epoch: int) -> Mapping[str, FreshColumn]:
        """The columns of an epoch."""
        return self.columns if epoch == 0 else self._drawn(epoch, Skipped())

    def _drawn(self, epoch: int, skipped: Skipped) -> dict[str, FreshColumn]:
        rows = [*self.rows(epoch)]
        columns = self._columns(rows)
        lengths = {name: each.lengths().tolist() for name, each in columns.items()}
        kept = fitting(self.fields, rows, lengths, self.limits, skipped)
        if not kept:
            raise EmptyError(
                f"no example is left in epoch {epoch}: {', '.join(skipped.described()) or 'none is drawn'}"
            )
        return columns if len(kept) == len(rows) else self._columns([rows[each] for each in kept])

    def _columns(self, rows: Sequence[Row]) -> dict[str, FreshColumn]:
        sides = zip(*rows, strict=True) if rows else ([] for _ in self.fields)
        return {name: FreshColumn(field, side) for (name, field), side in zip(self.fields.items(), sides, strict=True)}


Examples = Corpus | FreshCorpus  # of a split: on the disk, or drawn anew in each epoch
