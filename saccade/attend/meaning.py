"""`Meaning`: what a kernel is to compute: score x mask x normaliser (+ position, + a bias of the call)."""

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
    """The four parts. Positions that turn q and k (`on_heads`) have done so before a kernel sees them.

    biased: whether the call brings what it adds to the scores (pairs, distances, edges); its grid holds it.
    """

    score: Score
    mask: Mask | None
    normaliser: Normaliser
    position: Position | None = None
    biased: bool = False

    def may(self, grid: Grid) -> Tensor | None:
        """Who may look at whom, densely; None where everyone may."""
        return None if self.mask is None or self.mask is everyone else self.mask.dense(grid)

    def alone(self, b: int) -> Meaning:
        """The meaning of one example."""
        return self if self.mask is None else self._replace(mask=self.mask.alone(b))

    def has(self, door: str) -> bool:
        """Whether the position uses a door, or the call's bias does."""
        placed = self.position is not None and door in self.position.doors
        return placed or (self.biased and door == "scores")

    def added(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor | None:
        """What position and bias add to the scores of q (B,H,T,D) and k (B,H,S,D); None: nothing."""
        bias = grid.added() if self.biased else None
        bias = None if bias is None else bias.to(q.dtype)
        if self.position is None or "scores" not in self.position.doors:
            return bias
        placed = self.position.on_scores(q, k, grid)
        return placed if bias is None else placed + bias


def called(part: object) -> str:
    """The name of a score, a normaliser or a position, for errors; of your own functions too."""
    return str(getattr(part, "__name__", type(part).__name__))


def agree(score: Score, normaliser: Normaliser) -> None:
    """Refuses the normaliser `sum` for a score that is the logarithm of its weights."""
    if getattr(score, "logarithm", False) and isinstance(normaliser, sum_):
        raise SaccadeError(
            f"the score {type(score).__name__} is the logarithm of its weights, which softmax divides by their sum: "
            f"write normaliser = 'softmax', not 'sum'"
        )
