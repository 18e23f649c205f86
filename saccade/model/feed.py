"""The feed-forward part of a block: what each vector does on its own.

Vaswani et al. 2017 (relu), Hendrycks and Gimpel 2016 (gelu, both forms), Shazeer 2020 (gated: swiglu, geglu),
Shazeer et al. 2017 and Fedus et al. 2021 (a choice of experts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend.mask import Mask, padding
from saccade.model.dropout import dropout
from saccade.model.padded import PaddedRows


def gelu_tanh(x: Tensor) -> Tensor:
    """The approximation of gelu by tanh, which GPT-2 uses."""
    return F.gelu(x, approximate="tanh")


PLAIN: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": gelu_tanh, "silu": F.silu}
GATED: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": F.silu, "geglu": F.gelu, "geglu_tanh": gelu_tanh}


IN_PLACE: dict[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] = {
    F.relu: torch.relu_,
    F.gelu: torch.ops.aten.gelu_,
    gelu_tanh: partial(torch.ops.aten.gelu_, approximate="tanh"),
    F.silu: partial(F.silu, inplace=True),
}


class FeedForward(nn.Module):
    """down(f(up(x))), or with a gate down(f(gate(x)) up(x)). (B,T,C) -> (B,T,C)."""

    breaks: ClassVar[Mapping[str, str]] = {}

    def __init__(self, width: int, hidden: int, kind: str = "gelu", *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.activation = (PLAIN | GATED)[kind]
        self.gate = nn.Linear(width, hidden, bias=bias) if kind in GATED else None
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        inner = self._activated(self.up if self.gate is None else self.gate, x)
        if self.gate is not None:
            inner = inner * self.up(x)
        return self.down(dropout(inner, self.dropout, self.training))

    def _activated(self, projection: nn.Module, x: Tensor) -> Tensor:
        """f(projection(x)), in place where nobody else can hold the projection's output: new memory costs time."""
        inner = projection(x)
        hooked = projection._forward_hooks or torch.nn.modules.module._global_forward_hooks
        ours = type(projection) is nn.Linear and not hooked
        if torch.is_grad_enabled() or not ours or torch.compiler.is_compiling():
            return self.activation(inner)
        return IN_PLACE.get(self.activation, self.activation)(inner)


class Experts(nn.Module):
    """Each token goes to the `chosen` best of several feed-forwards and gets their weighted sum.

    gates = softmax(router(x)), the best few renormalised; a single best one keeps its probability, or the router would
    not learn. While training, an expert takes at most capacity x its fair share of the tokens, the first ones first,
    their best choices before their second; a token that finds no room passes by (its block's residual keeps it). In use
    there is room for all, so that no token depends on its neighbours or on the future. Padding visits nobody and gets
    zeros. Balance: experts x sum_e share_e probability_e, 1 when even (Fedus et al. 2021), collected by `balance`.
    """

    breaks: ClassVar[Mapping[str, str]] = {}
    ledgers: tuple[list[Tensor], ...] = ()  # lists of `balance`, which collects losses in them

    def __init__(self, make: Callable[[], FeedForward], width: int, experts: int, chosen: int, capacity: float) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(make() for _ in range(experts))
        self.chosen, self.capacity = chosen, capacity

    def forward(self, x: Tensor, mask: Mask | None = None) -> Tensor:
        """mask: the padding of x (B,T,C); other masks are ignored."""
        known = isinstance(mask, padding) and not x.is_meta  # a meta tensor has no lengths to read
        held = PaddedRows(x, mask, "a choice of experts").held if known else None
        if held is None:
            return self._route(x.reshape(-1, x.shape[-1])).view_as(x)
        return torch.zeros_like(x).index_put((held,), self._route(x[held]))

    def _route(self, tokens: Tensor) -> Tensor:
        """The weighted sums of what the chosen experts make of each token, (N,C) -> (N,C)."""
        probabilities = self.router(tokens).softmax(-1)  # (N,experts)
        gates, choices = probabilities.topk(self.chosen, -1)  # (N,chosen)
        gates = gates / gates.sum(-1, keepdim=True) if self.chosen > 1 else gates
        room = self._room(tokens.shape[0])
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rank, token = _visitors(choices, number, len(self.experts))
            rank, token = rank[:room], token[:room]
            visited = expert(tokens[token]) * gates[token, rank].unsqueeze(-1)
            output = output.index_add(0, token, visited.to(output.dtype))
        if tokens.shape[0]:
            for ledger in self.ledgers:
                share = F.one_hot(choices[:, 0], len(self.experts)).to(probabilities.dtype).mean(0)
                ledger.append(len(self.experts) * (share * probabilities.mean(0)).sum())
        return output

    def _room(self, tokens: int) -> int:
        """How many of so many tokens an expert takes."""
        if not self.training:
            return tokens
        return math.ceil(self.capacity * tokens * self.chosen / len(self.experts))


def _visitors(choices: Tensor, expert: int, experts: int) -> tuple[Tensor, Tensor]:
    """Who chose an expert: the rank of the choice and the token, best choices first, then in order."""
    if choices.is_meta:  # only shapes are known: as if all experts were chosen equally often
        share = (choices.numel() + experts - 1 - expert) // experts
        token = torch.arange(min(share, choices.shape[0]), device=choices.device)
        return torch.zeros_like(token), token
    rank, token = choices.T.eq(expert).nonzero(as_tuple=True)
    return rank, token


@contextmanager
def balance(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collects the load-balancing loss of each layer of experts while the context lasts; add the mean to the loss."""
    layers = [each for each in model.modules() if isinstance(each, Experts)]
    ledger: list[Tensor] = []
    for layer in layers:
        layer.ledgers = (*layer.ledgers, ledger)
    try:
        yield ledger
    finally:
        for layer in layers:
            layer.ledgers = tuple(each for each in layer.ledgers if each is not ledger)
            if not layer.ledgers:
                del layer.ledgers
