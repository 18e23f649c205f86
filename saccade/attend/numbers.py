"""Checks of numbers from outside: sizes, shares, and the data of masks (lengths, ids, permutations)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor

from saccade.attend.grid import Grid
from saccade.error import SaccadeError

Integers = Tensor | Sequence[int]


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any, least: int = 0) -> TypeGuard[int]:
    """Whether it is a whole number from `least` that a tensor's size can be."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 31


def count(owner: str, name: str, value: Any, least: int = 1) -> int:
    """The value, if it is a whole number from `least`."""
    if not is_whole(value, least):
        raise SaccadeError(f"{owner}: {name} is a whole number from {least}; got {value!r}")
    return value


def share(name: str, value: Any) -> None:
    """Refuses what is no number from 0 to below 1."""
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise SaccadeError(f"{name} is a share from 0 to below 1; got {value!r}")


def integers(mask: str, name: str, values: Any, axes: tuple[int, ...]) -> Tensor:
    """Whole numbers as an int64 tensor with so many axes; anything else is refused."""
    if isinstance(values, Tensor) and values.dtype is torch.int64 and values.dim() in axes:
        return values
    try:
        tensor = values if isinstance(values, Tensor) else torch.as_tensor(values, device="cpu")
        tensor = tensor if tensor.numel() or isinstance(values, Tensor) else tensor.long()  # an empty list has no kind
    except (TypeError, ValueError, RuntimeError):
        raise SaccadeError(f"{mask}: {name} must be whole numbers; got {type(values).__name__}") from None
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool or tensor.dim() not in axes:
        raise SaccadeError(
            f"{mask}: {name} must be whole numbers with {' or '.join(map(str, axes))} axes; "
            f"got {dtype(tensor)} {tuple(tensor.shape)}"
        )
    return tensor.long()


def bound(mask: str, name: str, values: Any) -> Tensor:
    """The data of a mask that may take them from the batch; raises where they are still missing."""
    if not isinstance(values, Tensor):
        raise SaccadeError(f"a bare {mask!r} takes its {name} from the batch; here, write {mask}({name})")
    return values


def entries(mask: str, values: Any, B: int) -> None:
    """Refuses data of another batch: one entry an example, or one for all."""
    if isinstance(values, Tensor) and values.shape[0] not in (1, B):
        raise SaccadeError(f"{mask}: {values.shape[0]} entries for a batch of {B}")


def lookup(table: Tensor, positions: Tensor, grid: Grid, mask: str) -> Tensor:
    """table[position], for a table (L,) or (B,L) and positions (B or 1,1,T,1) or (1,1,1,S)."""
    table = table.to(grid.device)
    covers(table, grid, mask)
    if table.dim() == 1:
        return table[positions]
    B = positions.shape[0] if table.shape[0] == 1 else table.shape[0]
    found = table.expand(B, -1).gather(1, positions.flatten(1).expand(B, -1))
    return found.view(B, *positions.shape[1:])


def covers(table: Tensor, grid: Grid, mask: str) -> None:
    """Refuses a call that goes on where the table (L,) or (B,L) has ended."""
    if grid.end() > table.shape[-1]:
        raise SaccadeError(f"{mask}: covers {table.shape[-1]} positions; this call has {grid.end()}")


def square(table: Any) -> tuple[tuple[bool, ...], ...]:
    """A square table of 0 and 1, one row a block."""
    try:
        rows = tuple(tuple(row) for row in table)
    except TypeError:
        rows = ()
    if not rows or any(len(row) != len(rows) or any(each not in (0, 1) for each in row) for row in rows):
        raise SaccadeError("blocks: layout is a square table of 0 and 1, one row a block")
    return tuple(tuple(bool(each) for each in row) for row in rows)


def dtype(x: Tensor) -> str:
    """float32, not torch.float32."""
    return str(x.dtype).removeprefix("torch.")
