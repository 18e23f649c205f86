"""`Seen`: one call of attention as watchers keep it: enough to compute its weights again, exactly."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.attend.feature import feature
from saccade.attend.grid import Grid
from saccade.attend.mask import padding
from saccade.attend.meaning import Meaning
from saccade.attend.numbers import bound
from saccade.attend.score import offered


class Version:
    """A tensor and how often it was written to so far: equal while it is the same tensor, and nobody wrote to it.

    What goes through `.data`, or is written in inference mode, is not counted by torch.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.writes = tensor, 0
        with suppress(RuntimeError):  # tensors of inference mode have no count
            self.writes = tensor._version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.tensor is other.tensor and self.writes == other.writes


class Seen(NamedTuple):
    """The queries, keys and meaning of one call."""

    q: Tensor  # (B,H,T,D), turned already
    k: Tensor  # (B,G,S,D)
    meaning: Meaning
    grid: Grid
    versions: tuple[int | Version, ...]  # of what score, position and mask hold
    folded: bool = False  # whether earlier keys were summed into a state, so that their weights cannot be computed

    def apart(self, each: int) -> Seen:
        """The same call with a row for each beam, where `each` beams of a source had looked at it as one row."""
        q = self.q.unflatten(2, (each, -1)).transpose(1, 2).flatten(0, 1)  # (P,H,each*T,D) -> (P*each,H,T,D)
        mask = self.meaning.mask
        if isinstance(mask, padding):
            lengths = bound("padding", "lengths", mask.lengths).expand(self.q.shape[0])
            mask = padding(lengths.repeat_interleave(each), mask.side)
        meaning, grid = self.meaning._replace(mask=mask), self.grid._replace(T=q.shape[2])
        k = self.k.repeat_interleave(each, 0)
        return self._replace(q=q, k=k, meaning=meaning, grid=grid, versions=versions(meaning, grid))

    @staticmethod
    def in_a_row(calls: list[Seen]) -> Seen:
        """Several calls over the same keys as one, their queries in order."""
        q = torch.cat([call.q for call in calls], 2)
        return calls[-1]._replace(q=q, grid=calls[-1].grid._replace(T=q.shape[2]))


class Log:
    """The calls of one layer, kept by somebody who watches."""

    def __init__(self) -> None:
        self.calls: list[Seen] = []


def versions(meaning: Meaning, grid: Grid) -> tuple[int | Version, ...]:
    """A value that changes whenever the call would give other weights: when a parameter of the score or the position,
    or a tensor of the mask or the bias, is written to or replaced, or features are redrawn.
    """
    score = meaning.score.score if isinstance(meaning.score, offered) else meaning.score
    parts = [part for part in (score, meaning.position) if isinstance(part, nn.Module)]
    draws = (part.draw for part in parts if isinstance(part, feature))
    parameters = (parameter for part in parts for parameter in part.parameters())
    held = () if meaning.mask is None else meaning.mask.tensors()
    return (*draws, *map(Version, (*parameters, *held, *(() if grid.bias is None else (grid.bias,)))))
