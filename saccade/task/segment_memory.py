"""`SegmentMemory`: what a model remembers from one batch to the next (Dai et al. 2019). Whoever walks through a corpus
makes one and owns it.

The states were computed with the weights of earlier steps, from still earlier states, and cannot be computed again: a
checkpoint holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from saccade.model.model import Model
from saccade.model.stack import Memory
from saccade.task.batch import Batch


class SegmentMemory:
    """A memory for each lane of a walk; empty where batches do not continue one another."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.memories: dict[int, Memory] = {}

    def attach(self, batch: Batch) -> Batch:
        """The batch with the memory of its lane, which its loss then adds to."""
        if batch.lane is None:
            return batch
        if batch.fresh or batch.lane not in self.memories:
            self.memories[batch.lane] = self.model.memory()
        return replace(batch, memory=self.memories[batch.lane])

    def clear(self) -> None:
        """Forgets everything: after a broken step the states may not be finite either."""
        self.memories = {}

    def state(self) -> dict[str, Tensor]:
        """What each layer remembers in each lane, (B,M,C)."""
        return {
            f"{lane}.{layer}": states
            for lane, memory in self.memories.items()
            for layer, states in memory.states.items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes over what `state` gave."""
        self.clear()
        device = self.model.device
        for name, states in state.items():
            lane, layer = map(int, name.split("."))
            memory = self.memories.setdefault(lane, self.model.memory())
            memory.states[layer] = states.to(device)
