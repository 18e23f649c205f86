"""Positions: how attention knows where things are. There are four places to act (`doors`); each position uses some.

on_input   x (B,T,C) at its places               -> x with positions, added or concatenated (embeddings use it)
on_heads   q or k (B,H,T,D) at its places        -> turned
on_scores  q (B,H,T,D), k (B,H,S,D), the grid    -> what is added to the scores, broadcasts to (B,H,T,S)
on_values  weights (B,H,T,S), the grid           -> what is added to the output, (B,H,T,D)

Vaswani et al. 2017 (sinusoid), Gehring et al. 2017 (learned), Shaw et al. 2018 (relative), Dai et al. 2019 (xl),
Press et al. 2022 (alibi), Raffel et al. 2020 (t5), Su et al. 2021 (rotary), Liu et al. 2021 (offsets).

Places are whole numbers or any others on one axis (B,T), or on two (B,T,2), as the patches of a picture stand: then
half of the waves (or of the pairs that turn) encode the first, and half the second. What stands nowhere (a class token)
is at -1. What is added to scores counts distances along one axis and takes no places; `offsets` alone takes two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import spec
from saccade.attend.frequency import SCALINGS, as_scaling, frequencies
from saccade.attend.grid import Grid
from saccade.attend.initial import normal
from saccade.attend.numbers import count, is_number
from saccade.error import SaccadeError


class Position(nn.Module):
    """Where things are. `doors` names the methods a position has; the others are never called."""

    doors: ClassVar[frozenset[str]] = frozenset()
    fixed: ClassVar[bool] = False  # whether what it adds to scores has no weights and is the same for all examples
    placed: ClassVar[bool] = False  # whether what it adds to scores goes by places on two axes

    @property
    def breaks(self) -> Mapping[str, str]:
        """The symmetries that it does not keep, by name, and why (see `saccade.model.symmetry`)."""
        found = {"permutation": f"the position {type(self).__name__} tells places apart"}
        counts = f"the position {type(self).__name__} counts places from the beginning"
        return {**found, "shift": counts} if "input" in self.doors else found

    def on_input(self, x: Tensor, start: int | Tensor = 0, grid: tuple[int, int] | None = None) -> Tensor:
        """`start`: the position of x[:, 0], an int or (B,); or all places, (B or 1,T), on two axes (B or 1,T,2).
        `grid`: the rows and columns of the picture that these places are on, for tables that were made for another.
        """
        raise NotImplementedError

    def on_heads(self, x: Tensor, positions: Tensor) -> Tensor:
        raise NotImplementedError

    def on_scores(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor:
        raise NotImplementedError

    def on_values(self, weights: Tensor, grid: Grid) -> Tensor:
        raise NotImplementedError


class Layout(NamedTuple):
    """Where the two numbers of each pair stand among `width` of them."""

    split: Callable[[Tensor], tuple[Tensor, Tensor]]  # (..., width) -> the first of each pair, and the second
    merge: Callable[[Tensor, Tensor], Tensor]  # and back


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, -1)
    return a, b


def _neighbours(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[..., 0::2], x[..., 1::2]


def _one_behind_the_other(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat((a, b), -1)


def _in_turn(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack((a, b), -1).flatten(-2)


LAYOUTS = {"half": Layout(_halves, _one_behind_the_other), "interleaved": Layout(_neighbours, _in_turn)}


def waves(positions: Tensor, width: int, base: float, dtype: torch.dtype, layout: str = "interleaved") -> Tensor:
    """sin(w_k t) and cos(w_k t), w_k = base^(-2k / width): (..., width) for positions (...).

    "interleaved" puts sin at 2k and cos at 2k + 1, "half" all sines before all cosines.
    """
    angles = positions.to(torch.float64).unsqueeze(-1) * frequencies(width, base, positions.device)
    return LAYOUTS[layout].merge(angles.sin(), angles.cos())[..., :width].to(dtype)


class sinusoid(Position):
    """Waves of growing length, added to the input or concatenated (`sinusoid(concatenate, width=16)`).

    layout "interleaved" is the paper's (sine, cosine, sine, ...), "half" has all sines first (Marian, tensor2tensor).
    """

    doors = frozenset({"input"})

    def __init__(
        self, combine: str = "add", width: int | None = None, base: float = 10000.0, layout: str = "interleaved"
    ) -> None:
        super().__init__()
        self.layout = _checked_layout("sinusoid", layout)
        if width is not None:
            count("sinusoid", "width", width)
        self.combine, self.width, self.base = (
            _checked_combine("sinusoid", combine),
            width,
            _checked_base("sinusoid", base),
        )

    def on_input(self, x: Tensor, start: int | Tensor = 0, grid: tuple[int, int] | None = None) -> Tensor:
        width = x.shape[-1] if self.width is None else self.width
        axes = _axes(_places(x, start), width)
        parts = [waves(places, share, self.base, x.dtype, self.layout) for places, share in axes]
        return COMBINE[self.combine]("sinusoid", x, parts[0] if len(parts) == 1 else torch.cat(parts, -1))


class learned(Position):
    """A table of `length` learned vectors, added to the input or concatenated.

    `learned((7, 9))`: a vector for each place of a grid, row after row; without places it is read from its beginning.
    For a picture with another grid, the table is interpolated (bicubic), as ViT is fine-tuned at another resolution.
    `before`: rows in front of the table, for vectors that stand nowhere (class tokens). `antialias`: a table for a
    smaller grid is smoothed first (DINOv2 with registers; ViT, DeiT and DINOv2 do not).
    """

    doors = frozenset({"input"})

    def __init__(
        self,
        length: int | tuple[int, ...],
        combine: str = "add",
        width: int | None = None,
        before: int = 0,
        antialias: bool = False,
        *,
        input_width: int | None = None,
    ) -> None:
        super().__init__()
        self.antialias = bool(antialias)
        self.combine, self.before = _checked_combine("learned", combine), count("learned", "before", before, least=0)
        self.sides = length if isinstance(length, tuple) else (length,)
        if len(self.sides) > 2:
            raise SaccadeError(f"learned: a table has one axis or two; got {length!r}")
        width = count("learned", "width", input_width if width is None else width)
        self.weight = normal(before + math.prod(count("learned", "length", side) for side in self.sides), width)

    def on_input(self, x: Tensor, start: int | Tensor = 0, grid: tuple[int, int] | None = None) -> Tensor:
        positions, table = _places(x, start), self.weight[self.before :]
        if grid is not None and len(self.sides) == 2 and grid != self.sides:
            table = interpolated(table, self.sides, grid, self.antialias)
        if positions.dim() == 3:
            positions = self._table_rows(positions, self.sides if grid is None else grid)
        else:
            _check_inside("learned", positions, start, table.shape[0])
        return COMBINE[self.combine]("learned", x, table[positions].to(x.dtype))

    def on_extras(self, x: Tensor) -> Tensor:
        """x (n,C), vectors that stand nowhere, with the first rows of the table on as many of them as there are."""
        if not self.before:
            return x
        return torch.cat((x[: self.before] + self.weight[: self.before].to(x.dtype), x[self.before :]))

    def _table_rows(self, places: Tensor, sides: tuple[int, ...]) -> Tensor:
        """The rows of the table (B or 1,T) for places on two axes."""
        if len(self.sides) < 2:
            raise SaccadeError(
                f"learned({self.sides[0]}) is a table of one axis, and the places have two: write its sides, as in "
                "learned((7, 7))"
            )
        for axis, side in enumerate(sides):
            _check_inside("learned", places[..., axis], places, side)
        return places[..., 0] * sides[1] + places[..., 1]


def interpolated(table: Tensor, sides: tuple[int, ...], grid: tuple[int, int], antialias: bool = False) -> Tensor:
    """Tables (...,rows * columns,C) of a grid with these sides as they would be for another grid; half precision is
    resized in float32.
    """
    squares = table.reshape(-1, *sides, table.shape[-1]).permute(0, 3, 1, 2)
    squares = squares if squares.dtype == torch.float64 else squares.float()
    resized = F.interpolate(squares, size=grid, mode="bicubic", align_corners=False, antialias=antialias)
    return resized.flatten(2).mT.reshape(*table.shape[:-2], -1, table.shape[-1]).to(table.dtype)


class relative(Position):
    """Learned vectors of the clipped distance j - i, on the scores (q.a / sqrt(D)) and on the values (Shaw).

    Shared by all heads, as in the paper. Scores use a^K, values a^V, each (2 distance + 1, D); `value_width` where the
    values are wider or narrower than the keys.
    """

    doors = frozenset({"scores", "values"})

    def __init__(self, distance: int, *, head_width: int, value_width: int | None = None) -> None:
        super().__init__()
        self.distance = count("relative", "distance", distance)
        value_width = head_width if value_width is None else count("relative", "value_width", value_width)
        self.key = nn.Parameter(torch.empty(2 * distance + 1, head_width))
        self.value = nn.Parameter(torch.empty(2 * distance + 1, value_width))
        nn.init.xavier_uniform_(self.key)
        nn.init.xavier_uniform_(self.value)

    def buckets(self, grid: Grid) -> Tensor:
        return (grid.j - grid.i).clamp(-self.distance, self.distance) + self.distance  # (B or 1,1,T,S)

    def on_scores(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor:
        _check_width("relative", self.key.shape[1], q)
        by_bucket = q @ self.key.to(q.dtype).T / math.sqrt(q.shape[-1])  # (B,H,T,buckets)
        return by_bucket.gather(-1, self.buckets(grid).expand(*q.shape[:3], grid.S))

    def on_values(self, weights: Tensor, grid: Grid) -> Tensor:
        by_bucket = weights.new_zeros(*weights.shape[:3], self.value.shape[0])
        by_bucket = by_bucket.scatter_add(-1, self.buckets(grid).expand_as(weights), weights)
        return by_bucket @ self.value.to(weights.dtype)


class xl(Position):
    """Transformer-XL: (q + u).k + (q + v).W r(i - j), all over sqrt(D), with r the sinusoid of the distance.

    The score itself contributes q.k; this adds u.k and (q + v).W r. `content` is u, `place` is v. With segments=True
    also (q + w).s, s one of two learned vectors: whether query and key are of one segment (Yang et al. 2019); a call
    without segments leaves that out.
    """

    doors = frozenset({"scores"})

    def __init__(
        self,
        segments: bool = False,
        layout: str = "interleaved",
        *,
        head_width: int,
        heads: int,
        input_width: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(segments, bool):
            raise SaccadeError(f"xl: segments is True or False; got {segments!r}")
        self.layout = _checked_layout("xl", layout)
        self.input_width = head_width * heads if input_width is None else input_width
        self.content = nn.Parameter(torch.zeros(heads, head_width))
        self.place = nn.Parameter(torch.zeros(heads, head_width))
        self.distance = nn.Linear(self.input_width, heads * head_width, bias=False)
        self.segment_bias = nn.Parameter(torch.zeros(heads, head_width)) if segments else None
        self.segments = normal(2, heads, head_width) if segments else None

    def on_scores(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor:
        heads, width = self.content.shape
        if q.shape[1] != heads:
            raise SaccadeError(f"xl: built for {heads} heads; q has {q.shape[1]}")
        _check_width("xl", width, q)
        first, last = grid.reach()
        span = torch.arange(first, last + 1, device=q.device)
        r = waves(span, self.input_width, 10000.0, self.distance.weight.dtype, self.layout)
        r = self.distance(r).view(-1, heads, width).transpose(0, 1).to(q.dtype)  # (H, span, D)
        by_distance = (q + self.place.to(q.dtype).unsqueeze(1)) @ r.mT  # (B,H,T,span)
        placed = by_distance.gather(-1, (grid.i - grid.j - first).expand(*q.shape[:3], grid.S))
        bias = self.content.to(q.dtype).unsqueeze(1) @ k.mT + placed
        across = grid.across()
        if self.segments is not None and self.segment_bias is not None and across is not None:
            both = (q + self.segment_bias.to(q.dtype).unsqueeze(1)) @ self.segments.to(q.dtype).permute(1, 2, 0)
            bias = bias + torch.where(across, both[..., 1:], both[..., :1])  # both (B,H,T,2): one segment, or two
        return bias / math.sqrt(width)


class alibi(Position):
    """-m_h |i - j|: a fixed slope a head, 2^(-8h / H) for H a power of two, the paper's rule otherwise."""

    doors = frozenset({"scores"})
    fixed = True

    def __init__(self) -> None:
        super().__init__()

    def on_scores(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor:
        slopes = torch.tensor(_slopes(q.shape[1]), device=q.device, dtype=q.dtype).view(1, -1, 1, 1)
        return -slopes * (grid.i - grid.j).abs().to(q.dtype)


class t5(Position):
    """A learned number a head and bucket of the distance: exact when near, logarithmic when far.

    `bidirectional=False` (T5's decoder) puts the whole future into bucket 0.
    """

    doors = frozenset({"scores"})

    def __init__(self, buckets: int = 32, distance: int = 128, bidirectional: bool = True, *, heads: int) -> None:
        super().__init__()
        self.buckets, self.distance = count("t5", "buckets", buckets), count("t5", "distance", distance)
        if buckets < 4 or buckets % 2 or distance <= buckets:
            raise SaccadeError(f"t5: buckets is even and at least 4, distance larger; got {buckets} and {distance}")
        if not isinstance(bidirectional, bool):
            raise SaccadeError(f"t5: bidirectional is True or False; got {bidirectional!r}")
        self.bidirectional = bidirectional
        self.weight = normal(buckets, heads)

    def bucket(self, away: Tensor) -> Tensor:
        """The bucket of j - i."""
        if not self.bidirectional:
            return self._by_distance((-away).clamp(min=0), self.buckets)
        count = self.buckets // 2
        return (away > 0).long() * count + self._by_distance(away.abs(), count)

    def _by_distance(self, distance: Tensor, count: int) -> Tensor:
        """Which of `count` buckets: one for each small distance, and wider and wider ones up to the largest."""
        exact = count // 2
        ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.distance / exact)
        far = (exact + (ratio * (count - exact)).long()).clamp(max=count - 1)
        return torch.where(distance < exact, distance, far)

    def on_scores(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor:
        if q.shape[1] != self.weight.shape[1]:
            raise SaccadeError(f"t5: built for {self.weight.shape[1]} heads; q has {q.shape[1]}")
        table = self.weight.to(q.dtype)[self.bucket(grid.j - grid.i).squeeze(1)]  # (B or 1,T,S,H)
        return table.permute(0, 3, 1, 2)


class offsets(Position):
    """A learned number a head and offset (rows, columns) between two places of a picture (Swin's relative bias).

    `offsets((7, 7))`: places are up to 6 rows and 6 columns apart; what is farther counts as the farthest, which
    matters only where the mask allows such looks. Nothing is added for what stands nowhere, unless extra=True gives
    such pairs three numbers a head (BEiT): from a class token, to one, and between two of them.
    """

    doors = frozenset({"scores"})
    placed = True

    def __init__(self, sides: tuple[int, ...], extra: bool = False, *, heads: int) -> None:
        super().__init__()
        if not isinstance(sides, tuple) or len(sides) != 2:
            raise SaccadeError(f"offsets: give the rows and columns of a picture, as in offsets((7, 7)); got {sides!r}")
        if not isinstance(extra, bool):
            raise SaccadeError(f"offsets: extra is True or False; got {extra!r}")
        self.sides, self.extra = tuple(count("offsets", "sides", side) for side in sides), extra
        self.weight = normal(math.prod(2 * side - 1 for side in self.sides) + 3 * extra, heads)

    def on_scores(self, q: Tensor, k: Tensor, grid: Grid) -> Tensor:
        if q.shape[1] != self.weight.shape[1]:
            raise SaccadeError(f"offsets: built for {self.weight.shape[1]} heads; q has {q.shape[1]}")
        return self.between(*grid.stand()).to(q.dtype)

    def between(self, here: Tensor, there: Tensor) -> Tensor:
        """What is added to the scores of queries at (n,T,2) and keys at (n,S,2): (n,H,T,S)."""
        tall, wide = self.sides
        away = here.unsqueeze(2) - there.unsqueeze(1)  # (n,T,S,2)
        down = away[..., 0].clamp(1 - tall, tall - 1) + tall - 1
        along = away[..., 1].clamp(1 - wide, wide - 1) + wide - 1
        rows = down * (2 * wide - 1) + along
        nowhere = (here[..., 0] < 0).unsqueeze(2), (there[..., 0] < 0).unsqueeze(1)
        if self.extra:
            last = len(self.weight)
            rows = torch.where(nowhere[0], last - 3, rows)
            rows = torch.where(nowhere[1], torch.where(nowhere[0], last - 1, last - 2), rows)
            return self.weight[rows].permute(0, 3, 1, 2)
        return self.weight[rows].masked_fill((nowhere[0] | nowhere[1]).unsqueeze(-1), 0.0).permute(0, 3, 1, 2)


class rotary(Position):
    """Turns pairs of numbers of q and k by angles that grow with the position, so q.k depends on differences alone.

    layout "half" pairs n with n + D/2 (GPT-NeoX, LLaMA at Hugging Face); "interleaved" pairs 2n with 2n + 1 (RoFormer,
    GPT-J, LLaMA at Meta). `width` turns only the first numbers of a head. For sequences longer than those it was
    trained on, a model turns more slowly: `interpolate=4`, `ntk=4`, `yarn=(4, 2048)` or `llama3=(8, 8192)`, the factor
    and the length before; see `frequency`.
    """

    doors = frozenset({"heads"})

    def __init__(
        self,
        layout: str = "half",
        base: float = 10000.0,
        width: int | None = None,
        *,
        interpolate: float | None = None,
        ntk: float | None = None,
        yarn: tuple[float, ...] | None = None,
        llama3: tuple[float, ...] | None = None,
    ) -> None:
        super().__init__()
        if width is not None:
            count("rotary", "width", width)
        self.layout, self.base, self.width = _checked_layout("rotary", layout), _checked_base("rotary", base), width
        self.scaling = as_scaling({"interpolate": interpolate, "ntk": ntk, "yarn": yarn, "llama3": llama3})
        if yarn is not None and base <= 1:
            raise SaccadeError(f"rotary: yarn needs a base above 1, so that some pairs turn slowly; got {base!r}")

    def on_heads(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (B,H,T,D), positions (B or 1,T), on two axes (B or 1,T,2)."""
        width = x.shape[-1] if self.width is None else self.width
        if width % 2 or width > x.shape[-1]:
            raise SaccadeError(f"rotary turns pairs: an even number up to the head's width {x.shape[-1]}, not {width}")
        angles = self._angles(positions, width)
        sin, cos = (each.to(x.dtype).unsqueeze(1) for each in (angles.sin(), angles.cos()))  # (B or 1,1,T,width/2)
        sin, cos = (sin, cos) if self.gain == 1 else (sin * self.gain, cos * self.gain)
        layout, rest = LAYOUTS[self.layout], x[..., width:]
        a, b = layout.split(x[..., :width])
        turned = layout.merge(a * cos - b * sin, b * cos + a * sin)
        return torch.cat((turned, rest), -1) if rest.shape[-1] else turned

    def _angles(self, positions: Tensor, width: int) -> Tensor:
        """By how much each pair is turned, (B or 1,T,width / 2)."""
        if positions.dim() == 3 and width % 4:
            raise SaccadeError(f"rotary turns half of the pairs for each of two axes: a multiple of 4, not {width}")
        axes = _axes(positions.clamp(min=0) if positions.dim() == 3 else positions, width)  # -1 is not turned
        angles = [
            places.to(torch.float64).unsqueeze(-1) * self.frequencies(share, places.device) for places, share in axes
        ]
        return angles[0] if len(angles) == 1 else torch.cat(angles, -1)

    def frequencies(self, width: int, device: torch.device | None = None) -> Tensor:
        """By how much each pair turns from one position to the next, (width / 2,) in float64."""
        if self.scaling is None:
            return frequencies(width, self.base, device)
        return self.scaling.frequencies(width, self.base, device)

    @property
    def gain(self) -> float:
        """By how much q and k become longer."""
        return 1.0 if self.scaling is None else self.scaling.gain


def as_position(
    position: Position | str | None,
    *,
    head_width: int | None = None,
    heads: int | None = None,
    input_width: int | None = None,
) -> Position | None:
    """A position from itself or a spec string; with the widths and number of heads, also one that has weights."""
    if position is None or isinstance(position, Position):
        return position
    if not isinstance(position, str):
        raise SaccadeError(f"position is a spec string or a Position, not {type(position).__name__}")
    if head_width is None and input_width is None:
        return spec.read(position, REFUSING, "position")
    return spec.read(position, POSITIONS, "position", head_width=head_width, heads=heads, input_width=input_width)


def scaled(position: str | None, scaling: str) -> str:
    """The spec of the same rotary position, slowed: scaled("rotary(half, 500.0)", "ntk(4)")."""
    name, found = ("none", {}) if position is None else spec.arguments(position, POSITIONS, "position")
    if name != "rotary":
        raise SaccadeError(f"a scaling slows rotary positions; the model's position is {position!r}")
    spec.read(scaling, SCALINGS, "scaling")  # refuses wrong numbers now
    kind, numbers = spec.arguments(scaling, SCALINGS, "scaling")
    given = tuple(each for each in numbers.values() if each is not None)
    written = repr(given[0]) if len(given) == 1 else repr(given)
    return f"rotary({found['layout']}, {found['base']!r}, {found['width']!r}, {kind}={written})"


def on_input(position: str | None) -> bool:
    """Whether a spec names a position of the input, which belongs to the embedding."""
    return position is not None and "input" in POSITIONS[spec.arguments(position, POSITIONS, "position")[0]].doors


def _refuse(name: str) -> Callable[..., Position]:
    def refuse(*_: object, **__: object) -> Position:
        raise SaccadeError(
            f"the position {name!r} has weights: pass a module, saccade.attend.position.{name}(...), "
            f"or use saccade.Attention, which builds it"
        )

    return refuse


def _places(x: Tensor, start: int | Tensor) -> Tensor:
    """Positions of x (B,T,C), (T,) or (B or 1,T); places on two axes, (B or 1,T,2)."""
    steps = torch.arange(x.shape[1], device=x.device)
    if not isinstance(start, Tensor):
        return steps + start
    start = start.to(x.device)
    return start if start.dim() > 1 else steps + start.view(-1, 1)


def _axes(places: Tensor, width: int) -> list[tuple[Tensor, int]]:
    """Places on each axis, and how many of `width` numbers encode it: all, or half of them each."""
    if places.dim() < 3:
        return [(places, width)]
    return [(places[..., 0], width - width // 2), (places[..., 1], width // 2)]


def _check_inside(name: str, positions: Tensor, start: int | Tensor, length: int) -> None:
    if isinstance(start, int):
        first, last = start, start + positions.shape[-1]
    elif torch.compiler.is_compiling() or positions.is_meta or not positions.numel():
        return
    else:
        first, last = int(positions.min()), int(positions.max()) + 1
    if first < 0:
        raise SaccadeError(f"{name}: a position cannot be negative; got {first}")
    if last > length:
        raise SaccadeError(
            f"{name}: position {last - 1} lies past the end of a table of {length}; shorten the input by "
            f"{last - length} or build the model with a longer table"
        )


def _add(name: str, x: Tensor, p: Tensor) -> Tensor:
    if p.shape[-1] != x.shape[-1]:
        raise SaccadeError(f"{name}: vectors of width {p.shape[-1]} cannot be added to an input of width {x.shape[-1]}")
    return x + p


def _concatenate(name: str, x: Tensor, p: Tensor) -> Tensor:
    return torch.cat((x, p.expand(*x.shape[:-1], p.shape[-1])), -1)


def _checked_layout(name: str, layout: str) -> str:
    if layout not in LAYOUTS:
        raise SaccadeError(f"{name}: layout is 'half' or 'interleaved', not {layout!r}")
    return layout


def _checked_combine(name: str, combine: str) -> str:
    if combine not in COMBINE:
        raise SaccadeError(f"{name}: positions are combined by 'add' or 'concatenate', not {combine!r}")
    return combine


def _checked_base(name: str, base: float) -> float:
    if not (is_number(base) and 0 < base < 1e300):
        raise SaccadeError(f"{name}: base is a positive number; got {base!r}")
    return base


def _check_width(name: str, width: int, q: Tensor) -> None:
    if q.shape[-1] != width:
        raise SaccadeError(f"{name}: built for heads of width {width}; q has {q.shape[-1]}")


def _slopes(heads: int) -> list[float]:
    power = 2 ** math.floor(math.log2(max(heads, 1)))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    between = [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)]
    return slopes + between


COMBINE: dict[str, Callable[[str, Tensor, Tensor], Tensor]] = {"add": _add, "concatenate": _concatenate}
WEIGHTLESS: dict[str, type[Position]] = {"sinusoid": sinusoid, "alibi": alibi, "rotary": rotary}
LEARNED: dict[str, type[Position]] = {
    "learned": learned,
    "relative": relative,
    "xl": xl,
    "t5": t5,
    "offsets": offsets,
}
POSITIONS = WEIGHTLESS | LEARNED
REFUSING: dict[str, Callable[..., Position]] = {**WEIGHTLESS} | {name: _refuse(name) for name in LEARNED}
