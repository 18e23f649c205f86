"""The cells of a picture: where they stand, and their vectors (B,T,C) seen as a map of features (B,C,H,W).

Rows of vectors in reading order are the memory of a map with its channels last, so that going from one to the other
copies nothing, and torch's convolutions take it as it is.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from saccade.error import SaccadeError

Sides = tuple[int, int]  # rows and columns of cells


@lru_cache(64)
def places(sides: Sides, device: torch.device) -> Tensor:
    """(row, column) of every cell in reading order, (1,T,2)."""
    rows, columns = (torch.arange(side, device=device) for side in sides)
    return torch.cartesian_prod(rows, columns).unsqueeze(0)


def as_map(x: Tensor, sides: Sides | None) -> Tensor:
    """x (B,T,C) -> (B,C,H,W), a view."""
    if sides is None or x.shape[1] != sides[0] * sides[1]:
        raise SaccadeError(
            f"this layer reads a picture, whose cells lie on a grid; got {x.shape[1]} vectors "
            f"{'without one' if sides is None else f'for {sides[0]} x {sides[1]} cells'}"
        )
    return x.unflatten(1, sides).permute(0, 3, 1, 2)


def as_rows(x: Tensor) -> Tensor:
    """x (B,C,H,W) -> (B,T,C)."""
    return x.permute(0, 2, 3, 1).flatten(1, 2)


def squarish(length: int) -> Sides:
    """The rows and columns of `length` cells that are nearest to a square."""
    rows = next(each for each in range(int(length**0.5), 0, -1) if length % each == 0) if length else 0
    return rows, length // rows if rows else 0
