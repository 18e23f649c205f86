"""`Reading`: an input of one example on its way into a model, to see what moving it changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.attend.mask import Mask
from saccade.attend.position import Position
from saccade.model.embed import Embed
from saccade.model.input import Input, as_input
from saccade.model.join import Context, Join
from saccade.model.model import Model
from saccade.model.move import changed_values, drawn, permuted_values, whole_values


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
        return unordered(own, position) if self.placed else own

    @property
    def moves(self) -> Mapping[str, str]:
        """What can be done with what is read."""
        found: Mapping[str, str] = getattr(self.embed.part, "moves", {})
        return found

    def moved(self, move: str, count: int, random: torch.Generator) -> tuple[Input, Tensor, int | None]:
        """It, moved; the order that the `count` vectors of its stack have then, and the first that is another."""
        values, part = self.given.values, self.embed.part
        total = torch.arange(count)
        if move == "causality":
            begin = (self.length + 1) // 2
            return Input(changed_values(part, values, begin, random), (), self.given.places), total, self.first + begin
        order = drawn(0, self.length, random)
        whole = torch.cat((total[: self.first], order + self.first, total[self.first + self.length :]))
        places = None if self.given.places is None else self.given.places[:, order]
        return Input(permuted_values(part, values, order), (), places), whole, None


def readings_of(model: Model, x: Any, y: Any) -> Iterator[Reading]:
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


def sampled(model: Model, x: Any, y: Any, random: torch.Generator) -> tuple[Any, Any]:
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


def inputs_of(readings: list[Reading], x: Any, y: Any) -> tuple[Any, Any]:
    """The inputs as they were read."""
    found = {each.name: each.given for each in readings if each.where != "decoder"}
    target = next((each.given for each in readings if each.where == "decoder"), None)
    if not found:
        return None, target
    return (found if isinstance(x, Mapping) else next(iter(found.values()))), target


def unordered(own: Mapping[str, str], position: Position | None, mask: Mask | None = None) -> Mapping[str, str]:
    """What a part with a position does not keep, where the places come along with what is read."""
    ordered = mask is not None and "permutation" in mask.breaks
    return own if position is None or ordered else {name: why for name, why in own.items() if name != "permutation"}
