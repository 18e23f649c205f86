"""`Inputs`: raw inputs as their fields read them, with notes on those that cannot be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from saccade.error import SaccadeError, nearest
from saccade.field.field import Encoded, Field, Source
from saccade.model.input import Input
from saccade.model.model import Model

Task = Any  # `saccade.task.task.Task`, which is made of these parts and so stands above them


class Inputs:
    """Encoded inputs. lengths: of the first X, in its own unit; notes: why an input gets no answer, or None."""

    def __init__(self, task: Task, model: Model, raws: Sequence[Any]) -> None:
        self.task, self.count, self.raws = task, len(raws), raws
        several = [named(each, task.x) for each in raws] if len(task.x) > 1 else None
        self.encoded: dict[str, Encoded] = {
            name: _encoded(field, list(raws) if several is None else [each[name] for each in several])
            for name, field in task.x.items()
        }
        sizes = {name: positions(field, self.encoded[name]) for name, field in task.x.items()}
        limits = task.limits(model)
        self.lengths = next(iter(sizes.values()))
        faults = ([unfit(task, name, size, limits[name]) for size in each] for name, each in sizes.items())
        self.notes = [next((each for each in row if each is not None), None) for row in zip(*faults, strict=True)]

    def remark(self, number: int) -> str | None:
        """What somebody should know who gets an answer to this input."""
        raw = self.raws[number]
        for name, field in self.task.x.items():
            arrays = {key: each[number] for key, each in self.encoded[name].items()}
            found: str | None = field.remark(raw[name] if len(self.task.x) > 1 else raw, arrays)
            if found is not None:
                return found
        return None

    @property
    def fit(self) -> list[int]:
        """The numbers of the inputs that can be answered."""
        return [number for number, note in enumerate(self.notes) if note is None]

    def collated(self, numbers: Sequence[int]) -> dict[str, Input]:
        """Some of them as tensors."""
        return {name: field.collate(self.taken(name, numbers)) for name, field in self.task.x.items()}

    def taken(self, name: str, numbers: Sequence[int]) -> dict[str, Any]:
        """The arrays of one input of some of them."""
        return _taken(self.task.x[name], self.encoded[name], numbers)

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
    field = task.fields[name]
    if limit is not None and length > limit:
        return f"too long: {length} {field.unit}, and the model was made for {limit}"
    fault: str | None = field.fault(length, None)
    return fault if fault is None or length else f"empty: there is nothing to {task.asks}"


def positions(field: Field, encoded: Encoded) -> list[int]:
    """How long each is: along its ragged arrays, 1 where it has none; 0 where it is blank."""
    names = sorted(field.arrays, key=lambda name: not field.arrays[name].ragged)
    ragged = field.arrays[names[0]].ragged
    return [0 if each is None else len(each) if ragged else 1 for each in encoded[names[0]]]


def _encoded(field: Source, raws: list[Any]) -> Encoded:
    """The arrays of inputs; None stands for one that is blank, which no field need read."""
    full = [number for number, raw in enumerate(raws) if not field.blank(raw)]
    found = field.encode([raws[number] for number in full])
    if len(full) == len(raws):
        return found
    place = {number: at for at, number in enumerate(full)}
    numbers = range(len(raws))
    return {name: [each[place[n]] if n in place else None for n in numbers] for name, each in found.items()}


def _taken(field: Field, encoded: Encoded, numbers: Sequence[int]) -> dict[str, Any]:
    """Some of the encoded examples, as a corpus would give them."""
    taken: dict[str, Any] = {}
    for name, array in field.arrays.items():
        some = [encoded[name][n] for n in numbers]
        taken[name] = some if array.ragged else np.asarray(some, array.dtype)
    return taken
