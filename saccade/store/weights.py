"""Weights from the disk as a model."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.decode.quantise import quantise
from saccade.error import SaccadeError
from saccade.model.model import Model


def model_of(
    config: ModelConfig,
    weights: dict[str, Tensor],
    source: str,
    dtype: torch.dtype | None = None,
    kind: str | None = None,
) -> Model:
    """A model with exactly these weights, ready to use; source: what an error calls them; kind: what they are quantised
    to. It is made on the meta device, so that no weights are drawn and thrown away.
    """
    with torch.device("meta"):
        model = Model(config)
    model = model if kind is None else quantise(model, kind)
    weights = weights if dtype is None else {name: each.to(dtype) for name, each in weights.items()}
    names = model.tensors().keys()
    if names != weights.keys():
        raise SaccadeError(f"{source}: the weights are those of another model ({sorted(names ^ weights.keys())[0]})")
    for name, tensor in weights.items():
        parent, _, last = name.rpartition(".")
        module = model.get_submodule(parent)
        kept = tensor if last in module._buffers else torch.nn.Parameter(tensor, requires_grad=kind is None)
        setattr(module, last, kept)
    model.tie()
    return model.eval()


def compact(tensor: Tensor) -> Tensor:
    """The tensor with storage of its own: quantised projections may be views of one large tensor."""
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()
