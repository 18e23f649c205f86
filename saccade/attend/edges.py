"""`Edges`: who is a neighbour of whom in a batch of graphs, and sums along the edges, at a cost proportional to them.

An edge (j, i) lets node i look at node j. All graphs of a batch count as one, in which no edge joins two of them: node
i of graph b has the number b T + i. The sums are closed under differentiation, so gradients of gradients exist too:

    taken     x_j for each edge             gradient: a total over the edges of each node
    total     sum over the edges of i       gradient: taken
    mixed     sum_j w_ij x_j                gradient: mixed the other way, and products
    products  q_i . k_j for each edge       gradient: mixed, both ways

An embedding bag sums rows without a copy for each edge: about ten times as fast here as gathering and adding them.
"""

from __future__ import annotations

import warnings
from functools import cache, cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend.numbers import dtype
from saccade.error import SaccadeError


class Copies(NamedTuple):
    """key (H E,): numbers of nodes; where the edges of each node begin and, behind the last node, end: (H N + 1,)."""

    key: Tensor
    ends: Tensor


class Edges:
    """Edges of `rows` graphs with room for `nodes` nodes each, sorted by query.

    query, key (E,): numbers of nodes; `order` (E,): where each stood among the edges it was made of; weights (E,):
    how much each edge counts in a sum. What a sum does not need is made when it is asked for: on a small graph it would
    take as long as the sum.
    """

    def __init__(
        self,
        query: Tensor | None,
        key: Tensor,
        rows: int,
        nodes: int,
        order: Tensor | None = None,
        weights: Tensor | None = None,
        ends: Tensor | None = None,
    ) -> None:
        """query: in ascending order, or None where `ends` (N + 1,) tells it; weights: 1 by default."""
        self.key, self.rows, self.nodes, self.unweighted = key, rows, nodes, weights is None
        self.turned_by: Tensor | None = None
        given = {"query": query, "order": order, "weights": weights, "ends": ends}
        self.__dict__.update((name, value) for name, value in given.items() if value is not None)

    @classmethod
    def of(cls, pairs: Tensor, nodes: int, counts: Tensor | None = None) -> Edges:
        """pairs (B,E,2) or (E,2): (j, i) lets i look at j; counts (B,): how many of them are real, the first ones."""
        if not isinstance(pairs, Tensor) or pairs.is_floating_point() or pairs.dim() not in (2, 3):
            got = f"{dtype(pairs)} {tuple(pairs.shape)}" if isinstance(pairs, Tensor) else type(pairs).__name__
            raise SaccadeError(f"edges are whole numbers (batch, edges, 2) of nodes from 0; got {got}")
        pairs = (pairs if pairs.dim() == 3 else pairs.unsqueeze(0)).long()
        if pairs.shape[2] != 2:
            raise SaccadeError(f"an edge has two nodes; got edges of {pairs.shape[2]}")
        B, E, _ = pairs.shape
        real = None if counts is None else torch.arange(E, device=pairs.device) < counts.view(-1, 1)
        if not pairs.is_meta and pairs.numel():
            low, high = pairs.aminmax()
            if int(low) < 0 or int(high) >= nodes:
                _check_inside(pairs, nodes, real)
        ends = pairs if B == 1 else pairs + (torch.arange(B, device=pairs.device) * nodes).view(-1, 1, 1)
        key, query = ends.flatten(0, 1).unbind(1)
        if real is None:
            order = _ascending(query)
        else:
            kept = _where(real.flatten())
            query = query[kept]
            order = kept[_ascending(query)]
        return cls(None, key.index_select(0, order), B, nodes, order, ends=_ends(query, B * nodes))

    def __len__(self) -> int:
        return len(self.key)

    @property
    def count(self) -> int:
        """How many nodes there is room for in all graphs together."""
        return self.rows * self.nodes

    @property
    def device(self) -> torch.device:
        return self.key.device

    @cached_property
    def query(self) -> Tensor:
        return torch.repeat_interleave(self.degrees, output_size=len(self))

    @cached_property
    def order(self) -> Tensor:
        return self.numbers

    @cached_property
    def weights(self) -> Tensor:
        return torch.ones(len(self), device=self.device)

    @cached_property
    def degrees(self) -> Tensor:
        """How many edges each node looks along, (N,)."""
        return self.ends.diff()

    @cached_property
    def ends(self) -> Tensor:
        """Where the edges of each node begin and, behind the last node, end: (N + 1,)."""
        return _ends(self.query, self.count)

    @cached_property
    def _copies(self) -> dict[int, Copies]:
        return {}

    def copies(self, heads: int) -> Copies:
        """As many copies behind each other, as the edges of one graph: so all heads are summed in one call."""
        if heads == 1:
            return Copies(self.key, self.ends)
        if heads not in self._copies:
            number = torch.arange(heads, device=self.device).view(-1, 1)
            key = (self.key + number * self.count).flatten()
            begins = (self.ends[:-1] + number * len(self)).flatten()
            total = torch.full_like(begins[:1], heads * len(self))
            self._copies[heads] = Copies(key, torch.cat((begins, total)))
        return self._copies[heads]

    @cached_property
    def numbers(self) -> Tensor:
        """0, 1, 2 ... for the edges."""
        return torch.arange(len(self), device=self.device)

    @cached_property
    def turn(self) -> Tensor:
        """The edges sorted by key: numbers of edges (E,)."""
        if self.turned_by is None:
            return _ascending(self.key)
        return torch.empty_like(self.turned_by).scatter_(0, self.turned_by, self.numbers)

    @cached_property
    def turned(self) -> Edges:
        """The same edges the other way round; its edge n is this one's edge `turn[n]`. It does not know this one: what
        knows each other stays in memory until Python looks for such circles, many steps long.
        """
        key, ends = self.query.index_select(0, self.turn), _ends(self.key, self.count)
        other = Edges(None, key, self.rows, self.nodes, self.turn, ends=ends)
        other.turned_by = self.turn
        return other

    def weighing(self, weights: Tensor) -> Edges:
        """The same with weights, (B,E) or (E,) as the pairs that the edges were made of."""
        return Edges(self.query, self.key, self.rows, self.nodes, self.order, weights.reshape(-1)[self.order])

    @cached_property
    def averaging(self) -> Tensor:
        """w_ij / sum_j w_ij, (E,)."""
        total = self.total(self.weights.unsqueeze(0))[0]
        return self.weights / total.index_select(0, self.query)

    @cached_property
    def symmetric(self) -> Tensor:
        """w_ij / sqrt(d_i d_j), with d the sum of the weights of a node's edges; (E,)."""
        scale = self.total(self.weights.unsqueeze(0))[0].rsqrt()
        return self.weights * scale.index_select(0, self.query) * scale.index_select(0, self.key)

    @cached_property
    def looped(self) -> Edges:
        """With an edge from each node to itself; those that were there are the same edge. Their `order` is -1."""
        strangers, itself = _where(self.query != self.key), torch.arange(self.count, device=self.device)
        query, key = self.query.index_select(0, strangers), self.key.index_select(0, strangers)
        first = _ends(query, self.count)[:-1] + itself  # where each node's own edge goes, before its others
        places = torch.cat((torch.arange(len(query), device=self.device) + query + 1, first))

        def put(some: Tensor, own: Tensor) -> Tensor:
            both = torch.cat((some, own))
            return torch.empty_like(both).scatter_(0, places, both)

        order = put(self.order[strangers], torch.full_like(itself, -1))
        weights = put(self.weights[strangers], torch.ones_like(itself, dtype=self.weights.dtype))
        return Edges(put(query, itself), put(key, itself), self.rows, self.nodes, order, weights)

    @cached_property
    def distinct(self) -> Edges:
        """Each edge once, the first of equal ones."""
        order = _ascending(self.key)
        order = order[_ascending(self.query[order])]
        query, key = self.query[order], self.key[order]
        again = (query[1:] == query[:-1]) & (key[1:] == key[:-1])
        if again.is_meta or not bool(again.any()):
            return self
        which = torch.ones_like(self.query, dtype=torch.bool)
        which[order[1:][again]] = False
        return self.kept(which)

    def kept(self, which: Tensor) -> Edges:
        """Some of the edges: those where `which` (E,) is True."""
        if which.is_meta or bool(which.all()):
            return self
        parts = self.query[which], self.key[which], self.rows, self.nodes, self.order[which], self.weights[which]
        return Edges(*parts)

    def permuted(self, order: Tensor) -> Edges:
        """The edges of one graph whose nodes are numbered otherwise: its n-th is the one that was number `order[n]`."""
        number = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        query, key = number[self.query], number[self.key]
        turn = (query * self.nodes + key).argsort(stable=True)
        return Edges(query[turn], key[turn], self.rows, self.nodes, self.order[turn], self.weights[turn])

    def alone(self, b: int) -> Edges:
        """The edges of one graph."""
        if self.rows == 1:
            return self
        begin, end = torch.searchsorted(self.query, torch.tensor([b, b + 1], device=self.device) * self.nodes).tolist()
        first = b * self.nodes
        query, key, order, weights = (x[begin:end] for x in (self.query, self.key, self.order, self.weights))
        return Edges(query - first, key - first, 1, self.nodes, order, weights)

    def dense(self) -> Tensor:
        """Who may look at whom, (B,T,T)."""
        may = torch.zeros(self.rows, self.nodes, self.nodes, dtype=torch.bool, device=self.device)
        may.view(-1, self.nodes)[self.query, self.key % self.nodes] = True
        return may

    def to(self, device: torch.device | str) -> Edges:
        """The same on a device."""
        query, key, order, weights = (x.to(device) for x in (self.query, self.key, self.order, self.weights))
        return Edges(query, key, self.rows, self.nodes, order, weights)

    def of_queries(self, x: Tensor) -> Tensor:
        """x_i for the query i of each edge: (H,N) or (H,N,D) -> (H,E) or (H,E,D)."""
        return _differentiable(_Taken, x, self, True)

    def of_keys(self, x: Tensor) -> Tensor:
        """x_j for the key j of each edge."""
        return _differentiable(_Taken, x, self, False)

    def total(self, values: Tensor) -> Tensor:
        """The sum over the edges of each query: (H,E) or (H,E,D) -> (H,N) or (H,N,D)."""
        return _differentiable(_Total, values, self)

    def largest(self, values: Tensor) -> Tensor:
        """The largest value of each query's edges, (H,E) -> (H,N), without a gradient; 0 without edges."""
        H = len(values)
        lengths = self.degrees.repeat(H)
        found = torch.segment_reduce(values.detach().reshape(-1), "max", lengths=lengths, axis=0)
        return found.masked_fill(lengths == 0, 0.0).view(H, -1)

    def mixed(self, weights: Tensor | None, x: Tensor) -> Tensor:
        """sum_j w_ij x_j over the edges of i: (H,E), (H,N,D) -> (H,N,D). Without weights: sum_j x_j."""
        return _differentiable(_Mixed, weights, x, self)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        """q_i . k_j for each edge: (H,N,D), (H,N,D) -> (H,E)."""
        return _differentiable(_Products, q, k, self)

    def softmax(self, scores: Tensor) -> Tensor:
        """exp(s_ij) / sum_j exp(s_ij) over the edges of i: (H,E) -> (H,E)."""
        shares = (scores - self.of_queries(self.largest(scores))).exp()
        return shares / self.of_queries(self.total(shares))


