"""What one attention computes, whoever computes it: score x mask x normaliser (+ position)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from saccade.attend.grid import Grid
from saccade.attend.mask import Mask, everyone
from saccade.attend.normaliser import Normaliser
from saccade.attend.position import Position
from saccade.attend.score import Score


class Meaning(NamedTuple):
    """The four parts. Positions that turn q and k (`on_heads`) have done so before a kernel sees them."""

    score: Score
    mask: Mask | None
    normaliser: Normaliser
    position: Position | None = None

    def may(self, grid: Grid) -> Tensor | None:
        """Who may look at whom, densely; None where everyone may."""
        return None if self.mask is None or self.mask is everyone else self.mask.dense(grid)

    def has(self, door: str) -> bool:
        """Whether the position uses a door."""
        return self.position is not None and door in self.position.doors
