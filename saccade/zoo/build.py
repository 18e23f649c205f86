"""`build`: a model from a name or a configuration, with random weights."""

from __future__ import annotations

from typing import Any

import torch

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError
from saccade.model.model import Model
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
        return Model(config)
    with torch.device(device):
        return Model(config)
