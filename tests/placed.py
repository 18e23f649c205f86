"""Layers that are told where their vectors lie, whatever the model says: odd cuts of a picture, for tests of looks."""

from __future__ import annotations

import torch

from saccade.field.unit import NOWHERE
from saccade.look.watch import Watch


def raster(rows: int, columns: int, extras: int = 0) -> list[tuple[int, int]]:
    """The cells of a grid in reading order, behind so many vectors without a place."""
    return [NOWHERE] * extras + [(row, column) for row in range(rows) for column in range(columns)]


def place(patch, model, cells, *, mask=None) -> None:
    """Each layer of a model, by its number, has these cells, and this mask; vectors without a place have names."""
    kept = Watch.call

    def call(self, name, number=-1):
        seen = kept(self, name, number)
        grid = seen.grid._replace(places=torch.tensor([cells[int(name.split(".")[2])]]))
        return seen._replace(grid=grid, meaning=seen.meaning._replace(mask=mask))

    patch.setattr(Watch, "call", call)
    patch.setattr(model.embed, "named", ["class", "register 1"])
