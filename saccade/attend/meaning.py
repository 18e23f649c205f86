"""What one attention computes, whoever computes it: score x mask x normaliser (+ position)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from saccade.attend.grid import Grid
from saccade.attend.mask import Mask, everyone
from saccade.attend.normaliser import Normaliser, sum_
from saccade.attend.position import Position
from saccade.attend.score import Score
from saccade.error import SaccadeError


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


def called(part: object) -> str:
    """The name of a score, a normaliser or a position, one's own among them."""
    return str(getattr(part, "__name__", type(part).__name__))


def agree(score: Score, normaliser: Normaliser) -> None:
    """Refuses a score that is the logarithm of its weights where a sum would take it for the weights themselves."""
    if getattr(score, "logarithm", False) and isinstance(normaliser, sum_):
        raise SaccadeError(
            f"the score {type(score).__name__} is the logarithm of its weights, which softmax divides by their sum: "
            f"write normaliser = 'softmax', not 'sum'"
        )
