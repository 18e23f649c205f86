"""A symmetry of f says how f(x) moves when x does: f(g x) = g f(x), or f(g x) = f(x) where one vector stands for all
(Bronstein et al. 2021). Those that sequences, pictures, sets and graphs can have:

permutation  f(P x) = P f(x): the vectors in another order, and the edges with them
shift        f(S x) = S f(x): x behind other vectors, which hide; where f sees but a few neighbours, beside others
causality    f(x)_t = f(x')_t for all t before the first at which x and x' differ
rotation     f(R x) = f(x): points in space turned, mirrored and moved, where an embed reads some (`turned`)

Here are the moves: of the values that an embed reads, and of what the parts of a model hand on to each other. Each
`apart` is the largest difference between the two sides, as a share of the largest output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.attend.edges import Edges
from saccade.attend.mask import padding
from saccade.model import cells

TOLERANCE = 1e-9  # the largest difference, as a share of the largest output, that is rounding in float64
STAY = frozenset({"context", "values", "context_mask", "mask", "places", "start", "grid", "sides", "cache", "kept"})


class Symmetry(NamedTuple):
    """A symmetry of a part, or of the model. because: why it is not promised; error: None where it was not measured;
    layers: of how many layers the largest error is.
    """

    where: str
    part: str
    symmetry: str
    because: str | None
    error: float | None
    layers: int = 1
    tolerance: float = TOLERANCE

    @property
    def promised(self) -> bool:
        """Whether the part says that it keeps it."""
        return self.because is None

    @property
    def broken(self) -> bool:
        """Whether it is promised and not kept; NaN is not."""
        return self.promised and self.error is not None and not self.error <= self.tolerance


class Applied(NamedTuple):
    """One call of a part: what it was given, by name, and what came out. extras: vectors before the input. reach: how
    many neighbours on every side it sees; None: any number. pairs: whether what comes out is of pairs, (B,T,T). placed:
    whether the places of vectors are the input's own, and come along with them.
    """

    run: Callable[..., Any]
    arguments: Mapping[str, Any]
    output: Any
    extras: int = 0
    reach: int | None = None
    pairs: bool = False
    placed: bool = False

    @property
    def length(self) -> int:
        """How many vectors it was given."""
        found: int = next(iter(self.arguments.values())).shape[1]
        return found


def permutation(call: Applied, random: torch.Generator) -> float | None:
    """The vectors in another order, those before the input where they were."""
    order = drawn(call.extras, call.length - call.extras, random)
    given = {name: each if name in STAY else _permuted(each, order) for name, each in call.arguments.items()}
    for name in ("places", "start"):
        if call.placed and isinstance(given.get(name), Tensor):
            given[name] = given[name][:, order]
    if given.get("bias") is not None:  # (B or 1,H or 1,T,T)
        given["bias"] = call.arguments["bias"].expand(-1, -1, len(order), len(order))[:, :, order][..., order]
    return apart(_permuted(call.output, order, call.pairs), call.run(**given))


def context_permutation(call: Applied, random: torch.Generator) -> float | None:
    """What is looked at in another order."""
    order = drawn(0, call.arguments["context"].shape[1], random)
    moved = {name: _permuted(call.arguments.get(name), order) for name in ("context", "values")}
    if call.arguments.get("bias") is not None:  # (B,H,T,S): what it says of a place goes with the place
        moved["bias"] = call.arguments["bias"][..., order]
    return apart(call.output, call.run(**{**call.arguments, **{k: v for k, v in moved.items() if v is not None}}))


def causality(call: Applied, random: torch.Generator) -> float | None:
    """Other vectors in the second half."""
    first, x = next(iter(call.arguments.items()))
    begin = call.extras + (call.length - call.extras + 1) // 2
    changed = torch.cat((x[:, :begin], noise(x[:, begin:], random)), 1)
    after = call.run(**{**call.arguments, first: changed})
    return apart(*(_each(output, lambda x: x[:, :begin]) for output in (call.output, after)))


def shift(call: Applied, random: torch.Generator) -> float | None:
    """One more vector before the others, or one more row and column of cells: hidden, where the part sees them all."""
    first, x = next(iter(call.arguments.items()))
    places = call.arguments.get("places")
    grid = next((call.arguments[name] for name in ("grid", "sides") if call.arguments.get(name) is not None), None)
    if grid is None and isinstance(places, Tensor) and places.dim() == 3:
        grid = int(places[..., 0].max()) + 1, int(places[..., 1].max()) + 1
    if call.placed or any(call.arguments.get(name) is not None for name in ("mask", "edges", "bias")):
        return None  # made for these places alone
    outputs = call.output if isinstance(call.output, tuple) else (call.output,)
    if any(not isinstance(each, Tensor) or each.shape[1] != call.length for each in outputs):
        return None  # what comes out are fewer
    sides = (1, call.length - call.extras) if grid is None else grid
    wider = (sides[0] + (grid is not None), sides[1] + 1)
    if grid is not None and call.extras and call.reach is not None:
        return None
    given: dict[str, Any] = {**call.arguments, first: _behind(x, call.extras, sides, wider, random)}
    given |= {name: wider for name in ("grid", "sides") if given.get(name) is not None}
    for name in ("embedded", "segments"):
        if given.get(name) is not None:
            return None
    if given.get("places") is not None:
        places = cells.places(wider, x.device) if grid is not None else torch.arange(wider[1]).unsqueeze(0)
        nowhere = torch.full_like(places[:, :1], -1).expand(-1, call.extras, *places.shape[2:])
        given["places"] = torch.cat((nowhere, places), 1)
    if call.reach is None and "mask" in given:
        inside = torch.ones(wider, dtype=torch.bool)
        inside[: wider[0] - sides[0]] = False
        inside[:, :1] = False
        seen = torch.cat((torch.ones(call.extras, dtype=torch.bool), inside.flatten()))
        given["mask"] = seen.view(1, 1, 1, -1) if grid is not None or call.extras else padding([call.length], "left")
    edge = call.reach or 0
    one = _each(call.output, lambda x: _inside(x, call.extras, sides, (edge * (grid is not None), edge)))
    down = wider[0] - sides[0]
    after = call.run(**given)
    other = _each(after, lambda x: _inside(x, call.extras, wider, (down + edge * (grid is not None), 1 + edge)))
    return apart(one, other)


def apart(one: Any, other: Any) -> float | None:
    """The largest difference, as a share of the largest output; None where there is nothing to compare."""
    if isinstance(one, tuple):
        found = [each for pair in zip(one, other, strict=True) if (each := apart(*pair)) is not None]
        return max(found, default=None)
    if not isinstance(one, Tensor) or not one.numel():
        return None
    if one.shape != other.shape:
        return float("inf")
    largest = float(one.abs().max())
    return float((one - other).abs().max()) / (largest or 1.0)


def drawn(before: int, count: int, random: torch.Generator) -> Tensor:
    """An order in which nothing stays where it was, behind `before` that do."""
    order = torch.randperm(count, generator=random)
    turned = torch.empty_like(order).scatter_(0, order, order.roll(1))  # one cycle through all
    return torch.cat((torch.arange(before), before + turned))


def noise(like: Tensor, random: torch.Generator) -> Tensor:
    """Numbers at random, of the spread of others."""
    return torch.randn(like.shape, generator=random, dtype=like.dtype) * (like.std() if like.numel() > 1 else 1.0)


def permuted_values(part: Any, values: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """Values whose vectors come in another order: as the embed's part says, squares of a picture, or along axis 1."""
    if hasattr(part, "permuted"):
        found: dict[str, Tensor] = part.permuted(values, order)
        return found
    if hasattr(part, "sides"):
        return {**values, "pixels": _squares(values["pixels"], part.sides(*values["pixels"].shape[2:]), order)}
    stride = getattr(part, "stride", 1)
    places = (order.unsqueeze(1) * stride + torch.arange(stride)).flatten()
    return {name: each[:, places] for name, each in values.items()}


