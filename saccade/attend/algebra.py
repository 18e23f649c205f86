"""What a mask is, and how masks compose with `& | ~`. `True = may look`, everywhere.

A mask is a small predicate over absolute positions i (of the query) and j (of the key). It costs nothing until a kernel
needs it densely, and reads back as the spec string that makes it. The masks themselves are in `mask` and `sparse`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from saccade.attend.grid import Grid, first
from saccade.attend.numbers import dtype
from saccade.attend.tile import ALL, NOBODY, SOME, Tiling, count
from saccade.error import SaccadeError


class Mask:
    """Who may look at whom. Subclasses say it in `dense`; calling a mask draws it: `causal(4)`, `window(2)(3, 5)`."""

    def dense(self, grid: Grid) -> Tensor:
        """The mask as a bool tensor that broadcasts to (B,H,T,S)."""
        raise NotImplementedError

    def terms(self) -> tuple[Mask, ...]:
        """The masks whose conjunction this is; none where everyone may look at everyone."""
        return (self,)

    def relative(self) -> bool:
        """Whether it depends on i - j alone; any other mask changes when padding on the left moves queries and keys."""
        return False

    def back(self) -> int | None:
        """How many positions back, its own among them, a query looks at most; None: as many as there are."""
        return None

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that attention under it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": f"the mask {self} goes by positions", "causality": f"the mask {self} shows what comes"}
        return found if self.relative() else {**found, "shift": f"the mask {self} goes by absolute positions"}

    def tiles(self, tiling: Tiling) -> Tensor:
        """Whether nobody, some or all may look in each tile, (n or 1, m or 1); "some" where it is hard to say.

        The `dense` of a mask with tiles must also work for a part of the keys: it takes their positions from `grid.j`.
        """
        raise NotImplementedError

    def has_tiles(self) -> bool:
        """Whether `tiles` can be asked, as the kernel `block` does."""
        return type(self).tiles is not Mask.tiles

    def alone(self, b: int) -> Mask:
        """The mask of one example; itself where all have the same."""
        return self

    def bind(self, **batch: Any) -> Mask:
        """The same mask with a bare `padding` (lengths, side), `document` (ids) or `neighbours` (edges) filled in from
        the batch.
        """
        return self

    def tensors(self) -> Iterator[Tensor]:
        """The tensors that it and its parts hold."""
        for each in vars(self).values():
            if isinstance(each, Tensor):
                yield each
            elif isinstance(each, Mask):
                yield from each.tensors()

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        """Raises if the mask's own data do not belong to a call of this size on this device."""

    def __call__(self, T: int, S: int | None = None, *, start: int | None = None) -> Tensor:
        """The bool tensor for T queries over S keys (by default T), (T,S) where nothing depends on the example."""
        S = T if S is None else S
        drawn = self.dense(Grid(T, S, first(T, S, start), torch.device("cpu")))
        if drawn.shape[2] not in (1, T) or drawn.shape[3] not in (1, S):
            raise SaccadeError(
                f"the mask has shape {tuple(drawn.shape[-2:])}, which does not broadcast to (T,S) = {(T, S)}"
            )
        drawn = drawn.expand(*drawn.shape[:2], T, S)
        return drawn[0, 0] if drawn.shape[:2] == (1, 1) else drawn

    def __and__(self, other: Mask | Tensor) -> Mask:
        return both(self, _operand(other))

    def __or__(self, other: Mask | Tensor) -> Mask:
        return either(self, _operand(other))

    def __rand__(self, other: Mask | Tensor) -> Mask:
        return both(_operand(other), self)

    def __ror__(self, other: Mask | Tensor) -> Mask:
        return either(_operand(other), self)

    def __invert__(self) -> Mask:
        return hidden(self)

    def __repr__(self) -> str:
        written = [_written(getattr(self, each.name)) for each in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(written)})" if written else type(self).__name__


@dataclass(frozen=True, eq=False, repr=False)
class TwoMasks(Mask):
    """Two masks combined; what `both` and `either` have in common."""

    a: Mask
    b: Mask

    def relative(self) -> bool:
        return self.a.relative() and self.b.relative()

    @property
    def breaks(self) -> Mapping[str, str]:
        return {**self.b.breaks, **self.a.breaks}

    def has_tiles(self) -> bool:
        return self.a.has_tiles() and self.b.has_tiles()

    def alone(self, b: int) -> Mask:
        parts = self.a.alone(b), self.b.alone(b)
        return self if parts == (self.a, self.b) else type(self)(*parts)

    def bind(self, **batch: Any) -> Mask:
        return type(self)(self.a.bind(**batch), self.b.bind(**batch))

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        self.a.fits(B, H, T, S, device)
        self.b.fits(B, H, T, S, device)


@dataclass(frozen=True, eq=False, repr=False)
class both(TwoMasks):
    """a & b."""

    def dense(self, grid: Grid) -> Tensor:
        return self.a.dense(grid) & self.b.dense(grid)

    def terms(self) -> tuple[Mask, ...]:
        return self.a.terms() + self.b.terms()

    def back(self) -> int | None:
        reaches = [each for each in (self.a.back(), self.b.back()) if each is not None]
        return min(reaches, default=None)

    @property
    def breaks(self) -> Mapping[str, str]:
        """Where one of the two hides what comes later, both together do."""
        hides = not {"causality"} <= self.a.breaks.keys() & self.b.breaks.keys()
        return {name: why for name, why in super().breaks.items() if not (hides and name == "causality")}

    def tiles(self, tiling: Tiling) -> Tensor:
        return torch.minimum(self.a.tiles(tiling), self.b.tiles(tiling))

    def __repr__(self) -> str:
        return f"{self.a!r} & {self.b!r}"


