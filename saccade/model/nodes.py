"""`nodes(features)`: the nodes of a graph as vectors, and its edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.edges import Edges
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.dropout import dropout as dropped
from saccade.model.input import value_of

SPARSE = 16  # features for each that is not 0, from which those alone are multiplied
LEAST = 64  # features below which all are


class nodes(nn.Module):
    """features (B,N,F) -> (B,N,C), each W x + b. dropout: of the features while training.

    Where nearly all features are 0, as those of words in a paper are, only the others are multiplied and dropped.
    """

    moves: ClassVar[Mapping[str, str]] = {"permutation": "the nodes numbered otherwise"}
    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, features: int = 1, dropout: float = 0.0, *, config: ModelConfig) -> None:
        super().__init__()
        if not isinstance(features, int) or features < 1:
            raise SaccadeError(f"nodes: a node has 1 feature at least; got {features}")
        if not 0 <= dropout < 1:
            raise SaccadeError(f"nodes: dropout is a share from 0 to below 1; got {dropout}")
        self.features, self.dropout = features, dropout
        self.out = nn.Linear(features, config.width)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, values: Mapping[str, Tensor]) -> Tensor:
        x = value_of(values, "features")
        if x.dim() != 3 or x.shape[2] != self.features:
            raise SaccadeError(f"features are (batch, nodes, {self.features}); got {tuple(x.shape)}")
        x = x.to(self.out.weight.dtype)
        if x.is_cpu and self.features >= LEAST and not x.requires_grad and not torch.compiler.is_compiling():
            rows = x.flatten(0, 1)
            if int(torch.count_nonzero(rows)) * SPARSE < rows.numel():
                return self._sparse(rows).view(*x.shape[:2], -1)
        return self.out(dropped(x, self.dropout, self.training))

    def _sparse(self, rows: Tensor) -> Tensor:
        """The product of rows (N,F) of which few numbers are not 0, (N,C)."""
        row, feature = rows.nonzero(as_tuple=True)
        values = dropped(rows[row, feature], self.dropout, self.training)
        counts = torch.bincount(row, minlength=len(rows))
        table, begins = self.out.weight.mT.contiguous(), counts.cumsum(0) - counts
        return F.embedding_bag(feature, table, begins, mode="sum", per_sample_weights=values) + self.out.bias

    def edges(self, values: Mapping[str, Tensor]) -> Edges:
        """The edges of all graphs of the batch."""
        weights = values.get("weights")
        found = Edges.of(value_of(values, "edges"), value_of(values, "features").shape[1], values.get("edge_counts"))
        return found if weights is None else found.weighing(weights)

    def permuted(self, values: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
        """The same graphs, whose n-th node is the one that was number `order[n]`."""
        number = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return {**values, "features": values["features"][:, order], "edges": number[values["edges"]]}

    def counted(self, lengths: Tensor) -> Tensor:
        """A vector for each node."""
        return lengths

    def sample(
        self, rows: int, length: int, device: torch.device | str | None = None, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Noise on `length` nodes in a ring."""
        features = torch.randn(rows, length, self.features, generator=generator, device=device)
        along = torch.arange(length, device=device)
        ring = torch.stack((along, (along + 1) % max(length, 1)), 1)
        return {"features": features, "edges": torch.cat((ring, ring.flip(1))).expand(rows, -1, -1)}


def laplacian(edges: Tensor, nodes: int, count: int) -> Tensor:
    """The eigenvectors of I - D^-1/2 A D^-1/2 with the smallest eigenvalues but the first, (N,count), as positions of
    nodes (Dwivedi and Bresson 2021); zeros where a graph has fewer. Their signs mean nothing.
    """
    matrix = torch.zeros(nodes, nodes, dtype=torch.float64)
    matrix[edges[:, 0], edges[:, 1]] = 1.0
    matrix = torch.maximum(matrix, matrix.T)
    scale = matrix.sum(1).clamp(min=1).rsqrt()
    _, vectors = torch.linalg.eigh(torch.eye(nodes, dtype=torch.float64) - scale[:, None] * matrix * scale)
    found = torch.zeros(nodes, count, dtype=torch.float64)
    held = vectors[:, 1 : count + 1] * math.sqrt(nodes)
    found[:, : held.shape[1]] = held
    return found.float()
