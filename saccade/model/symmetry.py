"""Which symmetries a model keeps: what its parts promise, and what is measured of each and of all together.

A part says in `breaks` which symmetries it does not keep, by name, and why: an empty table is the promise of all; of a
context that it looks at, in `context_breaks`. A part that says nothing promises nothing. An embed says in `moves` what
can be done with what it reads (`permutation`, `shift`, `causality`, `rotation`: see `move`) and, where that is more
than another order along axis 1, does it in `permuted(values, order)`; `turned(values, random)` gives values of points
in space, and those of the same points turned, mirrored and moved. A model promises what all parts on the way promise.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.model import cells
from saccade.model.embed import Embed
from saccade.model.input import Input
from saccade.model.join import Context, Join
from saccade.model.link import Link, links_of
from saccade.model.model import Model
from saccade.model.move import (
    MOVES,
    SYMMETRIES,
    Applied,
    Symmetry,
    apart,
    changed_values,
    context_permutation,
    drawn,
    permuted_values,
    shifted_apart,
)
from saccade.model.reading import Reading, inputs_of, readings_of, sampled
from saccade.model.whole import WholeModel

ANY = "any order of the context"


def symmetries(model: Model, x: Any = None, y: Input | Tensor | None = None, seed: int = 0) -> list[Symmetry]:
    """Every symmetry that the inputs can have, of every part and then of the model, for one example in float64.

    x: what the encoder reads (several inputs by name); y: what the decoder does. Without either, at random.
    """
    if any(not each.is_floating_point() for each in model.tensors().values()):
        raise SaccadeError("the weights are quantised, whose rounding hides what is asked: check the run without it")
    several = isinstance(model.embed, Join | Context)
    x = next(iter(x.values())) if isinstance(x, Mapping) and not several else x
    y = x if model.encoder is None and y is None else y
    model, random = copy.deepcopy(model).double().eval(), torch.Generator().manual_seed(seed)
    x, y = sampled(model, x, y, random)
    with torch.no_grad():
        readings = [*readings_of(model, x, y)]
        x, y = inputs_of(readings, x, y)
        parts = [*links_of(model, readings, x, y)]
        found = [*_of_embeds(readings, random), *_of_parts(parts, readings, random)]
        return [*together(found), *WholeModel(model, parts, readings, x, y, random).symmetries()]


def moves_of(model: Model) -> dict[str, str]:
    """What can be done with what a model reads, in words, by the symmetry's name."""
    found: dict[str, dict[str, None]] = {}
    for each in model.modules():
        for name, told in getattr(each.part, "moves", {}).items() if isinstance(each, Embed) else ():
            found.setdefault(name, {})[told] = None
    return {name: "; ".join(told) for name, told in found.items()}


def together(found: list[Symmetry]) -> list[Symmetry]:
    """Layers that are alike as one, with the largest error."""
    rows: dict[tuple[Any, ...], list[Symmetry]] = {}
    for each in found:
        rows.setdefault(each[:4], []).append(each)
    return [_largest(each) for each in rows.values()]


def largest(found: list[list[Symmetry]]) -> list[Symmetry]:
    """The same for several examples: each with the largest error of any."""
    return [_largest(list(each))._replace(layers=each[0].layers) for each in zip(*found, strict=True)]


def _largest(rows: list[Symmetry]) -> Symmetry:
    known = [each.error for each in rows if each.error is not None]
    worst = next((each for each in known if each != each), max(known, default=None))  # NaN before all
    return rows[0]._replace(error=worst, layers=sum(each.layers for each in rows))


def _of_embeds(readings: list[Reading], random: torch.Generator) -> Iterator[Symmetry]:
    """What the embeds, and the positions that are added there, keep."""
    for each in readings:
        part, values, embed = cast(Any, each.embed.part), each.given.values, each.embed
        vectors, grid = part(values), embed.grid(values)
        whose = f"embed {each.name}".strip()
        for move in each.moves:
            why = getattr(part, "breaks", dict.fromkeys(SYMMETRIES, f"{embed.name} does not say whether it keeps it"))
            yield Symmetry(
                whose, embed.name, move, why.get(move), _error_of_embed(move, part, values, vectors, grid, random)
            )
            if embed.position is not None and move in MOVES:
                at = each.given.places if each.given.places is not None else 0
                at = at if grid is None else cells.places(grid, vectors.device)
                given = {"x": vectors, "start": at if isinstance(at, Tensor) else at + embed.offset, "grid": grid}
                placed = Applied(embed.position.on_input, given, embed.position.on_input(**given), placed=each.placed)
                error = None if move == "shift" else MOVES[move](placed, random)
                yield Symmetry(whose, type(embed.position).__name__, move, each.position_breaks.get(move), error)


def _error_of_embed(
    move: str, part: Any, values: Mapping[str, Tensor], vectors: Tensor, grid: Any, random: torch.Generator
) -> float | None:
    """The two sides of a symmetry of an embed's part."""
    count = vectors.shape[1]
    if move == "rotation":
        return apart(*(part(each) for each in part.turned(values, random)))
    if move == "permutation":
        order = drawn(0, count, random)
        return apart(vectors[:, order], part(permuted_values(part, values, order)))
    if move == "causality":
        begin = (count + 1) // 2
        return apart(vectors[:, :begin], part(changed_values(part, values, begin, random))[:, :begin])
    return shifted_apart(part, values, vectors, grid, random)


def _of_parts(parts: list[Link], readings: list[Reading], random: torch.Generator) -> Iterator[Symmetry]:
    """What the parts keep of what their stack reads; and of what they look at, its order."""
    read = {each.where: [one.moves for one in readings if one.where == each.where] for each in readings}
    last = [each.where for each in readings][-1]
    for part in parts:
        moves = read.get(last if part.where == "answer" else part.where, [{}])
        call = part.call
        assert call is not None
        pooled = isinstance(call.output, Tensor) and call.output.dim() == 2
        for move in moves[0]:
            known = move in MOVES and all(move in each for each in moves)
            if known and not (pooled and move != "permutation") and call.length > 1:
                shared = len(moves) == 1 or move == "permutation"
                error = MOVES[move](call, random) if shared else None
                yield Symmetry(part.where, part.told, move, part.breaks.get(move), error)
        if call.arguments.get("context") is not None and call.arguments["context"].shape[1] > 1:
            why = part.context_breaks.get("permutation")
            yield Symmetry(part.where, f"{part.told}: {ANY}", "permutation", why, context_permutation(call, random))
