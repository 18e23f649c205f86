"""`watch`: what a model looked at, without touching what it computes.

Inside the context each attention layer keeps the queries and keys of its calls; the kernel that runs is the one that
would have run anyway, so outputs are the same bit for bit. Weights are computed afterwards, by the law, only for what
is asked.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from saccade.attend import plain
from saccade.attend.layer import Attention
from saccade.attend.mask import causal, document, order, padding, prefix, window
from saccade.attend.meaning import Meaning
from saccade.attend.score import cosine, dot, scaled_dot
from saccade.attend.seen import Log, Seen, versions
from saccade.attend.sparse import bigbird, blocks, dilated, windows
from saccade.decode.sequence import is_whole
from saccade.error import SaccadeError, nearest

M = TypeVar("M", bound=nn.Module)
# Masks that say the same to every head.
HEADLESS = (type(causal), window, prefix, padding, document, order, blocks, bigbird, dilated, windows)


class Watch:
    """What was recorded: `layers` names the attention layers, `weights` computes what one of them looked at."""

    def __init__(self, modules: dict[str, Attention]) -> None:
        self._modules = modules
        self._logs = {name: Log() for name in modules}

    @property
    def layers(self) -> list[str]:
        """The names of the watched layers, as in `model.named_modules()`."""
        return list(self._modules)

    def calls(self, name: str) -> int:
        """How often a layer was called."""
        return len(self._calls_of(name))

    @torch.no_grad()
    def weights(
        self,
        name: str,
        head: int | None = None,
        rows: int | slice | Iterable[int] | Tensor | None = None,
        call: int = -1,
    ) -> Tensor:
        """The weights of one call of a layer, (B,H,T,S), before dropout; with `head`, (B,T,S); `rows` chooses queries.

        Rows are numbers, or a bool for each. `call` counts the layer's calls in order, negative from the last.
        """
        q, k, meaning, grid, recorded, folded = self.call(name, call)
        if folded:
            raise SaccadeError(
                f"the past of {name!r} was folded into one state, where keys cannot be told apart: "
                f"watch a whole pass over the text instead of steps with a cache"
            )
        if recorded != versions(meaning, grid):
            raise SaccadeError(
                f"the mask, or parameters of the score or position, of {name!r} have changed since it was watched: "
                f"ask for the weights before the next step, or run the model again"
            )
        if rows is not None:
            chosen = _row_numbers(rows, q.shape[2]).to(q.device)
            q, grid = q[:, :, chosen], grid.take(chosen)
        if head is None:
            return plain.weights(q, k, meaning, grid)
        head = _index(head, q.shape[1], "head", f"{name!r} has")
        if _heads_are_separate(meaning):
            group = head // (q.shape[1] // k.shape[1])
            return plain.weights(q[:, head : head + 1], k[:, group : group + 1], meaning, grid)[:, 0]
        return plain.weights(q, k, meaning, grid)[:, head]

    def call(self, name: str, call: int = -1) -> Seen:
        """What one call of a layer looked at, and how."""
        seen = self._calls_of(name)
        if not seen:
            raise SaccadeError(f"{name!r} was not called while it was watched: run the model inside the context")
        return seen[_index(call, len(seen), "call", f"{name!r} was called")]

    @property
    def nbytes(self) -> int:
        """The memory of what was recorded."""
        return sum(each.nbytes for log in self._logs.values() for call in log.calls for each in (call.q, call.k))

    def _calls_of(self, name: str) -> list[Seen]:
        if name not in self._logs:
            raise SaccadeError(f"no watched layer is called {name!r}; {nearest(name, self._logs)}")
        return self._logs[name].calls


@contextmanager
def watch(model: nn.Module, layers: Iterable[str] | None = None) -> Iterator[Watch]:
    """Watches the attention layers of a model (or those named in `layers`) while the context lasts.

        with saccade.watch(model) as seen:
            model(x)
        seen.weights(seen.layers[0])

    Works on nested and compiled models and several calls; it leaves nothing behind in the model. The weights can be
    asked for later too.
    """
    found = {_plain_name(name): each for name, each in model.named_modules() if isinstance(each, Attention)}
    if not found:
        raise SaccadeError(
            f"{type(model).__name__} has no saccade.Attention layer to watch: nothing in it attends (see mixer, cross)"
        )
    if layers is not None:
        if isinstance(layers, str):
            layers = [layers]
        chosen = list(layers)
        for name in chosen:
            if name not in found:
                raise SaccadeError(f"no attention layer is called {name!r}; {nearest(name, found)}")
        found = {name: found[name] for name in chosen}
    seen = Watch(found)
    for name, layer in found.items():
        layer.watchers = (*layer.watchers, seen._logs[name])
    try:
        yield seen
    finally:
        for name, layer in found.items():
            rest = tuple(each for each in layer.watchers if each is not seen._logs[name])
            if rest:
                layer.watchers = rest
            else:
                del layer.watchers  # back to the empty tuple of the class


def twin(model: M) -> M:
    """A model of its own over the same weights: watching it, or hooks on it, do not disturb runs of the other."""
    tensors = [*model.parameters(), *model.buffers()]
    made = copy.deepcopy(model, {id(each): each for each in tensors})
    for layer in made.modules():
        if isinstance(layer, Attention):
            vars(layer).pop("watchers", None)  # watchers of the other do not watch this one
    return made


def _heads_are_separate(meaning: Meaning) -> bool:
    """Whether every head is computed in the same way, so that one can be computed alone."""
    masks = () if meaning.mask is None else meaning.mask.terms()
    scored = isinstance(meaning.score, dot | scaled_dot | cosine) and not meaning.has("scores")
    return scored and all(isinstance(each, HEADLESS) for each in masks)


def _plain_name(name: str) -> str:
    """torch.compile wraps a module; its name for the wrapper is no part of ours. A lone layer is called "attention"."""
    parts = [part for part in name.split(".") if part not in ("_orig_mod", "")]
    return ".".join(parts) or "attention"


def _row_numbers(rows: int | slice | Iterable[int] | Tensor, T: int) -> Tensor:
    if isinstance(rows, slice):
        return torch.arange(T)[rows]
    if isinstance(rows, Tensor | np.ndarray):
        rows = _rows_of_tensor(torch.as_tensor(rows), T)
    chosen = list(rows) if isinstance(rows, Iterable) else [rows]
    return torch.tensor([_index(row, T, "row", "there are") for row in chosen], dtype=torch.long)


def _rows_of_tensor(rows: Tensor, T: int) -> int | list[int]:
    """The rows that a tensor names, or that a bool for each of all rows says yes to."""
    if rows.dtype != torch.bool:
        return rows.tolist()
    if rows.shape != (T,):
        raise SaccadeError(f"rows chosen by bools need one for each of the {T} rows; got {rows.numel()}")
    return rows.nonzero().flatten().tolist()


def _index(index: int, size: int, what: str, have: str) -> int:
    if not is_whole(index):
        raise SaccadeError(f"{what} is a whole number; got {index!r}")
    if not -size <= index < size:
        raise SaccadeError(f"{what} {index} does not exist: {have} {size}")
    return index % size
