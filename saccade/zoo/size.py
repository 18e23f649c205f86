"""`saccade size`: what a model weighs and costs, counted on the model itself (built on the meta device)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from saccade.attend.layer import Attention
from saccade.attend.summary import linformer
from saccade.config import ModelConfig
from saccade.model.memory import MemoryMixer
from saccade.model.model import Model
from saccade.zoo.build import build


def size(model: str | ModelConfig, *, length: int | None = None) -> dict[str, Any]:
    """Layers, width, heads, parameters; bytes in float32; FLOPs of one sequence of `length` tokens (source and target).

    Memory of training: weights, gradients and Adam's two moments (16 bytes a parameter), and the activations that
    backward keeps for one sequence. FLOPs: two for each multiplication of a matrix product; training counts three
    forward passes, since each product has two in its gradient.
    """
    built = build(model, device="meta")
    length = _length(built) if length is None else length
    found, forward = _counts(built), _forward(built, length)
    parameters = found["parameters"]
    return {
        **found,
        "length": length,
        "bytes_weights": 4 * parameters,
        "bytes_training": 16 * parameters,
        "bytes_activations": _activations(built, length),
        "flops_forward": forward,
        "flops_training": 3 * forward,
    }


def counts(model: str | ModelConfig) -> dict[str, int]:
    """Layers, width, heads and parameters alone, which takes no pass through the model."""
    return _counts(build(model, device="meta"))


def _counts(model: Model) -> dict[str, int]:
    config = model.config
    return {
        "layers": config.encoder + config.decoder,
        "width": config.width,
        "heads": config.heads,
        "parameters": sum(each.numel() for each in model.parameters()),
    }


def _length(model: Model) -> int:
    """The length a learned table or a summary was made for, else 512."""
    return 512 if model.room is None else model.room


def _forward(model: Model, length: int) -> int:
    """The matrix products of one pass, counted while the model runs on tensors that have shapes alone."""
    both = model.encoder is not None and model.decoder is not None
    x, y = (embed.sample(1, length, device="meta") for embed in (model.embed, model.target_embed))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(x, y if both else None)
    return counter.get_total_flops()


def _activations(model: Model, length: int) -> int:
    """Bytes that backward keeps: the input of every product and norm, and q, k, v; the fused kernel keeps no more."""
    total = kept = 0
    for module in model.modules():
        if isinstance(module, nn.Linear):
            total += module.in_features
        elif isinstance(module, nn.RNNBase):  # x and h, the gates, and the cell of an LSTM
            gates = {nn.RNN: 2, nn.GRU: 4, nn.LSTM: 6}[type(module)]
            total += module.input_size + gates * module.hidden_size
        elif isinstance(module, nn.Conv1d):
            total += module.in_channels + module.out_channels
        elif isinstance(module, MemoryMixer):
            total += 2 * module.width * max(1, (length - 1).bit_length())  # the passes of its scan
        elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
            total += module.normalized_shape[0]
        elif isinstance(module, Attention):
            total += (module.heads + 2 * module.kv_heads) * module.head_width
            if isinstance(module.summary, linformer):
                kept += 2 * module.summary.slots * module.kv_heads * module.head_width  # whatever the length
    return 4 * (total * length + kept)