def _check_inside(pairs: Tensor, nodes: int, real: Tensor | None) -> None:
    """Refuses an edge (B,E,2) to a node that is not there; real (B,E): which of them are edges."""
    wrong = ((pairs < 0) | (pairs >= nodes)).any(2)
    wrong = wrong if real is None else wrong & real
    if bool(wrong.any()):
        b, e = wrong.nonzero()[0].tolist()
        one, other = pairs[b, e].tolist()
        raise SaccadeError(f"edge {e} joins the nodes {one} and {other}, and there are {nodes}, from 0")


def _where(which: Tensor) -> Tensor:
    """The numbers at which it is True; without values, as on the meta device, all may be."""
    return torch.arange(len(which), device=which.device) if which.is_meta else which.nonzero().squeeze(1)


def _ascending(numbers: Tensor) -> Tensor:
    """The order in which they ascend, equal ones as they stood. As arrays of numpy those of 16 bits are sorted by
    counting, and larger ones as values that have their places in their last bits: several times as fast as comparing.
    """
    values = _values(numbers)
    if values is None:
        return numbers.argsort(stable=True)
    top, bits = int(values.max(initial=0)).bit_length(), len(values).bit_length()
    if top <= 16:
        return torch.from_numpy(values.astype("uint16").argsort(kind="stable"))
    if top + bits > 63:
        return numbers.argsort(stable=True)
    places = (values << bits) | torch.arange(len(values)).numpy()
    places.sort()
    places &= (1 << bits) - 1
    return torch.from_numpy(places)