@dataclass(frozen=True, eq=False, repr=False)
class either(TwoMasks):
    """a | b."""

    def dense(self, grid: Grid) -> Tensor:
        return self.a.dense(grid) | self.b.dense(grid)

    def back(self) -> int | None:
        a, b = self.a.back(), self.b.back()
        return None if a is None or b is None else max(a, b)

    def tiles(self, tiling: Tiling) -> Tensor:
        return torch.maximum(self.a.tiles(tiling), self.b.tiles(tiling))

    def __repr__(self) -> str:
        return f"({self.a!r} | {self.b!r})"


@dataclass(frozen=True, eq=False, repr=False)
class hidden(Mask):
    """~a: what a hides may be looked at, and the other way round."""

    a: Mask

    def dense(self, grid: Grid) -> Tensor:
        return ~self.a.dense(grid)

    def relative(self) -> bool:
        return self.a.relative()

    @property
    def breaks(self) -> Mapping[str, str]:
        return {"causality": f"the mask {self} shows what comes", **self.a.breaks}

    def tiles(self, tiling: Tiling) -> Tensor:
        return ALL - self.a.tiles(tiling)

    def has_tiles(self) -> bool:
        return self.a.has_tiles()

    def alone(self, b: int) -> Mask:
        a = self.a.alone(b)
        return self if a is self.a else hidden(a)

    def bind(self, **batch: Any) -> Mask:
        return hidden(self.a.bind(**batch))

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        self.a.fits(B, H, T, S, device)

    def __repr__(self) -> str:
        return f"~({self.a!r})" if isinstance(self.a, both) else f"~{self.a!r}"


@dataclass(frozen=True, eq=False, repr=False)
class given(Mask):
    """A bool tensor that broadcasts to (B,H,T,S); its rows are those of q, whatever their positions."""

    tensor: Tensor

    def __post_init__(self) -> None:
        if self.tensor.dtype != torch.bool:
            raise SaccadeError(
                f"a mask is bool, True where a query may look; got {dtype(self.tensor)}: write mask.bool(), "
                f"or ~mask.bool() if yours marks what is hidden"
            )
        if self.tensor.dim() > 4:
            raise SaccadeError(f"a mask broadcasts to (B,H,T,S); got {self.tensor.dim()} axes")

    def dense(self, grid: Grid) -> Tensor:
        mask = self.tensor.view((1,) * (4 - self.tensor.dim()) + self.tensor.shape)
        return grid.asked(grid.held(mask, 3), 2)

    def tiles(self, tiling: Tiling) -> Tensor:
        """Counted in the tensor itself, a tile of queries at a time.

        Over all examples and heads: somebody may look where any of them may, everybody where all of them may.
        """
        mask = self.tensor.view((1,) * (4 - self.tensor.dim()) + self.tensor.shape).flatten(0, 1)
        rows = (torch.stack((tiling.top, tiling.bottom)) - tiling.grid.start).flatten(1).T.tolist()
        zero = torch.zeros(1, dtype=torch.long, device="cpu")
        # An axis of 1 broadcasts: it is the same for all queries, or for all keys.
        rows = rows if mask.shape[1] > 1 else [(0, 0)]
        columns = (tiling.left[0], tiling.right[0]) if mask.shape[2] > 1 else (zero, zero)
        found = []
        for top, bottom in rows:
            part = mask[:, top : bottom + 1].cpu()
            edge = zero, zero + part.shape[1] - 1
            some, all_ = (count(each, edge, columns) for each in (part.any(0), part.all(0)))
            found.append(torch.where(all_ == ALL, ALL, torch.where(some == NOBODY, NOBODY, SOME)).to(torch.int8))
        return torch.cat(found)

    def alone(self, b: int) -> Mask:
        shared = self.tensor.dim() < 4 or self.tensor.shape[0] == 1
        return self if shared else given(self.tensor[b : b + 1])

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        shape = (1,) * (4 - self.tensor.dim()) + tuple(self.tensor.shape)
        if any(size not in (1, full) for size, full in zip(shape, (B, H, T, S), strict=True)):
            raise SaccadeError(
                f"the mask has shape {tuple(self.tensor.shape)}, which does not broadcast to (B,H,T,S) = {(B, H, T, S)}"
            )
        if self.tensor.device != device:
            raise SaccadeError(f"the mask is on {self.tensor.device} and q on {device}: move one of them")


@dataclass(frozen=True, eq=False, repr=False)
class _everyone(Mask):
    """Every query may look at every key."""

    def dense(self, grid: Grid) -> Tensor:
        return torch.ones(1, 1, 1, 1, dtype=torch.bool, device=grid.device)

    def terms(self) -> tuple[Mask, ...]:
        return ()

    def tiles(self, tiling: Tiling) -> Tensor:
        return torch.full((1, 1), ALL, dtype=torch.int8, device="cpu")

    def relative(self) -> bool:
        return True

    @property
    def breaks(self) -> Mapping[str, str]:
        return {"causality": "everyone sees what comes"}

    def __reduce__(self) -> str:
        return "everyone"  # a copy is the same object

    def __repr__(self) -> str:
        return "everyone"


everyone = _everyone()


def _operand(other: Mask | Tensor | None) -> Mask:
    if isinstance(other, Tensor):
        return given(other)
    if other is None:
        return everyone
    if not isinstance(other, Mask):
        raise SaccadeError(f"mask is a Mask, a bool tensor or None, not {type(other).__name__}")
    return other


def _written(value: object) -> str:
    """A field of a mask as a spec has it; a large tensor by its shape."""
    if not isinstance(value, Tensor):
        return repr(value)
    return repr(value.tolist()) if value.numel() <= 64 else f"<{tuple(value.shape)}>"
