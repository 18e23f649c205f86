"""`pairs(features)`: the nodes of a graph as vectors, and the weights and features of its edges as vectors of pairs.

    z_ij = W [exp(-((w_ij - c) / s)^2) for each centre c; w_ij / reach; 1] + W_e e_ij + b  for an edge from j to i
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
    """features (B,N,F), edges (B,E,2), weights (B,E), edge_features (B,E,K) -> (B,N,C); `pairs` gives vectors
    (B,N,N,P) of the edges. Without weights each is 1.
    """

    moves: ClassVar[Mapping[str, str]] = {
        "permutation": "the nodes numbered otherwise",
        "rotation": "points whose distances are the weights, turned, mirrored and moved",
    }
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        features: int = 1,
        reach: float = 6.0,
        centres: int = 16,
        edge_features: int = 0,
        *,
        config: ModelConfig,
    ) -> None:
        super().__init__()
        if not isinstance(centres, int) or centres < 2 or not reach > 0:
            raise SaccadeError(f"pairs: there are 2 centres at least, up to a reach above 0; got {centres} and {reach}")
        self.reach, self.centres = float(reach), centres
        self.width = config.pair or config.width
        self.nodes = nodes(features, config=config)
        self.known = nn.Linear(centres + 2, self.width)
        self.told = nn.Linear(edge_features, self.width, bias=False) if edge_features else None
        self.gathered = nn.Linear(self.width, config.width)
        self.itself = nn.Parameter(torch.zeros(self.width))

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        own: Tensor = self.nodes(values)
        found, there = self._known(values)
        count = there.sum(2, keepdim=True).clamp(min=1)
        summed = torch.einsum("btsp,bts->btp", found, there.to(own.dtype))
        return own + self.gathered(summed / count)

    def pairs(self, values: Mapping[str, Tensor]) -> Tensor:
        """The vectors of all pairs."""
        found, _ = self._known(values)
        diagonal = torch.eye(found.shape[1], dtype=found.dtype, device=found.device)
        return found + diagonal.unsqueeze(2) * self.itself

    def edges(self, values: Mapping[str, Tensor]) -> Edges:
        """The edges of all graphs of the batch."""
        return self.nodes.edges(values)

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
        """A ring of `length` nodes, its edges with weights and features."""
        values = self.nodes.sample(rows, length, device, generator)
        shape = values["edges"].shape[:2]
        values = values | {"weights": torch.rand(shape, generator=generator, device=device) * self.reach}
        if self.told is None:
            return values
        wide = self.told.in_features
        return values | {"edge_features": torch.randn(*shape, wide, generator=generator, device=device)}

    def _known(self, values: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The vectors of pairs (B,N,N,P), a row for the node that looks, those without an edge alike; and where there
        are edges, (B,N,N).
        """
        edges, N = value_of(values, "edges"), value_of(values, "features").shape[1]
        dtype = self.known.weight.dtype
        cells = _cells(edges, values.get("edge_counts"), N)
        weights = values["weights"].to(dtype) if "weights" in values else edges.new_ones(edges.shape[:2], dtype=dtype)
        there = _table(torch.ones_like(cells, dtype=torch.bool).unsqueeze(2), cells, N)
        found: Tensor = self.known(self._described(_table(weights.unsqueeze(2), cells, N).squeeze(3)) * there)
        if self.told is not None:
            found = found + _table(self.told(value_of(values, "edge_features").to(dtype)), cells, N)
        return found, there.squeeze(3)

    def _described(self, weights: Tensor) -> Tensor:
        """How near weights (B,N,N) lie to each centre, their size and a 1, (B,N,N,centres + 2)."""
        step = self.reach / (self.centres - 1)
        centres = torch.arange(self.centres, dtype=weights.dtype, device=weights.device) * step
        near = torch.exp(-(((weights.unsqueeze(3) - centres) / step) ** 2))
        return torch.cat((near, (weights / self.reach).unsqueeze(3), torch.ones_like(weights).unsqueeze(3)), 3)


def _cells(edges: Tensor, counts: Tensor | None, N: int) -> Tensor:
    """Where each edge (B,E,2) stands in a table of all pairs, read row by row, (B,E); padding stands behind its end."""
    froms, tos = edges.unbind(2)
    if counts is None:
        return tos * N + froms
    real = torch.arange(edges.shape[1], device=edges.device) < counts.to(edges.device).view(-1, 1)
    return torch.where(real, tos * N + froms, N * N)


def _table(rows: Tensor, cells: Tensor, N: int) -> Tensor:
    """The rows (B,E,K) of edges as a table (B,N,N,K) of all pairs, zeros where there is none."""
    B, _, K = rows.shape
    table = rows.new_zeros(B, N * N + 1, K).scatter(1, cells.unsqueeze(2).expand(-1, -1, K), rows)
    return table[:, :-1].view(B, N, N, K)