def _ends(numbers: Tensor, count: int) -> Tensor:
    """Where, once they are sorted, each number below the count begins and, behind the last, ends: (count + 1,). Without
    values, as on the meta device, nobody knows.
    """
    if numbers.is_meta:
        return torch.empty(count + 1, dtype=torch.long, device="meta")
    return F.pad(torch.bincount(numbers, minlength=count).cumsum(0), (1, 0))


def _values(numbers: Tensor) -> Any:
    """The same memory as an array of the numpy that comes along with torch; None without it, on other devices and for
    a compiler.
    """
    if not numbers.is_cpu or torch.compiler.is_compiling():
        return None
    try:
        return numbers.numpy()
    except RuntimeError:
        return None


def _differentiable(function: Any, *arguments: Any) -> Tensor:
    """The function's value, recorded where a gradient can be asked for."""
    recorded = torch.is_grad_enabled() and any(isinstance(each, Tensor) and each.requires_grad for each in arguments)
    found: Tensor = function.apply(*arguments) if recorded else function.value(*arguments)
    return found


class _Taken(torch.autograd.Function):
    """x_i or x_j of each edge."""

    @staticmethod
    def value(x: Tensor, edges: Edges, queries: bool) -> Tensor:
        return x.index_select(1, edges.query if queries else edges.key)

    @staticmethod
    def forward(context: Any, x: Tensor, edges: Edges, queries: bool) -> Tensor:
        context.edges, context.queries = edges, queries
        return _Taken.value(x, edges, queries)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        edges: Edges = context.edges
        if context.queries:
            return edges.total(gradient), None, None
        if gradient.dim() == 2 and not torch.is_grad_enabled():
            return gradient.new_zeros(len(gradient), edges.count).index_add_(1, edges.key, gradient), None, None
        return edges.turned.total(gradient.index_select(1, edges.turn)), None, None


