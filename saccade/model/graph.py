"""Graph layers: how the nodes of a graph meet along its edges.

graph               s(W_1 x_i + sum_j W_2 x_j + b)                 the lecture's graph convolution; Morris et al. 2019
graph(mean)         s(W_1 x_i + mean_j W_2 x_j + b)                Hamilton et al. 2017 (GraphSAGE)
graph(symmetric)    s(sum_j W x_j / sqrt(d_i d_j) + b)             Kipf and Welling 2017 (GCN), i among its own j
gat                 s(sum_j a_ij W x_j + b), a = softmax of leaky  Velickovic et al. 2018 (GAT), i among its own j
  project=False     the same without the shared W: vectors are gathered as they are

Sums run over the neighbours j of i. Each is attention over the mask `neighbours`, with weights that are fixed in the
first three; `mixer = "attention"` with `mask = "neighbours"` is a graph transformer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.edges import Edges
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.error import SaccadeError, nearest


class GraphConvolution(nn.Module):
    """x (B,N,C) -> (B,N,C) over the edges. own: whether a node has a weight of its own, W_1, beside the shared one; by
    default where it is not among its own neighbours.
    """

    asks = ("edges",)
    window = None
    breaks: ClassVar[Mapping[str, str]] = {"causality": "a graph knows no order"}

    def __init__(
        self,
        width: int,
        gather: str = "sum",
        own: bool | None = None,
        activation: str = "relu",
        project: bool = True,
        *,
        inputs: int | None = None,
    ) -> None:
        """inputs: the width of x, where it is another."""
        super().__init__()
        if gather not in GATHERS:
            raise SaccadeError(f"graph: neighbours are gathered by {', '.join(GATHERS)}; got {gather!r}")
        if not isinstance(own, bool | None):
            raise SaccadeError(f"graph: own is True or False; got {own!r}")
        self.gather, self.activation = gather, as_activation("graph", activation)
        inputs = width if inputs is None else inputs
        self.narrows = width < inputs  # then the product comes before the sum, which is the same with less work
        self.shared = _product("graph", width, inputs, project)
        with_own = gather != "symmetric" if own is None else own
        self.own = _linear(width, inputs) if with_own else None
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(
        self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None, edges: Edges | None = None
    ) -> Tensor:
        """mask: padding, which no edge leads to."""
        edges = checked("graph", x, cache, edges)
        along, weights = GATHERS[self.gather](edges, x.dtype)
        rows = x.flatten(0, 1)
        given = self.shared(rows) if self.narrows else rows
        gathered = along.mixed(weights, given.unsqueeze(0)).squeeze(0)
        gathered = gathered if self.narrows else self.shared(gathered)
        if self.own is None:
            y = gathered + self.bias
        else:
            y = F.linear(rows, self.own.weight, self.bias).add_(gathered)
        return self.activation(y.view(*x.shape[:2], -1))


class GraphAttention(nn.Module):
    """x (B,N,C) -> (B,N,C): one product for all that is asked, offered and found, and attention over the neighbours."""

    asks = ("edges",)
    window = None
    breaks: ClassVar[Mapping[str, str]] = {"causality": "a graph knows no order"}

    def __init__(
        self,
        width: int,
        heads: int = 8,
        activation: str = "elu",
        dropout: float = 0.0,
        project: bool = True,
        *,
        inputs: int | None = None,
    ) -> None:
        super().__init__()
        self.activation = as_activation("gat", activation)
        self.shared = _product("gat", width, inputs, project)
        mask = "neighbours(loops=True)"
        self.attention = Attention(width, heads, score="leaky", mask=mask, project=False, dropout=dropout)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(
        self, x: Tensor, *, mask: Mask | None = None, cache: Cache | None = None, edges: Edges | None = None
    ) -> Tensor:
        """mask: padding, which no edge leads to."""
        edges = checked("gat", x, cache, edges)
        return self.activation(self.attention(self.shared(x), edges=edges) + self.bias)


def _product(whose: str, width: int, inputs: int | None, project: bool) -> nn.Module:
    """The shared product, or none."""
    if not isinstance(project, bool):
        raise SaccadeError(f"{whose}: project is True or False; got {project!r}")
    if not project:
        if inputs not in (None, width):
            raise SaccadeError(f"{whose}: without a product {inputs} numbers do not become {width}: leave out project")
        return nn.Identity()
    return _linear(width, width if inputs is None else inputs)


def _linear(width: int, inputs: int) -> nn.Linear:
    made = nn.Linear(inputs, width, bias=False)
    nn.init.xavier_uniform_(made.weight)
    return made


def checked(whose: str, x: Tensor, cache: Cache | None, edges: Edges | None) -> Edges:
    """The edges; refuses an input without them, or of other graphs."""
    if cache is not None:
        raise SaccadeError(f"{whose} reads whole graphs, and not step by step")
    if edges is None:
        raise SaccadeError(
            f"{whose} reads a graph, and this input has no edges: give it a graph ([x.NAME] kind = 'graph')"
        )
    if (edges.rows, edges.nodes) != tuple(x.shape[:2]):
        raise SaccadeError(f"the edges are of {edges.rows} graphs of {edges.nodes} nodes; x is {tuple(x.shape)}")
    return edges


def as_activation(whose: str, name: str) -> Callable[[Tensor], Tensor]:
    if name not in ACTIVATIONS:
        raise SaccadeError(f"{whose}: there is no activation {name!r}; {nearest(name, ACTIVATIONS)}")
    return ACTIVATIONS[name]


Gathered = tuple[Edges, Tensor | None]  # the edges, and their weights (1,E) where they are not all 1
GATHERS: dict[str, Callable[[Edges, torch.dtype], Gathered]] = {
    "sum": lambda edges, dtype: (edges, None if edges.unweighted else edges.weights.to(dtype).unsqueeze(0)),
    "mean": lambda edges, dtype: (edges, edges.averaging.to(dtype).unsqueeze(0)),
    "symmetric": lambda edges, dtype: (edges.looped, edges.looped.symmetric.to(dtype).unsqueeze(0)),
}
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "elu": F.elu,
    "gelu": F.gelu,
    "tanh": torch.tanh,
    "none": lambda x: x,
}
