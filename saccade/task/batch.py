"""A batch: what a model is shown, and what it should predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.model.stack import Memory


@dataclass(frozen=True)
class Batch:
    """x: the inputs by name, empty for a Y without an X; given: what a decoder is shown; y: what is wanted; counts: how
    many predictions each term of the loss is a mean of.

    lane: of a batch that continues another, which memory is its own; fresh: whether that memory is still empty.
    `SegmentMemory` attaches the memory.
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
        """The predictions of the first term of the loss, which stand for the batch."""
        return next(iter(self.counts.values()))

    def twice(self) -> Batch:
        """Every input twice, the copies behind the originals; y stays as it is."""
        x = {name: each.twice() for name, each in self.x.items()}
        return replace(self, x=x, given=None if self.given is None else self.given.twice())

    def to(self, device: str) -> Batch:
        """The batch on a device."""
        if device == "cpu":
            return self
        x = {name: each.to(device) for name, each in self.x.items()}
        return replace(self, x=x, given=None if self.given is None else self.given.to(device), y=self.y.to(device))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all that a model is shown: batches with equal shapes cost the same."""
        shown = [*self.x.values(), *([] if self.given is None else [self.given])]
        return tuple(tuple(value.shape) for each in shown for value in each.values.values())


def states_of(model: Model, batch: Batch) -> States:
    """The model's states for a batch."""
    return run(model, batch.x, batch.given, batch.memory)


def run(model: Model, x: Mapping[str, Input], given: Input | None, memory: Memory | None = None) -> States:
    """A model's states: of its inputs, and of what its decoder is shown, where it has one."""
    # A causal decoder never sees the padding behind a target's end, so its lengths are dropped, which lets attention
    # skip the mask. Experts need them: padding would take up their capacity.
    if given is not None and not model.config.experts and given.side == "right":
        given = Input(given.values, places=given.places)
    if not x:
        assert given is not None
        return model.states(given, memory=memory)
    shown = next(iter(x.values())) if len(x) == 1 else x
    return model.states(shown, given, memory=memory)
