"""`LayerPositions`: learned positions that are added again before each layer but the first, with a table for each (Fang
et al. 2021, YOLOS).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.initial import normal
from saccade.attend.position import POSITIONS, interpolated, learned
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.cells import Sides


class LayerPositions(nn.Module):
    """A vector for each class token, register and cell of a picture: (depth - 1,1,before + cells,C)."""

    def __init__(self, config: ModelConfig, depth: int) -> None:
        super().__init__()
        given = str(config.position)
        name, found = (None, {}) if config.position is None else spec.arguments(given, POSITIONS, "position")
        if name != learned.__name__ or not isinstance(found["length"], tuple) or len(found["length"]) != 2:
            raise SaccadeError(
                f"layer_positions are tables of a picture's cells, as the position learned((7, 7)); got {given!r}"
            )
        if len(config.stages) > 1:
            raise SaccadeError("layer_positions are of one grid: leave out stages, which merge its cells")
        extras = config.class_tokens + config.registers
        if found["before"] != extras:
            raise SaccadeError(
                f"layer_positions need a row for each of the {extras} class tokens and registers: write before={extras}"
            )
        self.sides, self.before, self.antialias = found["length"], found["before"], found["antialias"]
        rows, columns = self.sides
        self.weight = normal(depth - 1, 1, self.before + rows * columns, config.width)

    def forward(self, grid: Sides | None) -> Tensor:
        """The tables for a picture with so many rows and columns of cells."""
        if grid is None:
            raise SaccadeError("layer_positions are of a picture, whose cells lie on a grid: give one as the input")
        if grid == self.sides:
            return self.weight
        extras, cells = self.weight[:, :, : self.before], self.weight[:, :, self.before :]
        return torch.cat((extras, interpolated(cells, self.sides, grid, self.antialias)), 2)
