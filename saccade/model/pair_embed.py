"""`pairs(features)`: the nodes of a graph as vectors, and the weights of its edges as vectors of pairs.

    z_ij = W [exp(-((w_ij - c) / s)^2) for each centre c; w_ij / reach; 1] + b  where there is an edge from j to i
    z_ij = b                                                                    elsewhere; on the diagonal b_0
    x_i  = W_x f_i + W_z mean_j z_ij                                            over the edges of i

The centres stand evenly from 0 to `reach`, s apart (Schuett et al. 2017, SchNet).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from saccade.attend.edges import Edges
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.input import value_of
from saccade.model.nodes import nodes


class pairs(nn.Module):
    """features (B,N,F), edges (B,E,2), weights (B,E) -> (B,N,C); `pairs` gives vectors (B,N,N,P) of the weights."""

    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the nodes numbered otherwise",
        "rotation": "points whose distances are the weights, turned, mirrored and moved",
    }
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, features: int = 1, reach: float = 6.0, centres: int = 16, *, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(centres, int) or centres < 2 or not reach > 0:
            raise SaccadeError(f"pairs: there are 2 centres at least, up to a reach above 0; got {centres} and {reach}")
        self.reach, self.centres = float(reach), centres
        self.width = config.pair or config.width
        self.nodes = nodes(features, config=config)
        self.known = nn.Linear(centres + 2, self.width)
        self.gathered = nn.Linear(self.width, config.width)
        self.itself = nn.Parameter(torch.zeros(self.width))

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        own: Tensor = self.nodes(values)
        weights, there = self.table(values)
        count = there.sum(2, keepdim=True).clamp(min=1)
        summed = torch.einsum("btsp,bts->btp", self._described(weights, there), there.to(own.dtype))
        return own + self.gathered(summed / count)

    def pairs(self, values: Mapping[str, Tensor]) -> Tensor:
        """The vectors of all pairs."""
        weights, there = self.table(values)
        found = self._described(weights, there)
        diagonal = torch.eye(found.shape[1], dtype=found.dtype, device=found.device)
        return found + diagonal.unsqueeze(2) * self.itself

    def edges(self, values: Mapping[str, Tensor]) -> Edges:
        """The edges of all graphs of the batch."""
        return self.nodes.edges(values)

    def table(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The weights of edges as a table (B,N,N), a row for the node that looks, and where there are edges."""
        edges, N = value_of(values, "edges"), value_of(values, "features").shape[1]
        dtype = self.known.weight.dtype
        weights = values["weights"].to(dtype) if "weights" in values else edges.new_ones(edges.shape[:2], dtype=dtype)
        B, E, _ = edges.shape
        counts = values.get("edge_counts")
        held = torch.full((B,), E, device=edges.device) if counts is None else counts.to(edges.device)
        real = torch.arange(E, device=edges.device) < held.view(-1, 1)
        froms, tos = edges.unbind(2)
        cells = torch.where(real, tos * N + froms, N * N)  # those of padding go where nobody looks
        table = weights.new_zeros(B, N * N + 1).scatter(1, cells, weights)[:, :-1].view(B, N, N)
        there = torch.zeros(B, N * N + 1, dtype=torch.bool, device=edges.device).scatter(1, cells, True)[:, :-1]
        return table, there.view(B, N, N)

    def permuted(self, values: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
        """The same graphs, whose n-th node is the one that was number `order[n]`."""
        return self.nodes.permuted(values, order)

    def turned(
        self, values: Mapping[str, Tensor], random: torch.Generator
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The same edges with the distances of points at random, and with those of the points turned and mirrored."""
        points = torch.randn(values["features"].shape[1], 3, generator=random, dtype=torch.float64)
        turn = torch.linalg.qr(torch.randn(3, 3, generator=random, dtype=torch.float64))[0]
        both = points, (points @ turn) * torch.tensor([1.0, 1.0, -1.0]) + 5.0
        one, other = ((each[values["edges"]].diff(dim=2).norm(dim=3).squeeze(2)) for each in both)
        return {**values, "weights": one}, {**values, "weights": other}

    def counted(self, lengths: Tensor) -> Tensor:
        """A vector for each node."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """A ring of `length` nodes, its edges with weights."""
        values = self.nodes.sample(rows, length, device, generator)
        shape = values["edges"].shape[:2]
        return values | {"weights": torch.rand(shape, generator=generator, device=device) * self.reach}

    def _described(self, weights: Tensor, there: Tensor) -> Tensor:
        """The vectors of weights (B,N,N), in which the absent ones are alike, (B,N,N,P)."""
        step = self.reach / (self.centres - 1)
        centres = torch.arange(self.centres, dtype=weights.dtype, device=weights.device) * step
        near = torch.exp(-(((weights.unsqueeze(3) - centres) / step) ** 2))
        told = torch.cat((near, (weights / self.reach).unsqueeze(3), torch.ones_like(weights).unsqueeze(3)), 3)
        return self.known(told * there.unsqueeze(3))
