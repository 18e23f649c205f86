"""How several inputs are read, each through an embedding of its own.

one      one sequence, in which each has a learned vector of its kind (`Join`)
context  the last is the sequence, and looks at the others, which are joined (`Context`); Xu and Saenko 2016
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.attend.mask import padding
from saccade.config import ModelConfig
from saccade.error import SaccadeError, nearest
from saccade.model.embed import Embed, Embedded
from saccade.model.input import Input


class Join(nn.Module):
    """Inputs by their names -> (B,T,C), T the sum of their lengths: x_n + kind_n, one behind another in the order of
    the configuration. In each row the real vectors come first, so that a row is the same beside longer ones.
    """

    def __init__(self, config: ModelConfig, texts: Mapping[str, str]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({name: Embed(config, text) for name, text in texts.items()})
        self.kinds = normal(len(texts), config.width)

    @property
    def table(self) -> None:
        """None: several inputs have no single vocabulary."""

    @property
    def room(self) -> int | None:
        """How many positions all of them have together; None: as many as one likes."""
        rooms = [cast(Embed, each).room for each in self.parts.values()]
        known = [each for each in rooms if each is not None]
        return sum(known) if len(known) == len(rooms) else None

    def room_of(self, name: str) -> int | None:
        """How many positions one of them has."""
        return cast(Embed, self.parts[name]).room

    def read(self, given: Any) -> Embedded:
        """The vectors of all inputs, and what a stack must know of them."""
        check_inputs(given, self.parts)
        read = [cast(Embed, part).read(given[name]) for name, part in self.parts.items()]
        vectors = torch.cat([each.vectors + kind for each, kind in zip(read, self.kinds, strict=True)], 1)
        grid = read[0].grid if len(read) == 1 else None
        segments = None
        if any(each.segments is not None for each in read):
            segments = torch.cat([_segments_or_zeros(each) for each in read], 1)
        places = _places(read)
        if all(each.padding is None for each in read):
            return Embedded(vectors, None, places, segments, grid)
        real = torch.cat([_is_real(each) for each in read], 1)  # (B,T)
        order = (~real).long().argsort(dim=1, stable=True)  # real vectors first, else as they were
        return Embedded(
            _reorder(vectors, order),
            padding(real.sum(1)),
            None if places is None else _reorder(places.expand(len(vectors), *places.shape[1:]), order),
            None if segments is None else _reorder(segments, order),
        )

    def sample(self, rows: int, length: int, **how: Any) -> dict[str, Input]:
        """Inputs at random that become `length` vectors a row together, about as many each."""
        each, more = divmod(length, len(self.parts))
        lengths = [each + (number < more) for number in range(len(self.parts))]
        pairs = zip(self.parts.items(), lengths, strict=True)
        return {name: cast(Embed, part).sample(rows, size, **how) for (name, part), size in pairs}


class Context(nn.Module):
    """The last input as the sequence (B,T,C), and the others, joined, as what it looks at (B,S,C)."""

    def __init__(self, config: ModelConfig, texts: Mapping[str, str]) -> None:
        super().__init__()
        *others, self.last = texts
        self.others = Join(config, {name: texts[name] for name in others})
        self.embed = Embed(config, texts[self.last])

    @property
    def table(self) -> Tensor | None:
        """The vectors of the vocabulary that the last input is made of, if it is."""
        return self.embed.table

    @property
    def room(self) -> int | None:
        """How many positions the last input has."""
        return self.embed.room

    def room_of(self, name: str) -> int | None:
        """How many positions one of them has."""
        return self.embed.room if name == self.last else self.others.room_of(name)

    def read(self, given: Any) -> Embedded:
        """The vectors of the last input, with those of the others beside them."""
        check_inputs(given, [*self.others.parts, self.last])
        context = self.others.read({name: given[name] for name in self.others.parts})
        return self.embed.read(given[self.last])._replace(context=context)

    def sample(self, rows: int, length: int, **how: Any) -> dict[str, Input]:
        """Inputs at random: of `length` vectors the last, and as many of the others together."""
        return {**self.others.sample(rows, length, **how), self.last: self.embed.sample(rows, length, **how)}


def check_inputs(given: Any, names: Iterable[str]) -> None:
    """Refuses other inputs than those that the model was made for, or of different batches."""
    known = list(names)
    if not isinstance(given, Mapping):
        raise SaccadeError(f"this model reads several inputs: give a table of them, {', '.join(known)}")
    for name in given:
        if name not in known:
            raise SaccadeError(f"this model reads no input {name!r}; {nearest(str(name), known)}")
    for name in known:
        if name not in given:
            raise SaccadeError(f"this model reads {', '.join(known)}; the input {name!r} is missing")
    rows = {name: each.rows if isinstance(each, Input) else len(each) for name, each in given.items()}
    if len(set(rows.values())) > 1:
        got = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise SaccadeError(f"inputs that are joined have as many rows each; got {got}")


def as_embed(config: ModelConfig) -> Embed | Join | Context:
    """The embedding of a stack, or of several inputs."""
    return JOINS[config.join](config, config.embed) if isinstance(config.embed, dict) else Embed(config, config.embed)


def _segments_or_zeros(each: Embedded) -> Tensor:
    """The segments (B,T) of a part; where it has none, the first kind."""
    return torch.zeros_like(each.vectors[..., 0], dtype=torch.long) if each.segments is None else each.segments


def _places(read: list[Embedded]) -> Tensor | None:
    """Where all vectors stand, (B or 1,T) or (B or 1,T,2); None: where none of the inputs says."""
    known = [each.places for each in read if each.places is not None]
    if not known:
        return None
    if len({each.dim() for each in known}) > 1:
        raise SaccadeError("inputs that are joined have places on as many axes; some here have one, others two")
    given = [_counted_places(each, known[0]) if each.places is None else each.places for each in read]
    most = max(map(len, given))
    return torch.cat([each.expand(most, *each.shape[1:]) for each in given], 1)


def _counted_places(each: Embedded, like: Tensor) -> Tensor:
    """Places 0, 1, 2 ... for a part without any; beside others on two axes, the same on both (Wang et al. 2024)."""
    steps = torch.arange(each.vectors.shape[1], device=like.device, dtype=like.dtype)
    return steps.view(1, -1) if like.dim() == 2 else steps.view(1, -1, 1).expand(1, -1, 2)


def _is_real(each: Embedded) -> Tensor:
    """Which vectors of a part are no padding, (B,T)."""
    B, T, device = *each.vectors.shape[:2], each.vectors.device
    if each.padding is None:
        return torch.ones(B, T, dtype=torch.bool, device=device)
    held, steps = each.padding.held(T, device).view(-1, 1), torch.arange(T, device=device)
    return (steps < held if each.padding.side == "right" else steps >= T - held).expand(B, T)


def _reorder(x: Tensor, order: Tensor) -> Tensor:
    """x (B,T,...) with the positions of each row in that order (B,T)."""
    return x[torch.arange(len(x), device=x.device).view(-1, 1), order]


JOINS: dict[str, Callable[[ModelConfig, Mapping[str, str]], Join | Context]] = {"one": Join, "context": Context}
