"""`ContextReader`: what the last of several inputs looks at: the vectors of the others, after layers of their own."""

from __future__ import annotations

from typing import Any

from torch import nn

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.embed import Embedded
from saccade.model.pool import Pool
from saccade.model.stack import Stack


class ContextReader(nn.Module):
    """(B,S,C) -> (B,S,C) through `context` layers, which are like the encoder's but look at nothing beside themselves.
    With a `context_pool` -> (B,1,C): these vectors as one, so that nobody can look at a part of them.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        first = config.stack(decoder=False)
        own = {"encoder": config.context, "decoder": 0, "join": "one", "encoder_mixer": None, "stages": []}
        self.layers = Stack(config.model_copy(update=own), decoder=False) if config.context else None
        self.pool = None if config.context_pool == "none" else Pool(config.context_pool, first.width)

    def forward(self, read: Embedded | None) -> dict[str, Any]:
        """What a stack is given to look at, with the mask of its padding."""
        if read is None:
            raise SaccadeError("join = 'context' is of several inputs: name two of them or more ([x.NAME], or embed)")
        states, hidden = read.vectors, read.padding
        if self.layers is not None:
            states = self.layers(states, mask=hidden, places=read.places, grid=read.grid)
        if self.pool is not None:
            states, hidden = self.pool(states, hidden).unsqueeze(1), None
        return {"context": states, "context_mask": hidden}
