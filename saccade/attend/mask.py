"""Who may look at whom: `True = may look`, everywhere.

A mask is a small predicate over absolute positions i (of the query) and j (of the key). Masks compose with `& | ~`,
cost nothing until a kernel needs them densely, and read back as the spec string that makes them.

Vaswani et al. 2017 (causal), Child et al. 2019 and Beltagy et al. 2020 (window), Raffel et al. 2020 (prefix),
Yang et al. 2019 (order), Zaheer et al. 2020 (bigbird).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from saccade import spec
from saccade.attend.grid import Grid, first
from saccade.attend.numbers import Integers, bound, count, dtype, entries, integers, lookup, square
from saccade.error import SaccadeError


class Mask:
    """Who may look at whom. Subclasses say it in `dense`; calling a mask draws it: `causal(4)`, `window(2)(3, 5)`."""

    def dense(self, grid: Grid) -> Tensor:
        """The mask as a bool tensor that broadcasts to (B,H,T,S)."""
        raise NotImplementedError

    def terms(self) -> tuple[Mask, ...]:
        """The masks whose conjunction this is."""
        return (self,)

    def relative(self) -> bool:
        """Whether it says the same when queries and keys move together; others change under padding on the left."""
        return False

    def bind(self, *, lengths: Integers | None = None, ids: Integers | None = None, side: str | None = None) -> Mask:
        """The same mask with a bare `padding` or `document` filled in from the batch."""
        return self

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
        return both(self, as_mask(other))

    def __or__(self, other: Mask | Tensor) -> Mask:
        return either(self, as_mask(other))

    def __rand__(self, other: Mask | Tensor) -> Mask:
        return both(as_mask(other), self)

    def __ror__(self, other: Mask | Tensor) -> Mask:
        return either(as_mask(other), self)

    def __invert__(self) -> Mask:
        return hidden(self)

    def __repr__(self) -> str:
        values = [getattr(self, each.name) for each in fields(self)]  # type: ignore[arg-type]
        shown = [_shown(value) if isinstance(value, Tensor) else repr(value) for value in values]
        return f"{type(self).__name__}({', '.join(shown)})" if values else type(self).__name__


@dataclass(frozen=True, eq=False, repr=False)
class both(Mask):
    """a & b."""

    a: Mask
    b: Mask

    def dense(self, grid: Grid) -> Tensor:
        return self.a.dense(grid) & self.b.dense(grid)

    def terms(self) -> tuple[Mask, ...]:
        return self.a.terms() + self.b.terms()

    def relative(self) -> bool:
        return self.a.relative() and self.b.relative()

    def bind(self, **batch: Any) -> Mask:
        return both(self.a.bind(**batch), self.b.bind(**batch))

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        self.a.fits(B, H, T, S, device)
        self.b.fits(B, H, T, S, device)

    def __repr__(self) -> str:
        return f"{self.a!r} & {self.b!r}"


@dataclass(frozen=True, eq=False, repr=False)
class either(Mask):
    """a | b."""

    a: Mask
    b: Mask

    def dense(self, grid: Grid) -> Tensor:
        return self.a.dense(grid) | self.b.dense(grid)

    def relative(self) -> bool:
        return self.a.relative() and self.b.relative()

    def bind(self, **batch: Any) -> Mask:
        return either(self.a.bind(**batch), self.b.bind(**batch))

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        self.a.fits(B, H, T, S, device)
        self.b.fits(B, H, T, S, device)

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
        if grid.rows is None or mask.shape[2] == 1:
            return mask
        rows = grid.rows
        return mask[:, :, rows.start : rows.stop : rows.step] if isinstance(rows, range) else mask[:, :, rows]

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

    def relative(self) -> bool:
        return True

    def __reduce__(self) -> str:
        return "everyone"  # a copy is the same object

    def __repr__(self) -> str:
        return "everyone"


everyone = _everyone()


@dataclass(frozen=True, eq=False, repr=False)
class _causal(Mask):
    """j <= i: nobody looks into the future."""

    def dense(self, grid: Grid) -> Tensor:
        return grid.j <= grid.i

    def relative(self) -> bool:
        return True

    def __reduce__(self) -> str:
        return "causal"

    def __repr__(self) -> str:
        return "causal"


causal = _causal()


@dataclass(frozen=True, eq=False, repr=False)
class window(Mask):
    """|i - j| < n: neighbours only, oneself included."""

    n: int

    def __post_init__(self) -> None:
        count("window", "n", self.n, least=1)

    def dense(self, grid: Grid) -> Tensor:
        return (grid.i - grid.j).abs() < self.n

    def relative(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, repr=False)
class prefix(Mask):
    """j < n: everyone may look at the first n. `causal | prefix(n)` is the prefix language model. n: one, or (B,)."""

    n: int | Integers

    def __post_init__(self) -> None:
        if isinstance(self.n, int):
            count("prefix", "n", self.n, least=0)
        else:
            object.__setattr__(self, "n", integers("prefix", "n", self.n, axes=(1,)))

    def dense(self, grid: Grid) -> Tensor:
        if isinstance(self.n, int):
            return grid.j < self.n
        return grid.j < torch.as_tensor(self.n, device=grid.device).view(-1, 1, 1, 1)

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        entries("prefix", self.n, B)


@dataclass(frozen=True, eq=False, repr=False)
class padding(Mask):
    """The last S - lengths keys of each example are padding (the first ones with side="left") and stay hidden.

    It hides keys only: a padded query still looks, and its output is for the caller to ignore. A bare `padding` in a
    spec takes its lengths from the batch.
    """

    lengths: Integers | None = None  # (B,)
    side: str = "right"

    def __post_init__(self) -> None:
        if self.side not in ("right", "left"):
            raise SaccadeError(f"padding: side is 'right' or 'left', not {self.side!r}")
        if self.lengths is not None:
            object.__setattr__(self, "lengths", integers("padding", "lengths", self.lengths, axes=(1,)))

    def dense(self, grid: Grid) -> Tensor:
        lengths = bound("padding", "lengths", self.lengths).to(grid.device).view(-1, 1, 1, 1)
        return grid.j < lengths if self.side == "right" else grid.j >= grid.S - lengths

    def bind(self, *, lengths: Integers | None = None, ids: Integers | None = None, side: str | None = None) -> Mask:
        return padding(lengths, side or self.side) if self.lengths is None and lengths is not None else self

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        entries("padding", self.lengths, B)


@dataclass(frozen=True, eq=False, repr=False)
class document(Mask):
    """ids[i] == ids[j]: several documents packed into one sequence do not see each other. ids: (L,) or (B,L)."""

    ids: Integers | None = None

    def __post_init__(self) -> None:
        if self.ids is not None:
            object.__setattr__(self, "ids", integers("document", "ids", self.ids, axes=(1, 2)))

    def dense(self, grid: Grid) -> Tensor:
        ids = bound("document", "ids", self.ids)
        return lookup(ids, grid.i, grid, "document") == lookup(ids, grid.j, grid, "document")

    def bind(self, *, lengths: Integers | None = None, ids: Integers | None = None, side: str | None = None) -> Mask:
        return document(ids) if self.ids is None and ids is not None else self

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        if isinstance(self.ids, Tensor) and self.ids.dim() == 2:
            entries("document", self.ids, B)


@dataclass(frozen=True, eq=False, repr=False)
class order(Mask):
    """Positions are visited in the order of the permutation; each may look at earlier ones and itself.

    `order([2, 0, 1])`: position 2 comes first and sees itself alone, 0 sees 2 and 0, 1 sees all. With strict=True only
    earlier ones (the query stream of XLNet). (L,) or (B,L).
    """

    permutation: Integers
    strict: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.strict, bool):
            raise SaccadeError(f"order: strict is True or False; got {self.strict!r}")
        p = integers("order", "permutation", self.permutation, axes=(1, 2))
        if not torch.equal(p.sort(-1).values, torch.arange(p.shape[-1], device=p.device).expand_as(p)):
            raise SaccadeError(f"order: a permutation names each of 0 ... {p.shape[-1] - 1} once")
        object.__setattr__(self, "permutation", p)

    def dense(self, grid: Grid) -> Tensor:
        assert isinstance(self.permutation, Tensor)
        rank = self.permutation.argsort(-1)
        query, key = lookup(rank, grid.i, grid, "order"), lookup(rank, grid.j, grid, "order")
        return key < query if self.strict else key <= query

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        if isinstance(self.permutation, Tensor) and self.permutation.dim() == 2:
            entries("order", self.permutation, B)


@dataclass(frozen=True, eq=False, repr=False)
class blocks(Mask):
    """Positions in blocks of `size`; a block sees itself, `before` blocks before it and `after` blocks after it.

    With `layout`, a square table of 0 and 1, block a sees block b where layout[a][b] is 1.
    """

    size: int
    before: int = 0
    after: int = 0
    layout: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        count("blocks", "size", self.size, least=1)
        count("blocks", "before", self.before, least=0)
        count("blocks", "after", self.after, least=0)
        if self.layout is not None:
            if self.before or self.after:
                raise SaccadeError("blocks: a layout says all; before and after do not go with it")
            object.__setattr__(self, "layout", square(self.layout))

    def dense(self, grid: Grid) -> Tensor:
        a, b = grid.i // self.size, grid.j // self.size
        if self.layout is None:
            return (b >= a - self.before) & (b <= a + self.after)
        table = torch.tensor(self.layout, device=grid.device)
        if grid.end() > table.shape[0] * self.size:
            raise SaccadeError(
                f"blocks: the layout covers {table.shape[0] * self.size} positions; this call has {grid.end()}"
            )
        return table[a, b]


@dataclass(frozen=True, eq=False, repr=False)
class bigbird(Mask):
    """Window + global + random blocks (Zaheer et al. 2020).

    A block of `block` positions sees the `window` blocks around it (an odd number), the first `globals` blocks see all
    and are seen by all, and each block is linked with `random` blocks drawn among those before its window. Differs from
    the paper: links are symmetric and depend on (seed, position) alone, not on the sequence's length, so that
    `causal & bigbird(...)` decodes with a cache as it trained.
    """

    block: int = 64
    window: int = 3
    globals: int = 1
    random: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("block", 1), ("window", 1), ("globals", 0), ("random", 0), ("seed", 0)):
            count("bigbird", name, getattr(self, name), least=least)
        if self.window % 2 == 0:
            raise SaccadeError(
                f"bigbird: window counts the block itself and as many on each side; {self.window} is even"
            )

    def dense(self, grid: Grid) -> Tensor:
        return self.links(-(-grid.end() // self.block)).to(grid.device)[grid.i // self.block, grid.j // self.block]

    def links(self, n: int) -> Tensor:
        """Which of n blocks see each other, (n,n)."""
        a, b = torch.arange(n).view(-1, 1), torch.arange(n).view(1, -1)
        near = (a - b).abs() <= self.window // 2
        drawn = torch.zeros(n, n, dtype=torch.bool)
        far = (b >= self.globals) & (b < a - self.window // 2)
        if n and self.random:
            lots = _hash(self.seed, a, b).masked_fill(~far, torch.iinfo(torch.int64).max)
            drawn.scatter_(1, lots.argsort(1)[:, : self.random], True)
            drawn &= far
        return near | drawn | drawn.T | (a < self.globals) | (b < self.globals)


def as_mask(mask: Mask | Tensor | str | None, what: str = "mask") -> Mask:
    """A Mask from a Mask, a bool tensor or a spec string. None is everyone."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return given(mask)
    if isinstance(mask, str):
        return spec.recall(mask, MASKS, "mask")
    if mask is None:
        return everyone
    raise SaccadeError(f"{what} is a Mask, a spec string or a bool tensor, not {type(mask).__name__}")


def _hash(seed: int, a: Tensor, b: Tensor) -> Tensor:
    """Well-mixed positive integers, the same on every machine (the finaliser of MurmurHash3, in 32 bits)."""
    x = (a * 0x9E3779B1 + b * 0x85EBCA77 + seed * 0xC2B2AE3D) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return (x ^ (x >> 16)) * 0x10000 + (b & 0xFFFF)  # the block's number settles equal hashes


def _shown(x: Tensor) -> str:
    return repr(x.tolist()) if x.numel() <= 64 else f"<{tuple(x.shape)}>"


MASKS: dict[str, Any] = {
    "everyone": lambda: everyone,
    "causal": lambda: causal,
    "window": window,
    "prefix": prefix,
    "padding": padding,
    "document": document,
    "order": order,
    "blocks": blocks,
    "bigbird": bigbird,
}
