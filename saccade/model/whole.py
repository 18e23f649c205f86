"""What a model keeps as a whole: from each of its inputs to its states, and to what its heads say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.model.input import Input
from saccade.model.link import Link, answers, run
from saccade.model.model import Model
from saccade.model.move import SYMMETRIES, Symmetry, apart, permuted, shifted_sides, shifted_values
from saccade.model.reading import Reading

STATES = ("encoder", "decoder", "pairs")  # those of a model, by name


class MovedPass(NamedTuple):
    """What a model made of an input that was moved. order: that of the vectors of its stack; begin: the first of them
    that is another, where some are; whys: why the symmetry gets lost before the states of that stack.
    """

    reading: Reading
    move: str
    states: Any
    order: Tensor
    begin: int | None
    whys: list[str]


class WholeModel:
    """A model with its inputs and its parts."""

    def __init__(
        self, model: Model, links: list[Link], readings: list[Reading], x: Any, y: Any, random: torch.Generator
    ) -> None:
        self.model, self.links, self.readings, self.x, self.y, self.random = model, links, readings, x, y, random
        self.before = run(model, x, y)
        self.said = answers(model, self.before)

    def symmetries(self) -> Iterator[Symmetry]:
        """Of each input and each move, the states and then the answers."""
        for each in self.readings:
            for move in each.moves:
                whys = [*self._on_the_way(each, move)]
                if move == "shift":
                    error = None if whys else self._shifted(each)
                    yield Symmetry("model", _way(each, f"{each.where} states"), move, next(iter(whys), None), error)
                elif move == "rotation":
                    yield from self._turned(each, next(iter(whys), None))
                elif move != "causality" or each.where != "encoder" or self.model.decoder is None:
                    yield from self._compared(each, move, whys)  # a decoder has the whole source before it

    def _compared(self, each: Reading, move: str, whys: list[str]) -> Iterator[Symmetry]:
        """f(g x) beside g f(x)."""
        given, order, begin = each.moved(move, self._total(each), self.random)
        after = run(self.model, *self._with(each, given))
        moved = MovedPass(each, move, after, order, begin, whys)
        for stack in STATES:
            if getattr(self.before, stack, None) is not None and (stack == "decoder" or each.where != "decoder"):
                yield from self._states(moved, stack)
        for name in self.said:
            yield from self._answer(moved, name)

    def _states(self, moved: MovedPass, stack: str) -> Iterator[Symmetry]:
        """The states of one stack, or of pairs."""
        each, one = moved.reading, getattr(self.before, stack)
        own = stack == each.where or (stack == "pairs" and each.where == "encoder")
        if (stack == "pairs" and moved.begin is not None) or (own and one.shape[1] != self._total(each)):
            return  # its stages made fewer of them
        whys = moved.whys if own else [*moved.whys, *self._across(stack, moved.move)]
        sides = _sides(one, getattr(moved.states, stack), moved if own else None)
        yield Symmetry("model", _way(each, f"{stack} states"), moved.move, next(iter(whys), None), apart(*sides))

    def _answer(self, moved: MovedPass, name: str | None) -> Iterator[Symmetry]:
        """What one head says."""
        each, move, one = moved.reading, moved.move, self.said[name]
        head: Any = self.model.head if name is None else self.model.heads[name]
        read = "encoder" if self.model.decoder is None or head.reads in ("encoder", "pairs") else "decoder"
        later = move == "causality" and (one.dim() < 3 or read != each.where)
        if head.reads == "layers" or later or (each.where == "decoder" and read == "encoder"):
            return
        own = read == each.where and one.dim() > 2 and one.shape[1] == len(moved.order)
        whys = moved.whys if read == each.where else [*moved.whys, *self._across(read, move)]
        last = [head, *([self.model.pooling] if head.pooled else [])]
        whys = whys + [link.breaks[move] for link in self.links if link.module in last and move in link.breaks]
        pairs = bool(getattr(head, "pairs", False))
        sides = _sides(one, self.model.say(moved.states, name), moved if own else None, pairs)
        yield Symmetry("model", _way(each, self._head(name)), move, next(iter(whys), None), apart(*sides))

    def _turned(self, each: Reading, why: str | None) -> Iterator[Symmetry]:
        """f(R x) beside f(x), for points in space that are turned, mirrored and moved."""
        both = cast(Any, each.embed.part).turned(each.given.values, self.random)
        one, other = (run(self.model, *self._with(each, Input(values))) for values in both)
        said = answers(self.model, one), answers(self.model, other)
        for stack in STATES:
            if getattr(one, stack, None) is not None and (stack == "decoder" or each.where != "decoder"):
                error = apart(getattr(one, stack), getattr(other, stack))
                yield Symmetry("model", _way(each, f"{stack} states"), "rotation", why, error)
        for name in said[0]:
            yield Symmetry("model", _way(each, self._head(name)), "rotation", why, apart(said[0][name], said[1][name]))

    def _shifted(self, each: Reading) -> float | None:
        """f(S x) beside S f(x), where neighbours alone are seen or what is before x can be hidden; else None."""
        calls = [link.call for link in self.links if link.where == each.where and link.call is not None]
        part, grid = cast(Any, each.embed.part), each.embed.grid(each.given.values)
        reaches = [getattr(part, "reach", 0 if grid is None else None), *(call.reach for call in calls)]
        output = getattr(self.before, each.where, None)
        if output is None or each.first or each.placed or output.shape[1] != each.length:
            return None
        values = shifted_values(part, each.given.values, self.random)
        near = [reach for reach in reaches if reach is not None]
        if len(near) == len(reaches):
            after = getattr(run(self.model, *self._with(each, Input(values))), each.where)
            return shifted_sides(output, after, grid, sum(near))
        if grid is not None or reaches[0] != 0:
            return None
        lengths = torch.tensor([next(iter(values.values())).shape[1] - getattr(part, "stride", 1)])
        hidden = Input(values, lengths, None, "left")
        return shifted_sides(output, getattr(run(self.model, *self._with(each, hidden)), each.where), None, 0)

    def _on_the_way(self, each: Reading, move: str) -> Iterator[str]:
        """Why a symmetry gets lost between an input and the states of its stack."""
        part = cast(Any, each.embed.part)
        found = [
            getattr(part, "breaks", dict.fromkeys(SYMMETRIES, f"{each.embed.name} does not say whether it keeps it"))
        ]
        found += [each.position_breaks, *(link.breaks for link in self.links if link.where == each.where)]
        yield from (table[move] for table in found if move in table)

    def _across(self, stack: str, move: str) -> Iterator[str]:
        """Why it gets lost where another stack looks at those states."""
        for link in self.links:
            looks = link.where == stack and link.call is not None and link.call.arguments.get("context") is not None
            if looks and move in link.context_breaks:
                yield link.context_breaks[move]

    def _with(self, each: Reading, moved: Input) -> tuple[Any, Any]:
        """The inputs of the model with one of them in place of what it was."""
        if each.where == "decoder":
            return self.x, moved
        return ({**self.x, each.name: moved} if isinstance(self.x, Mapping) else moved), self.y

    def _total(self, each: Reading) -> int:
        """How many vectors its stack reads."""
        return max(one.first + one.length for one in self.readings if one.where == each.where)

    def _head(self, name: str | None) -> str:
        return f"{self.model.config.head if name is None else name}"


def _sides(one: Tensor, other: Tensor, moved: MovedPass | None, pairs: bool = False) -> tuple[Tensor, Tensor]:
    """The two sides of f(g x) = g f(x); where nothing moves with x, of f(g x) = f(x)."""
    if moved is None:
        return one, other
    if moved.begin is not None:
        return one[:, : moved.begin], other[:, : moved.begin]
    one = permuted(one, moved.order)
    return (one[:, :, moved.order] if pairs and one.dim() == 3 else one), other


def _way(each: Reading, to: str) -> str:
    whose = each.name or next(iter(each.given.values))
    return f"{whose} to {to}"
