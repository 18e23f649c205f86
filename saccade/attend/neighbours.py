"""`neighbours`: a node of a graph may look at the nodes that its edges lead to (Scarselli et al. 2009; as a mask of
attention, Velickovic et al. 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.attend.algebra import Mask
from saccade.attend.edges import Edges
from saccade.attend.grid import Grid
from saccade.error import SaccadeError


@dataclass(frozen=True, eq=False, repr=False)
class neighbours(Mask):
    """There is an edge from j to i; with `loops` also from each node to itself. A bare one takes its edges from the
    batch; `neighbours([[0, 1], [1, 2]])` has its own, in which (j, i) lets i look at j.
    """

    edges: Any = None  # Edges, or pairs of nodes
    loops: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.loops, bool):
            raise SaccadeError(f"neighbours: loops is True or False; got {self.loops!r}")
        if self.edges is not None and not isinstance(self.edges, Edges):
            object.__setattr__(self, "edges", _edges(self.edges))

    @property
    def along(self) -> Edges:
        """The edges that may be looked along, each once: a mask knows no more than who may look at whom."""
        if self.edges is None:
            raise SaccadeError("a bare 'neighbours' takes its edges from the batch; here, write neighbours(edges)")
        edges: Edges = self.edges.distinct.looped if self.loops else self.edges.distinct
        return edges

    def dense(self, grid: Grid) -> Tensor:
        along, i, j = self.along, grid.i, grid.j
        example = torch.arange(along.rows, device=grid.device).view(-1, 1, 1, 1)
        return along.dense()[example, i.clamp(max=along.nodes - 1), j] & (i < along.nodes)

    @property
    def breaks(self) -> Mapping[str, str]:
        """Nodes may be numbered in any way, as long as the edges are numbered with them."""
        return {"causality": "the mask neighbours knows no order"}

    def alone(self, b: int) -> Mask:
        return self if self.along.rows == 1 else neighbours(self.edges.alone(b), self.loops)

    def bind(self, *, edges: Any = None, **_: Any) -> Mask:
        return neighbours(edges, self.loops) if self.edges is None and edges is not None else self

    def tensors(self) -> Iterator[Tensor]:
        if self.edges is not None:
            yield from (self.edges.query, self.edges.key)

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        along = self.along
        if along.rows not in (1, B) or along.nodes < S or along.nodes < T:
            raise SaccadeError(
                f"neighbours: the edges are of {along.rows} graphs of {along.nodes} nodes; this call has {B} of {S}"
            )
        if along.device != device:
            raise SaccadeError(f"the edges are on {along.device} and q on {device}: move one of them")

    def __repr__(self) -> str:
        told = [] if self.edges is None else [f"<{len(self.edges)} edges>"]
        told += ["loops=True"] if self.loops else []
        return f"neighbours({', '.join(told)})" if told else "neighbours"


class AtEdges:
    """The positions of the two ends of every edge, in place of a grid of all pairs: i and j are (B,1,E,1), so that
    the `dense` of a mask of positions gives (B or 1,1,E,1).
    """

    rows = columns = segments = bias = places = None
    ragged = False

    def __init__(self, edges: Edges, grid: Grid) -> None:
        degrees = torch.bincount(edges.query // edges.nodes, minlength=edges.rows)
        inside = edges.numbers - (degrees.cumsum(0) - degrees)[edges.query // edges.nodes]
        self.example, self.inside = edges.query // edges.nodes, inside  # of each edge, its graph and its number there
        self.T, self.S, self.start, self.device = grid.T, grid.S, grid.start, grid.device
        shape = edges.rows, 1, int(degrees.max()) if len(degrees) else 0, 1
        self.i, self.j = (torch.zeros(shape, dtype=torch.long, device=edges.device) for _ in range(2))
        self.i[self.example, 0, inside, 0] = edges.query % edges.nodes
        self.j[self.example, 0, inside, 0] = edges.key % edges.nodes

    @property
    def keys(self) -> int:
        """How many keys there are."""
        return self.S

    def end(self) -> int:
        """One past the last position."""
        return max(self.T, self.S)

    def of(self, mask: Mask) -> Tensor:
        """Whether a mask allows each edge, (E,)."""
        grid: Any = self
        may = mask.dense(grid)
        return may.expand(len(self.i), 1, self.i.shape[2], 1)[self.example, 0, self.inside, 0]


def _edges(pairs: Any) -> Edges:
    """The edges of one graph, from pairs of nodes; it has as many nodes as they name."""
    try:
        found = pairs if isinstance(pairs, Tensor) else torch.as_tensor(pairs, dtype=torch.long)
    except (TypeError, ValueError, RuntimeError):
        raise SaccadeError(f"neighbours: edges are pairs of nodes, as in [[0, 1], [1, 2]]; got {pairs!r:.60}") from None
    found = found.reshape(-1, 2) if not found.numel() else found
    return Edges.of(found, int(found.max()) + 1 if found.numel() else 1)