class _Total(torch.autograd.Function):
    """The sum over the edges of each query."""

    @staticmethod
    def value(values: Tensor, edges: Edges) -> Tensor:
        H, N = len(values), edges.count
        if values.dim() == 3:
            numbers = torch.arange(values.shape[0] * values.shape[1], device=values.device)
            return _bag(numbers, values.flatten(0, 1), edges.copies(H).ends).view(H, N, -1)
        return values.new_zeros(H, N).index_add_(1, edges.query, values)

    @staticmethod
    def forward(context: Any, values: Tensor, edges: Edges) -> Tensor:
        context.edges = edges
        return _Total.value(values, edges)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return context.edges.of_queries(gradient), None


class _Mixed(torch.autograd.Function):
    """sum_j w_ij x_j."""

    @staticmethod
    def value(weights: Tensor | None, x: Tensor, edges: Edges) -> Tensor:
        H, N, D = x.shape
        key, ends = edges.copies(H)
        flat = None if weights is None else weights.reshape(-1)
        return _bag(key, x.reshape(H * N, D), ends, flat).view(H, N, D)

    @staticmethod
    def forward(context: Any, weights: Tensor | None, x: Tensor, edges: Edges) -> Tensor:
        context.edges = edges
        context.save_for_backward(weights, x)
        return _Mixed.value(weights, x, edges)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        weights, x = context.saved_tensors
        edges: Edges = context.edges
        to_weights, to_x, _ = context.needs_input_grad
        to_weights = edges.products(gradient, x) if to_weights else None
        if not to_x:
            return to_weights, None, None
        turned = None if weights is None else weights.index_select(1, edges.turn)
        return to_weights, edges.turned.mixed(turned, gradient), None


class _Products(torch.autograd.Function):
    """q_i . k_j."""

    @staticmethod
    def value(q: Tensor, k: Tensor, edges: Edges) -> Tensor:
        return _products(q, k, edges)

    @staticmethod
    def forward(context: Any, q: Tensor, k: Tensor, edges: Edges) -> Tensor:
        context.edges = edges
        context.save_for_backward(q, k)
        return _products(q, k, edges)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        q, k = context.saved_tensors
        edges: Edges = context.edges
        to_q, to_k, _ = context.needs_input_grad
        forward = edges.mixed(gradient, k) if to_q else None
        return forward, edges.turned.mixed(gradient.index_select(1, edges.turn), q) if to_k else None, None


def _bag(rows: Tensor, table: Tensor, ends: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sums of rows of a table (N,D), weighted, from each end to the next. Detached: asked for a gradient, the bag
    would note for each row whose it is.
    """
    weights = None if weights is None else weights.detach()
    return F.embedding_bag(rows, table.detach(), ends, mode="sum", per_sample_weights=weights, include_last_offset=True)


def _products(q: Tensor, k: Tensor, edges: Edges) -> Tensor:
    """q_i . k_j, (H,E): the entries of q k^T at the edges, of which torch computes no others."""
    if not q.is_cpu or torch.compiler.is_compiling():
        return (q.index_select(1, edges.query) * k.index_select(1, edges.key)).sum(2)
    _quiet()
    (H, N, _), copies = q.shape, edges.copies(len(q))
    empty = torch.zeros(len(copies.key), dtype=q.dtype)
    table = torch.sparse_csr_tensor(copies.ends, copies.key, empty, (H * N, H * N))
    found = torch.sparse.sampled_addmm(table, q.flatten(0, 1), k.flatten(0, 1).mT, beta=0.0)
    return found.values().view(H, len(edges))


@cache
def _quiet() -> None:
    """torch warns once that tables of this kind are new; said here, it is not said to a user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1))
