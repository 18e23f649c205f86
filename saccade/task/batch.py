"""A batch: what a model is shown, and what it should say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.stack import Memory


@dataclass(frozen=True)
class Batch:
    """x: the inputs by name, none of them where the output stands alone; given: what a decoder is shown; y: what is
    wanted; counts: how many predictions each term of its loss is a mean of.

    lane: where the batch goes on from another, which of the memories is its own; fresh: that is empty. `Carry` puts
    the memory in.
    """

    x: Mapping[str, Input]
    given: Input | None
    y: Input
    counts: Mapping[str, int]
    lane: int | None = None
    fresh: bool = False
    memory: Memory | None = None

    @property
    def count(self) -> int:
        """The predictions that stand for all: those of the first term."""
        return next(iter(self.counts.values()))

    def twice(self) -> Batch:
        """The same examples again behind themselves; what is wanted of them stays."""
        x = {name: each.twice() for name, each in self.x.items()}
        return replace(self, x=x, given=None if self.given is None else self.given.twice())

    def to(self, device: str) -> Batch:
        """The same on a device."""
        if device == "cpu":
            return self
        x = {name: each.to(device) for name, each in self.x.items()}
        return replace(self, x=x, given=None if self.given is None else self.given.to(device), y=self.y.to(device))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all that a model is shown: batches that have the same cost the same."""
        shown = [*self.x.values(), *([] if self.given is None else [self.given])]
        return tuple(tuple(value.shape) for each in shown for value in each.values.values())


def states_of(model: Model, batch: Batch) -> States:
    """The model's states for a batch."""
    return run(model, batch.x, batch.given, batch.memory)


def run(model: Model, x: Mapping[str, Input], given: Input | None, memory: Memory | None = None) -> States:
    """A model's states: of its inputs, and of what its decoder is shown, where there is one.

    Causality hides what lies behind the end of a target from all but experts, which would make room for it.
    """
    if given is not None and not model.config.experts and given.side == "right":
        given = Input(given.values, places=given.places)
    if not x:
        assert given is not None
        return model.states(given, memory=memory)
    shown = next(iter(x.values())) if len(x) == 1 else x
    return model.states(shown, given, memory=memory)
