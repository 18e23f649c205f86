"""`Carry`: what a model remembers from one batch to the next (Dai et al. 2019). Whoever walks makes and owns it.

The states were computed with the weights of earlier steps, and those from still earlier states: nothing but the states
themselves says what they are, so a checkpoint holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from saccade.model.model import Model
from saccade.model.stack import Memory
from saccade.task.batch import Batch


class Carry:
    """A memory for each lane of a walk; none where batches do not go on from one another."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.memories: dict[int, Memory] = {}

    def along(self, batch: Batch) -> Batch:
        """The batch with the memory of its lane, which its loss then adds to."""
        if batch.lane is None:
            return batch
        if batch.fresh or batch.lane not in self.memories:
            self.memories[batch.lane] = self.model.memory()
        return replace(batch, memory=self.memories[batch.lane])

    def empty(self) -> None:
        """Forgets everything: after a step that broke, whose states may be broken too."""
        self.memories = {}

    def state(self) -> dict[str, Tensor]:
        """What each layer remembers in each lane, (B,M,C)."""
        return {
            f"{lane}.{layer}": states
            for lane, memory in self.memories.items()
            for layer, states in memory.states.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Goes on from what `state` gave."""
        self.empty()
        device = self.model.device
        for name, states in state.items():
            lane, layer = map(int, name.split("."))
            memory = self.memories.setdefault(lane, self.model.memory())
            memory.states[layer] = states.to(device)
