"""`Inputs`: raw inputs as their fields read them, with what is wrong with some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saccade.error import SaccadeError, nearest
from saccade.field.field import Encoded, Field
from saccade.model.input import Input
from saccade.model.model import Model

Task = Any  # `saccade.task.task.Task`, which is made of these parts and so stands above them


class Inputs:
    """Inputs that were read. lengths: of the first X, in its own unit; notes: why one gets no answer, or None."""

    def __init__(self, task: Task, model: Model, raws: Sequence[Any]) -> None:
        self.task, self.count = task, len(raws)
        several = [named(each, task.x) for each in raws] if len(task.x) > 1 else None
        self.encoded: dict[str, Encoded] = {
            name: field.encode(list(raws) if several is None else [each[name] for each in several])
            for name, field in task.x.items()
        }
        sizes = {name: positions(field, self.encoded[name], len(raws)) for name, field in task.x.items()}
        limits = task.limits(model)
        self.lengths = next(iter(sizes.values()))
        self.notes = [
            next(
                (note for name in sizes if (note := unfit(task, name, sizes[name][n], limits[name])) is not None), None
            )
            for n in range(len(raws))
        ]

    @property
    def fit(self) -> list[int]:
        """The numbers of those that can be answered."""
        return [number for number, note in enumerate(self.notes) if note is None]

    def collated(self, numbers: Sequence[int]) -> dict[str, Input]:
        """Some of them as tensors."""
        return {name: field.collate(_taken(field, self.encoded[name], numbers)) for name, field in self.task.x.items()}

    def one(self, number: int) -> Input | dict[str, Input]:
        """One of them as a source to write from."""
        found = self.collated([number])
        return found if len(found) > 1 else next(iter(found.values()))


def named(raw: Any, x: Mapping[str, Field]) -> Mapping[str, Any]:
    """Several inputs by their names; refuses one that is missing or unknown."""
    if not isinstance(raw, Mapping):
        raise SaccadeError(f"this run reads {' and '.join(x)}: give a table of them by name, not {raw!r:.40}")
    for name in raw:
        if name not in x:
            raise SaccadeError(f"this run reads no {name!r}; {nearest(str(name), x)}")
    for name in x:
        if name not in raw:
            raise SaccadeError(f"this run reads {' and '.join(x)}: {name} is missing")
    return raw


def unfit(task: Task, name: str, length: int, limit: int | None) -> str | None:
    """Why an input of this length gets no answer, if it gets none."""
    if not length:
        return f"empty: there is nothing to {task.asks}"
    if limit is not None and length > limit:
        return f"too long: {length} {task.fields[name].unit}, and the model was made for {limit}"
    return None


def positions(field: Field, encoded: Encoded, count: int) -> list[int]:
    """How long each is: along its ragged arrays, 1 where it has none."""
    ragged = next((encoded[name] for name, array in field.arrays.items() if array.ragged), None)
    return [1] * count if ragged is None else [len(each) for each in ragged]


def _taken(field: Field, encoded: Encoded, numbers: Sequence[int]) -> dict[str, Any]:
    """Encoded things as a corpus would give them."""
    return {
        name: [encoded[name][n] for n in numbers]
        if array.ragged
        else np.asarray([encoded[name][n] for n in numbers], array.dtype)
        for name, array in field.arrays.items()
    }
