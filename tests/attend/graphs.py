"""Random graphs: edges of several graphs in one batch, some of their nodes without a neighbour."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.attend.edges import Edges


def pairs(nodes: int, count: int, seed: int = 0, loops: bool = False) -> Tensor:
    """`count` different edges (E,2); nobody leads to the last node, which looks at nobody."""
    generator = torch.Generator().manual_seed(seed)
    may = torch.rand(nodes, nodes, generator=generator)
    may[:, -1] = -1.0
    if not loops:
        may.fill_diagonal_(-1.0)
    chosen = may.flatten().topk(count).indices
    return torch.stack((chosen // nodes, chosen % nodes), 1)


def batch(rows: int = 2, nodes: int = 7, count: int = 17, seed: int = 0) -> Edges:
    """Edges of several graphs, each with fewer real ones than the one before."""
    drawn = torch.stack([pairs(nodes, count, seed + row) for row in range(rows)])
    counts = torch.tensor([count - 3 * row for row in range(rows)])
    return Edges.of(drawn, nodes, counts)
