"""`Looks`: the inspections that are kept, in a bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from saccade.look.look import Look
from saccade.serve.limit import Limits
from saccade.serve.opened import Opened
from saccade.serve.refusal import Refusal


class Inspection(NamedTuple):
    """A look with where it belongs."""

    name: str
    look: Look
    opened: Opened
    step: int

    @property
    def nbytes(self) -> int:
        """What it holds, a rollout of each side and the weights of a snapshot among it."""
        sides = sum(4 * len(side.tokens) ** 2 for side in self.look.sides.values())
        own = self.step != self.opened.run.step
        weights = sum(each.nbytes for each in self.look.model.parameters()) if own else 0
        return self.look.nbytes + sides + weights


class Looks:
    """Inspections by their ids; the oldest are forgotten when there are too many or they hold too much."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[str, Inspection] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, inspection: Inspection) -> None:
        """The newest; refuses one that is too large alone."""
        if inspection.nbytes > self._limits.look_bytes:
            most = self._limits.look_bytes >> 20
            raise Refusal(
                400, f"this look needs {inspection.nbytes >> 20} MB, and {most} are there: give a shorter input"
            )
        self._kept[inspection.name] = inspection
        self.nbytes += inspection.nbytes
        while len(self._kept) > self._limits.looks or self.nbytes > self._limits.look_bytes:
            self.forget(next(iter(self._kept)))

    def find(self, name: str) -> Inspection:
        """An inspection, which is the newest now."""
        if name not in self._kept:
            raise Refusal(404, f"no inspection is called {name[:64]!r}: it was forgotten, or never was", "id")
        self._kept.move_to_end(name)
        return self._kept[name]

    def forget(self, name: str) -> None:
        """Makes room."""
        self.nbytes -= self.find(name).nbytes
        del self._kept[name]
