"""`Ablation`: does a head matter? Its output is set to zero, and the drop in the log-probability is measured.

The head's values are set to zero before the projection that joins the heads (Michel et al. 2019). All heads of a layer
are tried in one batch, each example with another head silenced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.attend.layer import Attention

TOGETHER = 1 << 12  # tokens that run through the model at a time


class Ablation(NamedTuple):
    """before: the log-probability of the output; heads: by how much it changes without each head, mostly below 0."""

    before: float
    heads: list[float]


def ablate(layer: Attention, score: Callable[[int], Tensor], tokens: int) -> Ablation:
    """score(n) gives the log-probability (n,) of the output of n copies of an input of so many tokens."""
    (before,) = score(1).tolist()
    after: list[float] = []
    for some in torch.arange(layer.heads).split(max(1, TOGETHER // max(tokens, 1))):
        with _eagerly(), silenced(layer, some):
            after += score(len(some)).tolist()
    return Ablation(before, [each - before for each in after])


@contextmanager
def _eagerly() -> Iterator[None]:
    """Runs compiled modules eagerly while the context lasts: a compiled graph would not call our hook."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def silenced(layer: Attention, heads: Tensor) -> Iterator[None]:
    """While the context lasts, the output of head heads[b] of the layer is zero in example b."""
    keep = torch.ones(len(heads), layer.heads)
    keep[torch.arange(len(heads)), heads] = 0.0

    def silence(_: nn.Module, given: tuple[Any, ...]) -> tuple[Tensor]:
        (x,) = given  # (B,T,H*D)
        said = x.unflatten(-1, (layer.heads, -1)) * keep.to(x)[:, None, :, None]
        return (said.flatten(-2),)

    hook = layer.out.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        hook.remove()
