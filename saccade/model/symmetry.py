"""Which symmetries a model keeps: what its parts promise, and what is measured of each and of all together.

A part says in `breaks` which symmetries it does not keep, by name, and why: an empty table is the promise of all; of a
context that it looks at, in `context_breaks`. A part that says nothing promises nothing. An embed says in `moves` what
can be done with what it reads (`permutation`, `shift`, `causality`, `rotation`: see `move`) and, where that is more
than another order along axis 1, does it in `permuted(values, order)`; `turned(values, random)` gives values of points
in space, and those of the same points turned, mirrored and moved. A model promises what all parts on the way promise.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from saccade.attend.layer import Attention
from saccade.attend.mask import Mask
from saccade.attend.position import Position
from saccade.error import SaccadeError
from saccade.model import cells
from saccade.model.block import Block
from saccade.model.embed import Embed
from saccade.model.input import Input, as_input
from saccade.model.join import Context, Join
from saccade.model.model import Model
from saccade.model.move import (
    MOVES,
    SYMMETRIES,
    Applied,
    apart,
    changed_values,
    context_permutation,
    drawn,
    permuted,
    permuted_values,
    shifted_apart,
    shifted_sides,
    shifted_values,
    whole_values,
)
from saccade.model.stack import Stack

STATES = ("encoder", "decoder", "pairs")  # those of a model, by name
TOLERANCE = 1e-9  # the largest difference, as a share of the largest output, that is rounding in float64
ANY = "any order of the context"


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


class Reading(NamedTuple):
    """An input on its way into a model. where: which stack its vectors go into; first: how many vectors are before its
    own there.
    """

    where: str
    name: str
    embed: Embed
    given: Input
    first: int
    length: int

    @property
    def placed(self) -> bool:
        """Whether it brings places of its own, which go wherever it goes."""
        return self.given.places is not None

    @property
    def position_breaks(self) -> Mapping[str, str]:
        """What the position that is added to it does not keep."""
        position = self.embed.position
        own: Mapping[str, str] = {} if position is None else position.breaks
        return _without(own, position) if self.placed else own

    @property
    def moves(self) -> Mapping[str, str]:
        """What can be done with what is read."""
        found: Mapping[str, str] = getattr(self.embed.part, "moves", {})
        return found


class Link(NamedTuple):
    """A module of a model on the way from an input to an answer. where: embed, encoder, decoder, context or answer;
    told: what it is, in a spec's words.
    """

    where: str
    told: str
    module: nn.Module
    breaks: Mapping[str, str]
    context_breaks: Mapping[str, str]
    call: Applied | None = None


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
    x, y = _sampled(model, x, y, random)
    with torch.no_grad():
        readings = [*_readings(model, x, y)]
        x, y = _whole(readings, x, y)
        parts = [*_parts(model, readings, x, y)]
        found = [*_of_embeds(readings, random), *_of_parts(parts, readings, random)]
        return [*together(found), *_of_model(model, parts, readings, x, y, random)]


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


def _sampled(model: Model, x: Any, y: Any, random: torch.Generator) -> tuple[Any, Any]:
    """Inputs at random where none are given."""
    if x is None and model.encoder is not None:
        x = model.embed.sample(1, _usual(model.embed), generator=random)
    if y is None and model.decoder is not None:
        y = model.target_embed.sample(1, _usual(model.target_embed), generator=random)
    return x, None if y is None else as_input(y)


def _usual(embed: Any) -> int:
    """How many vectors a model is tried out with."""
    several = len(getattr(embed, "parts", ())) or 1
    sides: tuple[int, ...] = getattr(getattr(embed, "position", None), "sides", ())
    if len(sides) == 2:
        return math.prod(sides)
    return 196 if hasattr(getattr(embed, "part", None), "sides") else 13 * several


def _readings(model: Model, x: Any, y: Any) -> Iterator[Reading]:
    """All inputs, with where they go."""
    last = "decoder" if model.encoder is None else "encoder"
    embed = model.embed
    if isinstance(embed, Join):
        yield from _joined(last, embed, x)
    elif isinstance(embed, Context):
        yield from _joined("context", embed.others, x)
        yield _reading(last, embed.last, embed.embed, x[embed.last])
    else:
        given = y if model.encoder is None else x
        yield _reading(last, "", embed, given)
    if model.encoder is not None and model.decoder is not None:
        yield _reading("decoder", "target", cast(Embed, model.target_embed), y)


def _joined(where: str, embed: Join, x: Any) -> Iterator[Reading]:
    first = 0
    for name, each in embed.parts.items():
        found = _reading(where, name, cast(Embed, each), x[name], first)
        yield found
        first += found.length


def _reading(where: str, name: str, embed: Embed, given: Input | Tensor, first: int = 0) -> Reading:
    """An input of one example as a whole one: without padding, and in whole vectors."""
    given = as_input(given)
    held = {key: each[:1] for key, each in given.values.items()}
    made = Input(whole_values(embed.part, held), (), None if given.places is None else given.places[:1])
    length = embed.part(made.values).shape[1]
    return Reading(where, name, embed, made, first + len(embed.named), length)


def _whole(readings: list[Reading], x: Any, y: Any) -> tuple[Any, Any]:
    """The inputs as they were read."""
    found = {each.name: each.given for each in readings if each.where != "decoder"}
    target = next((each.given for each in readings if each.where == "decoder"), None)
    if not found:
        return None, target
    return (found if isinstance(x, Mapping) else next(iter(found.values()))), target


def _parts(model: Model, readings: list[Reading], x: Any, y: Any) -> Iterator[Link]:
    """The parts between the embeds and the answer, with their calls."""
    listed, last = [*_listed(model)], readings[-1].where
    with _recorded([module for _, _, module in listed]) as calls:
        states = run(model, x, y)
        _answers(model, states)
    for where, told, module in listed:
        if module not in calls:
            continue
        arguments, output = calls[module]
        read = [each.first for each in readings if each.where == (last if where == "answer" else where)]
        extras = read[0] if len(read) == 1 else 0
        alone = getattr(module, "breaks", None) == {} or arguments.get("context") is not None
        reach = getattr(module, "reach", 0 if alone and not hasattr(module, "window") else None)
        reach = (0 if alone else None) if isinstance(module, Attention) else reach
        pairs = bool(getattr(module, "pairs", False))
        mask = arguments.get("mask")
        told = f"{told}, in {type(mask).__name__}" if isinstance(mask, Mask) else told
        placed = any(each.placed for each in readings if each.where == where)
        call = Applied(_runner(module), arguments, output, extras, reach, pairs, placed)
        yield Link(where, told, module, _breaks(told, module, arguments, placed), _context_breaks(told, module), call)


def _listed(model: Model) -> Iterator[tuple[str, str, nn.Module]]:
    """Where each part stands, what it is and the part: those of blocks, between stages, and behind the last state."""
    stacks = [("encoder", model.encoder), ("decoder", model.decoder)]
    if model.context is not None:
        stacks.insert(0, ("context", model.context.layers))
    for where, stack in stacks:
        if isinstance(stack, Stack):
            yield from _of_stack(model, where, stack)
    if model.context is not None and model.context.pool is not None:
        yield "context", f"pool({model.context.pool.name})", model.context.pool
    yield "answer", f"pool({model.pooling.name})", model.pooling
    if model.head is not None:
        yield "answer", f"{model.config.head}", model.head
    for name, head in model.heads.items():
        yield "answer", f"{name}: {model.config.named_heads[name]}", head


def _of_stack(model: Model, where: str, stack: Stack) -> Iterator[tuple[str, str, nn.Module]]:
    mixers, config = model.config.mixers(where == "decoder"), model.config.stack(where == "decoder")
    for number, block in enumerate(stack.blocks):
        assert isinstance(block, Block)
        named = {
            block.mixes: mixers[min(number, len(mixers) - 1)],
            "into": "the source as one vector",
            "cross": "looking across",
            "feed": config.feed,
        }
        for role, told in named.items():
            module = getattr(block, role, None)
            if isinstance(module, nn.Module):
                yield where, _told(module, told), module
    for merge in getattr(stack, "merges", ()):
        yield where, f"merge {model.config.merge}", merge
    inside = [id(each) for block in stack.blocks for each in block.modules()]
    inside += [id(each) for merge in getattr(stack, "merges", ()) for each in merge.modules()]
    for each in stack.modules():  # whatever else of a stack makes promises
        if hasattr(each, "breaks") and id(each) not in inside:
            yield where, type(each).__name__, each
            inside += [id(part) for part in each.modules()]


def _told(module: nn.Module, text: str) -> str:
    """A part in words: of attention, also where it may look and how it knows positions."""
    if not isinstance(module, Attention):
        return text
    masked = [] if module.mask is None else [f"mask {module.mask}"]
    placed = [] if module.position is None else [type(module.position).__name__]
    return ", ".join([text, *masked, *placed])


def _breaks(told: str, module: nn.Module, arguments: Mapping[str, Any], placed: bool) -> Mapping[str, str]:
    """What a part does not keep; beside it, what the mask of its call does not. placed: whether places come along with
    what is read, so that a position tells nothing of the order.
    """
    if isinstance(module, Attention) and arguments.get("context") is not None:
        return {}  # each vector looks for itself
    own: Mapping[str, str] | None = getattr(module, "breaks", None)
    if own is None:
        return dict.fromkeys(SYMMETRIES, f"{told} does not say whether it keeps it")
    if placed and isinstance(module, Attention):
        own = _without(own, module.position, module.mask)
    mask = arguments.get("mask")
    given = {name: why for name, why in mask.breaks.items() if name != "causality"} if isinstance(mask, Mask) else {}
    return {**given, **own}


def _without(own: Mapping[str, str], position: Position | None, mask: Mask | None = None) -> Mapping[str, str]:
    """What a part with a position does not keep, where the places come along with what is read."""
    ordered = mask is not None and "permutation" in mask.breaks
    return own if position is None or ordered else {name: why for name, why in own.items() if name != "permutation"}


def _context_breaks(told: str, module: nn.Module) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(module, "context_breaks", {"permutation": f"{told} does not say it"})
    return found


@contextmanager
def _recorded(modules: list[nn.Module]) -> Iterator[dict[nn.Module, tuple[dict[str, Any], Any]]]:
    """What each module is given in its first call inside, by name, and what it gives."""
    found: dict[nn.Module, tuple[dict[str, Any], Any]] = {}

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        bound = inspect.signature(module.forward).bind(*given, **named).arguments
        loose = {
            name for name, each in inspect.signature(module.forward).parameters.items() if each.kind == each.VAR_KEYWORD
        }
        held = {name: each for name, each in bound.items() if name not in loose}
        for name in loose & bound.keys():
            held |= bound[name]
        found.setdefault(module, (held, output))

    hooks = [each.register_forward_hook(note, with_kwargs=True) for each in modules]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _runner(module: nn.Module) -> Callable[..., Any]:
    """A part as a function of what it was given by name."""
    signature = inspect.signature(module.forward)

    def run(**given: Any) -> Any:
        names = [name for name, each in signature.parameters.items() if each.kind == each.POSITIONAL_ONLY]
        return module(*(given.pop(name) for name in names), **given)

    return run


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


def _of_model(
    model: Model, parts: list[Link], readings: list[Reading], x: Any, y: Any, random: torch.Generator
) -> Iterator[Symmetry]:
    """What the model keeps from each input to its states and its answers."""
    before = run(model, x, y)
    said = _answers(model, before)
    for each in readings:
        for move in each.moves:
            why = [*_on_the_way(each, parts, move)]
            if move == "shift":
                error = None if why else _shifted(model, each, parts, x, y, before, random)
                yield Symmetry("model", _way(each, f"{each.where} states"), move, next(iter(why), None), error)
                continue
            if move == "causality" and each.where == "encoder" and model.decoder is not None:
                continue  # a decoder has the whole source before it
            if move == "rotation":
                yield from _turned(model, each, parts, x, y, random)
                continue
            moved, order, begin = _moved(each, move, _total(each, readings), random)
            after = run(model, *_with(each, moved, x, y))
            for stack in STATES:
                one: Tensor | None = getattr(before, stack, None)
                other: Any = getattr(after, stack, None)
                if one is None or (stack != "decoder" and each.where == "decoder"):
                    continue
                own = stack == each.where or (stack == "pairs" and each.where == "encoder")
                if stack == "pairs" and begin is not None:
                    continue
                if own and one.shape[1] != _total(each, readings):
                    continue  # its stages made fewer of them
                reasons = why if own else [*why, *_across(parts, stack, move, each)]
                sides = _sides(one, other, order if own else None, begin if own else None)
                yield Symmetry("model", _way(each, f"{stack} states"), move, next(iter(reasons), None), apart(*sides))
            for name, one in said.items():
                yield from _of_answer(model, name, one, after, each, move, parts, why, order, begin)


def _turned(
    model: Model, each: Reading, parts: list[Link], x: Any, y: Any, random: torch.Generator
) -> Iterator[Symmetry]:
    """f(R x) = f(x) of the states and the answers, for points in space that are turned, mirrored and moved."""
    why = next(_on_the_way(each, parts, "rotation"), None)
    both = cast(Any, each.embed.part).turned(each.given.values, random)
    one, other = (run(model, *_with(each, Input(values), x, y)) for values in both)
    said = _answers(model, one), _answers(model, other)
    for stack in STATES:
        if getattr(one, stack, None) is not None and (stack == "decoder" or each.where != "decoder"):
            sides = getattr(one, stack), getattr(other, stack)
            yield Symmetry("model", _way(each, f"{stack} states"), "rotation", why, apart(*sides))
    for name in said[0]:
        told = f"{model.config.head if name is None else name}"
        yield Symmetry("model", _way(each, told), "rotation", why, apart(said[0][name], said[1][name]))


def _shifted(
    model: Model, each: Reading, parts: list[Link], x: Any, y: Any, before: Any, random: torch.Generator
) -> float | None:
    """f(S x) = S f(x) of the states of a stack, where neighbours alone are seen or what is before x can be hidden."""
    calls = [part.call for part in parts if part.where == each.where and part.call is not None]
    part, grid = cast(Any, each.embed.part), each.embed.grid(each.given.values)
    reaches = [getattr(part, "reach", 0 if grid is None else None), *(call.reach for call in calls)]
    values, output = shifted_values(part, each.given.values, random), getattr(before, each.where, None)
    if output is None or each.first or each.placed or output.shape[1] != each.length:
        return None
    near = [reach for reach in reaches if reach is not None]
    if len(near) == len(reaches):
        after = getattr(run(model, *_with(each, Input(values), x, y)), each.where)
        return shifted_sides(output, after, grid, sum(near))
    if grid is not None or len(near) - 1 < sum(call.reach is not None for call in calls) or near[0]:
        return None
    lengths = torch.tensor([next(iter(values.values())).shape[1] - getattr(part, "stride", 1)])
    hidden = Input(values, lengths, None, "left")
    return shifted_sides(output, getattr(run(model, *_with(each, hidden, x, y)), each.where), None, 0)


def _of_answer(
    model: Model,
    name: str | None,
    one: Tensor,
    after: Any,
    each: Reading,
    move: str,
    parts: list[Link],
    why: list[str],
    order: Tensor,
    begin: int | None,
) -> Iterator[Symmetry]:
    """What the answer of one head keeps."""
    head: Any = model.head if name is None else model.heads[name]
    told = model.config.head if name is None else name
    last = "encoder" if model.decoder is None or head.reads in ("encoder", "pairs") else "decoder"
    if head.reads == "layers" or (move == "causality" and (one.dim() < 3 or last != each.where)):
        return
    own = last == each.where and one.dim() > 2 and one.shape[1] == len(order)
    reasons = why if last == each.where else [*why, *_across(parts, last, move, each)]
    pooled = (part.breaks for part in parts if part.where == "answer" and part.module is model.pooling and head.pooled)
    reasons = reasons + [found[move] for found in pooled if move in found]
    reasons += [p.breaks[move] for p in parts if p.module is head and move in p.breaks]
    if each.where == "decoder" and last == "encoder":
        return
    other = model.say(after, name)
    sides = _sides(one, other, order if own else None, begin if own else None, bool(getattr(head, "pairs", False)))
    yield Symmetry("model", _way(each, f"{told}"), move, next(iter(reasons), None), apart(*sides))


def _sides(
    one: Tensor, other: Tensor, order: Tensor | None, begin: int | None, pairs: bool = False
) -> tuple[Tensor, Tensor]:
    """The two sides of f(g x) = g f(x); without an order, of f(g x) = f(x)."""
    if begin is not None:
        return one[:, :begin], other[:, :begin]
    if order is None:
        return one, other
    one = permuted(one, order)
    return (one[:, :, order] if pairs and one.dim() == 3 else one), other


def _on_the_way(each: Reading, parts: list[Link], move: str) -> Iterator[str]:
    """Why a symmetry gets lost between an input and the states of its stack."""
    part = cast(Any, each.embed.part)
    found = [getattr(part, "breaks", dict.fromkeys(SYMMETRIES, f"{each.embed.name} does not say whether it keeps it"))]
    found += [each.position_breaks]
    found += [each_part.breaks for each_part in parts if each_part.where == each.where]
    yield from (table[move] for table in found if move in table)


def _across(parts: list[Link], stack: str, move: str, each: Reading) -> Iterator[str]:
    """Why it gets lost where another stack looks at those states."""
    looking = (
        p for p in parts if p.where == stack and p.call is not None and p.call.arguments.get("context") is not None
    )
    yield from (part.context_breaks[move] for part in looking if move in part.context_breaks)


def _moved(each: Reading, move: str, count: int, random: torch.Generator) -> tuple[Input, Tensor, int | None]:
    """The input moved, the order that its stack's vectors have then, and the first of them that is another."""
    values, part = each.given.values, each.embed.part
    total = torch.arange(count)
    if move == "causality":
        begin = (each.length + 1) // 2
        return Input(changed_values(part, values, begin, random), (), each.given.places), total, each.first + begin
    order = drawn(0, each.length, random)
    whole = torch.cat((total[: each.first], order + each.first, total[each.first + each.length :]))
    places = each.given.places
    return Input(permuted_values(part, values, order), (), None if places is None else places[:, order]), whole, None


def _with(each: Reading, moved: Input, x: Any, y: Any) -> tuple[Any, Any]:
    """The inputs of the model with one of them in place of what it was."""
    if each.where == "decoder":
        return x, moved
    return ({**x, each.name: moved} if isinstance(x, Mapping) else moved), y


def _total(each: Reading, readings: list[Reading]) -> int:
    """How many vectors its stack reads."""
    return max(one.first + one.length for one in readings if one.where == each.where)


def run(model: Model, x: Any, y: Any) -> Any:
    """The states of one pass."""
    return model.states(y) if model.encoder is None else model.states(x, *([] if y is None else [y]))


def _answers(model: Model, states: Any) -> dict[str | None, Tensor]:
    """What each head says, by its name; the unnamed one is None."""
    named: list[str | None] = [*model.heads]
    return {name: model.say(states, name) for name in [*([] if model.head is None else [None]), *named]}


def _way(each: Reading, to: str) -> str:
    whose = each.name or next(iter(each.given.values))
    return f"{whose} to {to}"
