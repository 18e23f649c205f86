"""`build`: a model from a name or a configuration, with random weights."""

from __future__ import annotations

from typing import Any

import torch

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError
from saccade.model.model import Model
from saccade.zoo.capacity import may_be_large, out_of_memory, refuse_larger
from saccade.zoo.names import named


def build(model: str | ModelConfig, *, head: str | None = None, device: str | None = None, **changes: Any) -> Model:
    """A model with random weights. `head` adds a head to a body, `changes` replace fields; device="meta" costs nothing.

    build("gpt2", head="vocabulary")    build("bert-base", vocab=1000, encoder=2)    build(ModelConfig(...))
    """
    if isinstance(model, str):
        config = named(model)
    elif isinstance(model, ModelConfig):
        config = model
    else:
        raise SaccadeError(f"build takes a name or a ModelConfig, not {type(model).__name__}")
    if head is not None:
        changes["head"] = head
    if changes:
        config = read(ModelConfig, config.model_dump() | changes)
    if device is None:
        return _drawn(config)
    with torch.device(device):
        return Model(config)


def _drawn(config: ModelConfig) -> Model:
    """The model with its weights; refuses one that does not fit into memory, before it is built where that is seen."""
    if may_be_large(config):
        refuse_larger(config, 4, "weights")
    try:
        return Model(config)
    except (RuntimeError, MemoryError) as problem:
        if not out_of_memory(problem):
            raise
        refuse_larger(config, 4, "weights")
        raise