def changed_values(part: Any, values: Mapping[str, Tensor], begin: int, random: torch.Generator) -> dict[str, Tensor]:
    """Other values from vector `begin` on."""
    stride = getattr(part, "stride", 1)
    first = begin * stride
    rows, count = next(iter(values.values())).shape[:2]
    other = part.sample(rows, -(-count // stride), generator=random)
    return {
        name: torch.cat((each[:, :first], other[name][:, first:count].to(each.dtype)), 1) if name in other else each
        for name, each in values.items()
    }


def shifted_values(part: Any, values: Mapping[str, Tensor], random: torch.Generator) -> dict[str, Tensor]:
    """Values behind those of one more vector, or of one more row and column of cells."""
    if hasattr(part, "sides"):
        pixels = values["pixels"]
        tall, wide = part.strides
        shape = *pixels.shape[:2], pixels.shape[2] + tall, pixels.shape[3] + wide
        larger = torch.randn(shape, generator=random, dtype=pixels.dtype)
        larger[..., tall:, wide:] = pixels
        return {**values, "pixels": larger}
    other = part.sample(len(next(iter(values.values()))), 1, generator=random)
    return {
        name: torch.cat((other[name].to(each.dtype) if name in other else each[:, :1], each), 1)
        for name, each in values.items()
    }


def whole_values(part: Any, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values without the last few, where these are fewer than a vector is made of."""
    stride = getattr(part, "stride", 1)
    if stride == 1 or hasattr(part, "sides"):
        return dict(values)
    return {name: each[:, : each.shape[1] // stride * stride] for name, each in values.items()}


def shifted_apart(
    part: Any, values: Mapping[str, Tensor], output: Tensor, sides: tuple[int, int] | None, random: torch.Generator
) -> float | None:
    """`shift` of an embed's part: values (1, ...) -> output (1,T,C)."""
    moved, reach = shifted_values(part, values, random), getattr(part, "reach", None)
    given = [padding([part.stride * output.shape[1]], "left")] if getattr(part, "padded", False) and not reach else []
    return shifted_sides(output, part(moved, *given), sides, reach or 0)


def shifted_sides(one: Tensor, other: Tensor, grid: tuple[int, int] | None, edge: int) -> float | None:
    """The two sides of f(S x) = S f(x), from so many vectors after the first on."""
    if grid is None:
        return apart(one[:, edge:], other[:, 1 + edge :])
    wider = grid[0] + 1, grid[1] + 1
    return apart(_inside(one, 0, grid, (edge, edge)), _inside(other, 0, wider, (1 + edge, 1 + edge)))


def permuted(x: Tensor, order: Tensor) -> Tensor:
    """x (B,T,...) in another order; what has no axis of so many vectors stays."""
    found: Tensor = _permuted(x, order)
    return found


def _permuted(each: Any, order: Tensor, pairs: bool = False) -> Any:
    """Whatever has an axis of vectors: (B,T,C), of pairs (B,T,T,C), segments (B,T), edges."""
    if isinstance(each, tuple):
        return tuple(_permuted(one, order) for one in each)
    if isinstance(each, Edges):
        return each.permuted(order)
    if not isinstance(each, Tensor) or each.dim() < 2 or each.shape[1] != len(order):
        return each
    if each.dim() == 2 and each.is_floating_point():
        return each  # one vector, as wide as there are others
    both = each.shape[2:3] == each.shape[1:2] and (each.dim() == 4 or pairs)
    each = each[:, order]
    return each[:, :, order] if both else each


def _squares(pixels: Tensor, sides: tuple[int, int], order: Tensor) -> Tensor:
    """A picture whose squares, as many as it has cells, come in another order."""
    (rows, columns), (height, width) = sides, pixels.shape[2:]
    tall, wide, made = height // rows, width // columns, pixels.clone()
    inside = made[:, :, : rows * tall, : columns * wide]
    squares = inside.unflatten(3, (columns, wide)).unflatten(2, (rows, tall))
    flat = squares.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)[:, order]
    inside.copy_(flat.unflatten(1, (rows, columns)).permute(0, 3, 1, 4, 2, 5).reshape(inside.shape))
    return made


def _behind(x: Tensor, extras: int, sides: tuple[int, int], wider: tuple[int, int], random: torch.Generator) -> Tensor:
    """x (B,extras + T,C) with its cells at the lower right of a larger grid of others."""
    own = x[:, extras:].unflatten(1, sides)
    shape = len(x), *wider, x.shape[2]
    larger = torch.randn(shape, generator=random, dtype=x.dtype)
    larger[:, wider[0] - sides[0] :, wider[1] - sides[1] :] = own
    return torch.cat((x[:, :extras], larger.flatten(1, 2)), 1)


def _inside(x: Tensor, extras: int, sides: tuple[int, int], first: tuple[int, int]) -> Tensor:
    """The cells of x (B,extras + T,C) from a row and a column on."""
    return x[:, extras:].unflatten(1, sides)[:, first[0] :, first[1] :]


def _each(output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return tuple(map(change, output)) if isinstance(output, tuple) else change(output)


SYMMETRIES = ("permutation", "shift", "causality", "rotation")
MOVES: dict[str, Callable[[Applied, torch.Generator], float | None]] = {
    "permutation": permutation,
    "shift": shift,
    "causality": causality,
}
