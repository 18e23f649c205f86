"""`Grid`: the absolute positions of the queries and keys of one call, computed only when somebody asks for them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from saccade.error import SaccadeError


class Grid(NamedTuple):
    """T queries, the first at `start`, over S keys at 0 ... S - 1. `rows` picks some of the queries, by index;
    `columns` some of the keys, and S is then how many they are and `whole` how many there were.

    By default the last query stands at the last key (start = S - T), so that a step with a cache and a whole sequence
    mean the same. torch's `is_causal` aligns the first ones instead. `rows` and `columns` are None where all are meant,
    since a range(T) would fix the sizes that torch.compile may leave open.
    """

    T: int
    S: int
    start: int | Tensor  # one for all, or (B,)
    device: torch.device
    rows: range | Tensor | None = None
    segments: tuple[Tensor, Tensor] | None = None  # of the queries (B,T) and of the keys (B,S)
    columns: tuple[range, ...] | None = None  # runs of neighbouring keys
    whole: int | None = None
    bias: Tensor | None = None  # what the call adds to the scores, (B or 1, H or 1, T or 1, S or 1)
    # Where the positions of a self-attention stand, (B or 1,S) or on two axes (B or 1,S,2); -1: nowhere.
    places: Tensor | None = None

    @property
    def i(self) -> Tensor:
        """Positions of the queries, (B or 1, 1, rows, 1)."""
        begin, end, step = self._edges()
        if not isinstance(self.rows, Tensor) and not isinstance(self.start, Tensor):
            return torch.arange(self.start + begin, self.start + end, step, device=self.device).view(1, 1, -1, 1)
        steps = self.rows if isinstance(self.rows, Tensor) else torch.arange(begin, end, step, device=self.device)
        start = self.start.view(-1, 1) if isinstance(self.start, Tensor) else self.start
        return torch.atleast_2d(start + steps)[:, None, :, None]

    @property
    def j(self) -> Tensor:
        """Positions of the keys, (1, 1, 1, S)."""
        if self.columns is None:
            return torch.arange(self.S, device=self.device).view(1, 1, 1, self.S)
        runs = [torch.arange(run.start, run.stop, device=self.device) for run in self.columns]
        return (runs[0] if len(runs) == 1 else torch.cat(runs)).view(1, 1, 1, self.S)

    @property
    def ragged(self) -> bool:
        """Whether each example begins at a position of its own."""
        return isinstance(self.start, Tensor)

    @property
    def keys(self) -> int:
        """How many keys there are, the picked and the others."""
        return self.S if self.whole is None else self.whole

    def bounds(self) -> tuple[int, int]:
        """The first position of a query and one past the last."""
        begin, end, _ = self._edges()
        if not isinstance(self.start, Tensor):
            return self.start + begin, self.start + end
        if self.start.numel() == 0:
            return begin, end
        return int(self.start.min()) + begin, int(self.start.max()) + end

    def span(self) -> tuple[int, int]:
        """The first position of a key and one past the last."""
        return (0, self.S) if self.columns is None else (self.columns[0].start, self.columns[-1].stop)

    def end(self) -> int:
        """One past the last position of the whole call."""
        return max(self.keys, self.bounds()[1])

    def reach(self) -> tuple[int, int]:
        """The smallest and the largest distance i - j."""
        (first, last), (left, right) = self.bounds(), self.span()
        return first - max(right - 1, 0), max(last - 1, first) - left

    def picked(self) -> bool:
        """Whether it is a part of a call."""
        return self.rows is not None or self.columns is not None

    def aligned(self) -> bool:
        """Whether queries and keys are neighbours, and the first query stands at the first key."""
        if isinstance(self.start, Tensor) or isinstance(self.rows, Tensor):
            return False
        straight = (self.rows is None or self.rows.step == 1) and (self.columns is None or len(self.columns) == 1)
        return straight and self.bounds()[0] == self.span()[0]

    def across(self) -> Tensor | None:
        """Where query and key belong to different segments, (B,1,T,S)."""
        if self.segments is None:
            return None
        queries, keys = self.segments
        return (self.asked(queries, 1).unsqueeze(2) != self.held(keys, 1).unsqueeze(1)).unsqueeze(1)

    def stand(self) -> tuple[Tensor, Tensor]:
        """The places of the picked queries (B or 1,T,2), and of the picked keys (B or 1,S,2)."""
        if self.places is None or self.places.dim() != 3:
            raise SaccadeError("this position needs places on two axes, (row, column) of each vector: pass places=")
        return self.asked(self.places, 1), self.held(self.places, 1)

    def added(self) -> Tensor | None:
        """The call's bias of the picked queries and keys."""
        return None if self.bias is None else self.held(self.asked(self.bias, 2), 3)

    def take(self, rows: range | Tensor) -> Grid:
        """The same call for some queries only."""
        return self._replace(rows=rows)

    def among(self, columns: tuple[range, ...]) -> Grid:
        """The same call over some keys only: at least one run of them, in order."""
        return self._replace(S=sum(map(len, columns)), columns=columns, whole=self.keys)

    def asked(self, x: Tensor, axis: int) -> Tensor:
        """Of x, with all queries along an axis, what belongs to the picked ones; a view where they are a range."""
        if self.rows is None or x.shape[axis] == 1:
            return x
        rows = self.rows if isinstance(self.rows, Tensor) else slice(*self._edges())
        return x[(slice(None),) * axis + (rows,)]

    def held(self, x: Tensor, axis: int) -> Tensor:
        """Of x, with all keys along an axis, what belongs to the picked ones; a view where they are neighbours."""
        if self.columns is None or x.shape[axis] == 1:
            return x
        runs = [x.narrow(axis, run.start, len(run)) for run in self.columns]
        return runs[0] if len(runs) == 1 else torch.cat(runs, axis)

    def alone(self, b: int) -> Grid:
        """The same call for one example."""
        start = int(self.start[b]) if isinstance(self.start, Tensor) else self.start
        segments = None if self.segments is None else (self.segments[0][b : b + 1], self.segments[1][b : b + 1])
        bias = self.bias if self.bias is None or len(self.bias) == 1 else self.bias[b : b + 1]
        places = self.places if self.places is None or len(self.places) == 1 else self.places[b : b + 1]
        return self._replace(start=start, segments=segments, bias=bias, places=places)

    def biased(self, bias: Tensor, B: int, H: int) -> Grid:
        """The same call with a bias that broadcasts to (B,H,T,S)."""
        shape = B, H, self.T, self.S
        fits = isinstance(bias, Tensor) and bias.is_floating_point() and bias.dim() <= 4
        if not fits or any(mine not in (1, size) for mine, size in zip(bias.shape[::-1], shape[::-1], strict=False)):
            got = tuple(bias.shape) if isinstance(bias, Tensor) else type(bias).__name__
            raise SaccadeError(f"bias is added to the scores: numbers that broadcast to (B,H,T,S) = {shape}; got {got}")
        return self._replace(bias=bias.view(*[1] * (4 - bias.dim()), *bias.shape))

    def _edges(self) -> tuple[int, int, int]:
        """The first query, one past the last, and the step from one to the next."""
        rows = self.rows
        return (rows.start, rows.stop, rows.step) if isinstance(rows, range) else (0, self.T, 1)


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
