"""Where the queries and keys of one call stand: absolute positions, made only when somebody asks for them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.error import SaccadeError


class Grid(NamedTuple):
    """T queries, the first at `start`, over S keys at 0 ... S - 1. `rows` picks some of the queries, by index.

    By default the last query stands at the last key (start = S - T), so that a step with a cache and a whole sequence
    mean the same. torch's `is_causal` aligns the first ones instead.
    """

    T: int
    S: int
    start: int | Tensor  # one for all, or (B,)
    device: torch.device
    rows: range | Tensor | None = None
    segments: tuple[Tensor, Tensor] | None = None  # of the queries (B,T) and of the keys (B,S)

    @property
    def i(self) -> Tensor:
        """Positions of the queries, (B or 1, 1, rows, 1)."""
        rows, start = range(self.T) if self.rows is None else self.rows, self.start
        if isinstance(rows, range) and not isinstance(start, Tensor):
            steps = torch.arange(start + rows.start, start + rows.stop, rows.step, device=self.device)
            return steps.view(1, 1, len(rows), 1)
        steps = torch.arange(rows.start, rows.stop, rows.step, device=self.device) if isinstance(rows, range) else rows
        start = start.view(-1, 1) if isinstance(start, Tensor) else start
        return torch.atleast_2d(start + steps)[:, None, :, None]

    @property
    def j(self) -> Tensor:
        """Positions of the keys, (1, 1, 1, S)."""
        return torch.arange(self.S, device=self.device).view(1, 1, 1, self.S)

    def bounds(self) -> tuple[int, int]:
        """The first position of a query and one past the last."""
        rows = self.rows if isinstance(self.rows, range) else range(self.T)
        if not isinstance(self.start, Tensor):
            return self.start + rows.start, self.start + rows.stop
        if self.start.numel() == 0:
            return rows.start, rows.stop
        return int(self.start.min()) + rows.start, int(self.start.max()) + rows.stop

    def end(self) -> int:
        """One past the last position that occurs."""
        return max(self.S, self.bounds()[1])

    def reach(self) -> tuple[int, int]:
        """The smallest and the largest distance i - j."""
        first, last = self.bounds()
        return first - max(self.S - 1, 0), max(last - 1, first)

    def across(self) -> Tensor | None:
        """Where query and key belong to different segments, (B,1,T,S)."""
        if self.segments is None:
            return None
        queries, keys = self.segments
        if self.rows is not None:
            queries = queries[:, list(self.rows) if isinstance(self.rows, range) else self.rows]
        return (queries.unsqueeze(2) != keys.unsqueeze(1)).unsqueeze(1)

    def take(self, rows: range | Tensor) -> Grid:
        """The same call for some queries only."""
        return self._replace(rows=rows)


def place(q: Tensor, k: Tensor, start: int | Tensor | None) -> Grid:
    """The grid of q (B,H,T,D) over k (B,G,S,D)."""
    B, T, S = q.shape[0], q.shape[2], k.shape[2]
    if not isinstance(start, Tensor):
        return Grid(T, S, first(T, S, start), q.device)
    if start.is_floating_point() or start.dtype == torch.bool or start.shape not in ((), (B,)):
        kind = f"{str(start.dtype).removeprefix('torch.')} {tuple(start.shape)}"
        raise SaccadeError(f"start must be an integer or {B} integers, one for each example; got {kind}")
    if start.device.type == "cpu" and not torch.compiler.is_compiling() and bool((start < 0).any()):
        raise SaccadeError(f"start is a position and cannot be negative; got {start.tolist()}")
    return Grid(T, S, start.to(q.device).expand(B), q.device)


def first(T: int, S: int, start: int | None) -> int:
    """The position of the first of T queries over S keys."""
    if start is None:
        if T > S:
            raise SaccadeError(
                f"{T} queries over {S} keys: say where the first query stands with start=, for example start=0"
            )
        return S - T
    if not isinstance(start, int) or isinstance(start, bool):
        raise SaccadeError(f"start must be an integer or a tensor of integers, not {type(start).__name__}")
    if start < 0:
        raise SaccadeError(f"start is a position and cannot be negative; got {start}")
    return start
