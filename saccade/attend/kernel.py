"""Which kernel computes a call. A kernel is a module with two functions:

    refuses(meaning) -> one sentence that says why it cannot compute this and which kernel can, or None
    attend(q, k, v, meaning, grid, dropout) -> output

`auto` chooses the fastest that computes exactly what was asked for.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

from torch import Tensor

from saccade.attend import block, chunked, edgewise, linear, plain, sdpa
from saccade.attend.grid import Grid
from saccade.attend.meaning import Meaning
from saccade.attend.score import pairs
from saccade.error import SaccadeError, nearest

LARGE = 1 << 24  # weights (and what the score holds for each) from which `auto` prefers `chunked` to `plain`
LONG = 256  # keys from which `auto` prefers `linear`, where it computes the same


class Kernel(Protocol):
    """One of our kernel modules, or an object of your own with the same two functions."""

    def refuses(self, meaning: Meaning) -> str | None: ...

    def attend(self, q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor: ...


def as_kernel(kernel: Kernel | ModuleType | str) -> Any:
    """A kernel from itself or its name; `auto` stays a name, since it depends on the call."""
    if isinstance(kernel, str):
        if kernel == "auto":
            return kernel
        if kernel not in KERNELS:
            raise SaccadeError(f"no kernel is called {kernel!r}; {nearest(kernel, ['auto', *KERNELS])}")
        return KERNELS[kernel]
    if not (hasattr(kernel, "refuses") and hasattr(kernel, "attend")):
        raise SaccadeError(f"kernel is a name or has 'refuses' and 'attend', unlike {type(kernel).__name__}")
    return kernel


def run(
    kernel: Any,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    meaning: Meaning,
    grid: Grid,
    dropout: float = 0.0,
    before: Tensor | None = None,
) -> Tensor:
    """The output, by the kernel asked for or, with "auto", by the fastest that computes exactly this.

    before: what keys and values before all of these were folded into, which `linear` alone goes on from.
    """
    if kernel == "auto" and before is None:
        return _fastest(q, meaning, grid, dropout).attend(q, k, v, meaning, grid, dropout)
    kernel = linear if before is not None else kernel
    refusal = kernel.refuses(meaning)
    if refusal is not None:
        raise SaccadeError(refusal)
    further = {} if before is None else {"before": before}
    return kernel.attend(q, k, v, meaning, grid, dropout, **further)


def _fastest(q: Tensor, meaning: Meaning, grid: Grid, dropout: float) -> ModuleType:
    if not dropout and grid.S >= LONG and linear.refuses(meaning) is None:
        return linear
    if edgewise.pays(q, meaning, grid):
        return edgewise
    if block.pays(q, meaning, grid):
        return block
    if sdpa.refuses(meaning) is None:
        return sdpa
    return chunked if q.shape[0] * q.shape[1] * grid.T * grid.S * pairs(meaning.score) > LARGE else plain


KERNELS: dict[str, ModuleType] = {
    "plain": plain,
    "sdpa": sdpa,
    "chunked": chunked,
    "linear": linear,
    "block": block,
    "edgewise": edgewise,
}
