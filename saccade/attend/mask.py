"""The masks of positions, lengths, ids and orders, and every mask by its name; those of blocks are in `sparse`.

Vaswani et al. 2017 (causal), Child et al. 2019 and Beltagy et al. 2020 (window), Raffel et al. 2020 (prefix),
Yang et al. 2019 (order).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from saccade import spec
from saccade.attend.algebra import Mask, everyone, given
from saccade.attend.grid import Grid
from saccade.attend.neighbours import neighbours
from saccade.attend.numbers import Integers, bound, count, covers, entries, integers, lookup
from saccade.attend.sparse import bigbird, blocks, dilated, windows
from saccade.attend.tile import Tiling, judge, within
from saccade.error import SaccadeError


@dataclass(frozen=True, eq=False, repr=False)
class _causal(Mask):
    """j <= i: nobody looks into the future."""

    def dense(self, grid: Grid) -> Tensor:
        return grid.j <= grid.i

    def relative(self) -> bool:
        return True

    @property
    def breaks(self) -> Mapping[str, str]:
        return {"permutation": "the mask causal goes by positions"}

    def tiles(self, tiling: Tiling) -> Tensor:
        return judge(tiling.left > tiling.bottom, tiling.right <= tiling.top)

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

    def back(self) -> int | None:
        return self.n

    def tiles(self, tiling: Tiling) -> Tensor:
        low, high = tiling.low, tiling.high
        return judge((low >= self.n) | (high <= -self.n), (low > -self.n) & (high < self.n))


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

    def tiles(self, tiling: Tiling) -> Tensor:
        n = torch.as_tensor(self.n).cpu()
        return judge(tiling.left >= n.max(), tiling.right < n.min())

    def alone(self, b: int) -> Mask:
        return self if isinstance(self.n, int) or len(self.n) == 1 else prefix(self.n[b : b + 1])

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
        return grid.j < lengths if self.side == "right" else grid.j >= grid.keys - lengths

    def tiles(self, tiling: Tiling) -> Tensor:
        lengths = bound("padding", "lengths", self.lengths).cpu()
        if self.side == "right":
            return judge(tiling.left >= lengths.max(), tiling.right < lengths.min())
        first = tiling.grid.keys - lengths
        return judge(tiling.right < first.min(), tiling.left >= first.max())

    def held(self, S: int, device: torch.device) -> Tensor:
        """How many of S keys are no padding, (B,) or (1,) for all alike."""
        return bound("padding", "lengths", self.lengths).to(device).clamp(0, S)

    def alone(self, b: int) -> Mask:
        lengths = bound("padding", "lengths", self.lengths)
        return self if len(lengths) == 1 else padding(lengths[b : b + 1], self.side)

    def bind(self, *, lengths: Integers | None = None, side: str | None = None, **_: Any) -> Mask:
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

    def tiles(self, tiling: Tiling) -> Tensor:
        (low, high), (least, most) = _edges(bound("document", "ids", self.ids), tiling, "document")
        alike = (low == high) & (least == most) & (low == least)
        return judge(((low > most) | (high < least)).all(0), alike.all(0))

    def alone(self, b: int) -> Mask:
        ids = bound("document", "ids", self.ids)
        return self if ids.dim() == 1 or len(ids) == 1 else document(ids[b])

    def bind(self, *, ids: Integers | None = None, **_: Any) -> Mask:
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
    rank: ClassVar[Tensor]  # made from the permutation; a ClassVar is no argument of the dataclass

    def __post_init__(self) -> None:
        if not isinstance(self.strict, bool):
            raise SaccadeError(f"order: strict is True or False; got {self.strict!r}")
        p = integers("order", "permutation", self.permutation, axes=(1, 2))
        if not torch.equal(p.sort(-1).values, torch.arange(p.shape[-1], device=p.device).expand_as(p)):
            raise SaccadeError(f"order: a permutation names each of 0 ... {p.shape[-1] - 1} once")
        object.__setattr__(self, "permutation", p)
        object.__setattr__(self, "rank", p.argsort(-1))  # when each position is visited

    def dense(self, grid: Grid) -> Tensor:
        query, key = lookup(self.rank, grid.i, grid, "order"), lookup(self.rank, grid.j, grid, "order")
        return key < query if self.strict else key <= query

    def tiles(self, tiling: Tiling) -> Tensor:
        (low, high), (least, most) = _edges(self.rank, tiling, "order")
        if self.strict:
            return judge((least >= high).all(0), (most < low).all(0))
        return judge((least > high).all(0), (most <= low).all(0))

    def alone(self, b: int) -> Mask:
        shared = self.rank.dim() == 1 or len(self.rank) == 1
        return self if shared else order(bound("order", "permutation", self.permutation)[b], self.strict)

    def fits(self, B: int, H: int, T: int, S: int, device: torch.device) -> None:
        if isinstance(self.permutation, Tensor) and self.permutation.dim() == 2:
            entries("order", self.permutation, B)


class Conjunction(NamedTuple):
    """The terms of a mask, once each, sorted by what the fast kernels can do with them."""

    causal: bool
    paddings: tuple[padding, ...]
    others: tuple[Mask, ...]

    @property
    def empty(self) -> bool:
        """Whether it hides nothing."""
        return not self.causal and self._besides == 0

    @property
    def only_causal(self) -> bool:
        """Whether it is `causal` and nothing else."""
        return self.causal and self._besides == 0

    @property
    def _besides(self) -> int:
        return len(self.paddings) + len(self.others)  # a number: torch.compile cannot ask a tuple whether it is empty


NOTHING, CAUSAL = Conjunction(False, (), ()), Conjunction(True, (), ())


def conjunction(mask: Mask | None) -> Conjunction:
    """A mask as a conjunction of `causal`, `padding` and others."""
    if mask is None or mask is causal:  # most calls by far: answered at once
        return CAUSAL if mask is causal else NOTHING
    terms = tuple(dict.fromkeys(mask.terms()))
    paddings = tuple(term for term in terms if isinstance(term, padding))
    others = tuple(term for term in terms if term is not causal and not isinstance(term, padding))
    return Conjunction(causal in terms, paddings, others)


def together(a: Mask | None, b: Mask | None) -> Mask | None:
    """What both allow; None allows everything."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


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


def _edges(table: Tensor, tiling: Tiling, mask: str) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The smallest and largest entries of a table (L,) or (B,L) in the tiles of queries (B,n,1) and of keys (B,1,m)."""
    covers(table, tiling.grid, mask)
    low, high = within(torch.atleast_2d(table), tiling.top[:, 0], tiling.bottom[:, 0])
    least, most = within(torch.atleast_2d(table), tiling.left[0], tiling.right[0])
    return (low.unsqueeze(2), high.unsqueeze(2)), (least.unsqueeze(1), most.unsqueeze(1))


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
    "dilated": dilated,
    "windows": windows,
    "neighbours": neighbours,
}
