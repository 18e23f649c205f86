"""`Input`: what a model is shown, as named tensors with their lengths and places. Fields make it, models read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend import mask
from saccade.attend.numbers import dtype, entries, integers
from saccade.error import SaccadeError


@dataclass(frozen=True, init=False, eq=False)
class Input:
    """values: named tensors (B, ...), ready for the model; which of them it reads, its embedding says.

    lengths: one tensor for each ragged axis, the first (B,) along axis 1, a second (B,N) along axis 2; none: all rows
    are full. places: where each position stands, (B,T) on one axis, (B,T,2) on two, (1,...) where all rows are alike;
    None: 0, 1, 2 ... side: where the padding of the first ragged axis is.
    """

    values: Mapping[str, Tensor]
    lengths: tuple[Tensor, ...]
    places: Tensor | None
    side: str

    def __init__(
        self,
        values: Mapping[str, Tensor],
        lengths: Tensor | Sequence[Any] | None = (),
        places: Tensor | None = None,
        side: str = "right",
    ) -> None:
        """lengths: a tuple with a tensor for each ragged axis; for one axis also its tensor, or a list of numbers.

        places that are alike for all rows may be (T,) or (T,2) too; (B,2) where T may be 2 is read as (B,T).
        """
        _check_values(values)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "lengths", _lengths_by_axis(lengths))
        object.__setattr__(self, "places", None if places is None else _with_row_axis(places, values))
        object.__setattr__(self, "side", side)
        if self.lengths:
            entries("lengths", self.lengths[0], self.rows)

    @property
    def rows(self) -> int:
        """B, how many examples there are."""
        return _first(self.values).shape[0]

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return _first(self.values).device

    @property
    def padding(self) -> mask.padding | None:
        """The mask that hides the padding of the first ragged axis; None: all rows are full."""
        return mask.padding(self.lengths[0], self.side) if self.lengths else None

    def to(self, device: str | torch.device) -> Input:
        """The same on a device."""
        return self._map_tensors(lambda each: each.to(device), lambda each: each.to(device))

    def twice(self) -> Input:
        """The same rows again behind themselves."""

        def again(each: Tensor) -> Tensor:
            return each.repeat(2, *[1] * (each.dim() - 1))

        return self._map_tensors(again, lambda each: again(each) if len(each) == self.rows else each)

    def _map_tensors(self, change: Callable[[Tensor], Tensor], places: Callable[[Tensor], Tensor]) -> Input:
        """The same with every tensor changed."""
        return Input(
            {name: change(value) for name, value in self.values.items()},
            tuple(change(each) for each in self.lengths),
            None if self.places is None else places(self.places),
            self.side,
        )


def as_input(x: Input | Tensor) -> Input:
    """An input as it is; a bare tensor is one of tokens."""
    return x if isinstance(x, Input) else Input({"tokens": x})


def value_of(values: Mapping[str, Tensor], name: str) -> Tensor:
    """One of the named tensors."""
    if name not in values:
        raise SaccadeError(f"this model reads {name!r}, and its input has {', '.join(map(repr, values))} alone")
    return values[name]


def stack(inputs: Sequence[Input]) -> Input:
    """Several inputs as one, their rows in order, the shorter ones filled up on the right with zeros along axis 1
    (and along axis 2, where lengths say that it is ragged too).

    Lengths are kept, and left out where all rows are full.
    """
    if not inputs:
        raise SaccadeError("stack: there are no inputs")
    if len(inputs) == 1:
        return inputs[0]
    names, axes = inputs[0].values.keys(), max(1, *(len(each.lengths) for each in inputs))
    for each in inputs:
        if each.values.keys() != names:
            raise SaccadeError(f"stack: one input has {sorted(names)}, another {sorted(each.values)}")
        if each.side != "right":
            raise SaccadeError("stack: the padding is on the right of every input")
    values = {name: _join_rows([each.values[name] for each in inputs], axes) for name in names}
    name = _ragged_name(inputs)
    if values[name].dim() == 1:
        return Input(values)  # numbers, one a row
    lengths = tuple(_join_rows([_lengths_along(each, name, axis) for each in inputs], 1) for axis in range(axes))
    full = all(bool((each == values[name].shape[axis]).all()) for axis, each in enumerate(lengths, 1))
    return Input(values, () if full else lengths, _join_places(inputs, name))


def _check_values(values: Mapping[str, Tensor]) -> None:
    """Refuses values that are not tensors with the same number of rows."""
    if not values:
        raise SaccadeError("an Input has one named tensor at least: Input({'tokens': tokens})")
    rows: dict[str, int] = {}
    for name, value in values.items():
        if not isinstance(value, Tensor) or not value.dim():
            kind = f"a number of {dtype(value)}" if isinstance(value, Tensor) else type(value).__name__
            raise SaccadeError(f"Input: {name} is a tensor (batch, ...); got {kind}")
        rows[name] = value.shape[0]
    if len(set(rows.values())) > 1:
        raise SaccadeError(f"Input: all values have as many rows; got {rows}")


def _first(values: Mapping[str, Tensor]) -> Tensor:
    return next(iter(values.values()))


def _lengths_by_axis(lengths: Tensor | Sequence[Any] | None) -> tuple[Tensor, ...]:
    """The lengths of each ragged axis: (B,) of the first, (B,N) of a second."""
    if lengths is None:
        return ()
    each = lengths if isinstance(lengths, tuple) else (lengths,)
    return tuple(integers("Input", "lengths", held, axes=(axis,)) for axis, held in enumerate(each, 1))


def _with_row_axis(places: Tensor, values: Mapping[str, Tensor]) -> Tensor:
    """Places with an axis of rows: (T,) becomes (1,T), and (T,2) becomes (1,T,2) where it cannot be (B,T)."""
    first = _first(values)
    by_row = len(places) == len(first) and places.shape[-1] == first.shape[1:2].numel()
    if places.dim() == 1 or (places.dim() == 2 and places.shape[1] == 2 and not by_row):
        places = places.unsqueeze(0)
    if places.dim() not in (2, 3) or len(places) not in (1, len(first)) or places.shape[2:] not in ((), (2,)):
        raise SaccadeError(f"Input: places are (T,), (B,T), (T,2) or (B,T,2); got {tuple(places.shape)}")
    return places


def _join_rows(tensors: Sequence[Tensor], axes: int) -> Tensor:
    """All tensors concatenated along the rows, filled up with zeros along the next `axes`."""
    dims = range(1, min(axes + 1, tensors[0].dim()))
    sizes = {dim: max(each.shape[dim] for each in tensors) for dim in dims}
    ends = [[(0, sizes[dim] - each.shape[dim] if dim in sizes else 0) for dim in range(each.dim())] for each in tensors]
    return torch.cat(
        [F.pad(each, [n for pair in reversed(end) for n in pair]) for each, end in zip(tensors, ends, strict=True)]
    )


def _ragged_name(inputs: Sequence[Input]) -> str:
    """The name of a value whose axis 1 differs from one input to another; else of the one with the most axes."""
    names = inputs[0].values
    differ = [name for name in names if len({each.values[name].shape[1:2] for each in inputs}) > 1]
    return differ[0] if differ else max(names, key=lambda name: inputs[0].values[name].dim())


def _lengths_along(each: Input, name: str, axis: int) -> Tensor:
    """The lengths of an input along a ragged axis; where it says none, the full length for all rows."""
    if axis < len(each.lengths):
        return each.lengths[axis]
    value = each.values[name]
    return torch.full(value.shape[: axis + 1], value.shape[axis + 1], device=each.device)


def _join_places(inputs: Sequence[Input], name: str) -> Tensor | None:
    """The places of all rows; None where no input has any. What has none stands at 0, 1, 2 ..."""
    given = [each.places for each in inputs]
    if all(each is None for each in given):
        return None
    first = given[0]
    if first is not None and len(first) == 1 and all(each is not None and torch.equal(each, first) for each in given):
        return first  # alike for all rows
    rows = [_places_by_row(each, name) for each in inputs]
    if len({each.dim() for each in rows}) > 1:
        raise SaccadeError("stack: some inputs have places on one axis, others on two")
    return _join_rows(rows, 1)


def _places_by_row(each: Input, name: str) -> Tensor:
    """The places of every row, (B,T) or (B,T,2)."""
    counted = torch.arange(each.values[name].shape[1], device=each.device).unsqueeze(0)
    places = counted if each.places is None else each.places
    return places.expand(each.rows, *places.shape[1:])
