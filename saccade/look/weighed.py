"""`Weighed`: the weights that a map is made of: those of one layer, the mean of all cross-attention, or a rollout.

Rollout: Abnar and Zuidema 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.decode.sequence import is_whole
from saccade.error import SaccadeError, nearest
from saccade.look.cuts import Borders
from saccade.look.map import Weigh
from saccade.look.watch import Watch


class Layer(NamedTuple):
    """One attention layer: rows and columns name the sides that look and are looked at; kind: self, cross, or asks,
    where learned vectors look or are looked at; borders: of the windows that it cuts a picture into.
    """

    name: str
    stack: str
    number: int
    kind: str
    rows: str
    columns: str
    heads: int
    borders: Borders | None = None


class Weighed(NamedTuple):
    """The names of the sides that look (rows) and are looked at (columns), and the function that weighs them."""

    rows: str
    columns: str
    weigh: Weigh
    title: str


def single(watched: Watch, layer: Layer, head: int | str) -> Weighed:
    """A head of one layer, or all of them ("mean", "max")."""
    if isinstance(head, int) and head >= layer.heads:
        raise SaccadeError(f"head {head} does not exist: {layer.name!r} has {layer.heads}")
    weigh = partial(_weights, watched, [layer], head)
    return Weighed(layer.rows, layer.columns, weigh, f"{layer.name}, {_head_title(head)}")


def alignment(watched: Watch, layers: Sequence[Layer], head: int | str) -> Weighed:
    """All layers of cross-attention of the last stack that has any, together."""
    across = [each for each in layers if each.kind == "cross"]
    across = [each for each in across if each.stack == across[-1].stack]
    if not across:
        raise SaccadeError("an alignment is made of cross-attention, and this model has none: name a layer")
    weigh = partial(_weights, watched, across, head)
    return Weighed(across[0].rows, across[0].columns, weigh, f"alignment, {_head_title(head)}")


def rollout(watched: Watch, layers: Sequence[Layer], stack: str) -> Weighed:
    """How much of each token of the input has reached each place of the last layer of a stack, (T,T): the product over
    its layers of (W + 1) / 2, with W the mean over the heads.
    """
    chosen = [each for each in layers if each.stack == stack and each.kind == "self"]
    if not chosen:
        stacks = sorted({each.stack for each in layers if each.kind == "self"})
        there = nearest(stack, stacks) if stacks else "no stack has self-attention"
        raise SaccadeError(f"there is no stack {stack!r} to roll out; {there}")
    side = chosen[0].rows
    if other := next((each for each in chosen if each.rows != side), None):
        raise SaccadeError(
            f"there is no rollout over the {stack}: {chosen[0].name} looks at {side!r} and {other.name} at "
            f"{other.rows!r}; look at one layer"
        )
    return Weighed(side, side, _Rollout(watched, chosen), f"rollout of the {stack}")


class _Rollout:
    """The product of the layers, computed when it is first asked for and then kept."""

    def __init__(self, watched: Watch, layers: Sequence[Layer]) -> None:
        self.watched, self.layers = watched, layers
        self.product: Tensor | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        if self.product is None:
            self.product = reduce(lambda below, half: half @ below, map(self._half, self.layers))
        return self.product[None, rows]

    def _half(self, layer: Layer) -> Tensor:
        weights = self.watched.weights(layer.name)[0].float().mean(0)
        return (weights + torch.eye(len(weights), device=weights.device)) / 2


def _weights(watched: Watch, layers: Sequence[Layer], head: int | str, rows: Tensor) -> Tensor:
    """The weights of some rows in the heads of these layers, (h,r,S)."""
    if isinstance(head, int):
        return torch.cat([watched.weights(each.name, head, rows=rows) for each in layers])
    return torch.cat([watched.weights(each.name, rows=rows)[0] for each in layers])


def check_head(head: int | str) -> None:
    """Refuses what is no head of any layer."""
    if head not in ("mean", "max") and not (is_whole(head) and head >= 0):
        raise SaccadeError(f"head is a number from 0, 'mean' or 'max'; got {head!r}")


def _head_title(head: int | str) -> str:
    return f"head {head}" if isinstance(head, int) else f"{head} over the heads"
