"""`saccade size`: what a model weighs and costs, counted on the model itself (built on the meta device)."""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from saccade.attend.layer import Attention
from saccade.attend.position import learned
from saccade.attend.summary import linformer
from saccade.config import ModelConfig
from saccade.model.accumulator import Accumulator
from saccade.model.model import Model
from saccade.model.patches import patches
from saccade.zoo.build import build


def size(model: str | ModelConfig, *, length: int | None = None) -> dict[str, Any]:
    """Layers, width, heads, parameters; bytes in float32; FLOPs of one sequence of `length` tokens (source and target),
    or of one picture of `length` patches.

    Memory of training: weights, gradients and Adam's two moments (16 bytes a parameter), and the activations that
    backward keeps for one sequence. FLOPs: two for each multiplication of a matrix product; training counts three
    forward passes, since each product has two in its gradient.
    """
    built = build(model, device="meta")
    length = _default_length(built) if length is None else length
    found, forward = _counts(built), _flops_forward(built, length)
    parameters = found["parameters"]
    return {
        **found,
        "length": length,
        "bytes_weights": 4 * parameters,
        "bytes_training": 16 * parameters,
        "bytes_activations": activations(built, length),
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


def _default_length(model: Model) -> int:
    """The length a learned table or a summary was made for, else 512; of a picture, the patches of the usual one."""
    if hasattr(getattr(model.embed, "part", None), "sides"):
        return math.prod(_grid(model))
    return 512 if model.room is None else model.room


def _grid(model: Model) -> tuple[int, ...]:
    """The rows and columns of patches that a model of pictures was made for: those of its learned table; else the
    fewest that every stage cuts into whole windows, which is Swin's picture of 224 pixels; else 14 x 14, ViT's.
    """
    position, config = model.embed.position, model.config
    if isinstance(position, learned) and len(position.sides) == 2:
        return position.sides
    side = config.window << max(len(config.stages) - 1, 0)
    return (side, side) if side else (14, 14)


def _flops_forward(model: Model, length: int) -> int:
    """The FLOPs of one pass, counted while the model runs on meta tensors, which have shapes and no values."""
    both = model.encoder is not None and model.decoder is not None
    x, y = (embed.sample(1, length, device="meta") for embed in (model.embed, model.target_embed))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(x, y if both else None)
    return counter.get_total_flops()


def activations(model: Model, length: int) -> int:
    """Bytes that the backward pass needs: the input of every product and norm, and q, k, v of the fused kernel."""
    total, kept = Fraction(), 0
    for module, share in _modules(model, length):
        total += share * _each_position(module, length)
        if isinstance(module, Attention) and isinstance(module.summary, linformer):
            kept += 2 * module.summary.slots * module.kv_heads * module.head_width  # whatever the length
    return int(4 * (total * length + kept))


def _modules(model: Model, length: int) -> Iterator[tuple[nn.Module, Fraction]]:
    """Every module, and the share of all positions that it computes: after each stage a quarter of them is left, and of
    pairs there are as many times more as there are positions.
    """
    firsts = [] if model.encoder is None else model.encoder.firsts
    for name, module in model.named_modules():
        place = BLOCK.match(name)
        stage = bisect(firsts, int(place[1])) if place else 0
        yield module, Fraction(length if name.startswith("encoder.pairs.") else 1, 4**stage)


def _each_position(module: nn.Module, length: int) -> int:
    """The numbers that a module keeps for each position of a sequence of so many."""
    match module:
        case nn.Linear():
            return module.in_features
        case nn.RNNBase():  # x and h, the gates, and the cell of an LSTM
            gates = {nn.RNN: 2, nn.GRU: 4, nn.LSTM: 6}[type(module)]
            return module.input_size + gates * module.hidden_size
        case nn.Conv1d() | nn.Conv2d():
            return module.in_channels + module.out_channels
        case patches():
            return module.channels * module.n**2
        case Accumulator():
            return 2 * module.width * max(1, (length - 1).bit_length())  # the passes of its scan
        case nn.LayerNorm() | nn.RMSNorm():
            return module.normalized_shape[0]
        case Attention():
            return (module.heads + 2 * module.kv_heads) * module.head_width
    return 0


BLOCK = re.compile(r"encoder\.blocks\.(\d+)")
