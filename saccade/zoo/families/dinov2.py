"""DINOv2 (Oquab et al. 2023), and with registers (Darcet et al. 2024).

Their mask token, which only pretraining reads, has no place here: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from saccade import spec
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.scale import SCALES
from saccade.zoo.families.part import activation, their_activation, weight_and_bias
from saccade.zoo.families.picture import (
    patches,
    picture_options,
    rows_attention,
    rows_extras,
    rows_label,
    rows_patches,
    size_option,
    table,
)
from saccade.zoo.family import Family, Row

LARGEST = 16  # ratio of hidden and width that is tried


def _read_dinov2(options: dict[str, Any]) -> dict[str, Any]:
    gated, width, ratio = (
        options.get("use_swiglu_ffn", False),
        options.get("hidden_size", 768),
        options.get("mlp_ratio", 4),
    )
    return {
        "width": width,
        "heads": options.get("num_attention_heads", 12),
        "encoder": options.get("num_hidden_layers", 12),
        "hidden": _hidden(width, ratio, gated),
        "epsilon": options.get("layer_norm_eps", 1e-6),
        "feed": "swiglu" if gated else activation(options.get("hidden_act", "gelu")),
        "scale": f"channels({float(options.get('layerscale_value', 1.0))!r})",
        "embed": patches(options, 14),
        "class_tokens": 1,
        "position": table(options, 14, 1),
        "pool": "first+mean",
    }


def _read_registers(options: dict[str, Any]) -> dict[str, Any]:
    own = {"registers": options.get("num_register_tokens", 4), "position": table(options, 14, 1, antialias=True)}
    return _read_dinov2(options) | own


def _hidden(width: int, ratio: float, gated: bool) -> int:
    """The width inside a feed-forward; one with a gate has two thirds of it, rounded up to a multiple of 8."""
    hidden = int(width * ratio)
    return (int(hidden * 2 / 3) + 7) // 8 * 8 if gated else hidden


def _ratio(config: ModelConfig) -> int:
    """hidden / width as config.json has it, a whole number."""
    hidden, gated = config.hidden or 4 * config.width, config.feed == "swiglu"
    found = (each for each in range(1, LARGEST + 1) if _hidden(config.width, each, gated) == hidden)
    ratio = next(found, None)
    if ratio is None:
        raise SaccadeError(f"hidden is {hidden} here, and there a whole multiple of the width")
    return ratio


def _write_dinov2(config: ModelConfig) -> dict[str, Any]:
    name, found = (None, {}) if config.scale is None else spec.arguments(config.scale, SCALES, "scale")
    return {
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.encoder,
        "mlp_ratio": _ratio(config),
        "layer_norm_eps": config.epsilon,
        "hidden_act": their_activation(config, "gelu"),
        "use_swiglu_ffn": config.feed == "swiglu",
        "layerscale_value": found["initial"] if name == "channels" else 1.0,
        "qkv_bias": True,
        "use_mask_token": False,
        **picture_options(config),
        **size_option(config),
    }


def _write_registers(config: ModelConfig) -> dict[str, Any]:
    return _write_dinov2(config) | {"num_register_tokens": config.registers, "use_mask_token": None}


def _rows_dinov2(config: ModelConfig) -> Iterable[Row]:
    layer, ours = "encoder.layer.{}", "encoder.blocks.{}"
    plain = [("fc1", f"{ours}.feed.up"), ("fc2", f"{ours}.feed.down")]
    gated = [("weights_in", f"{ours}.feed.gate + {ours}.feed.up"), ("weights_out", f"{ours}.feed.down")]
    return [
        *rows_patches(),
        *rows_extras(config),
        *rows_attention(layer, ours),
        *weight_and_bias(f"{layer}.norm1", f"{ours}.attention_norm"),
        *weight_and_bias(f"{layer}.norm2", f"{ours}.feed_norm"),
        Row(f"{layer}.layer_scale1.lambda1", f"{ours}.attention_scale.weight"),
        Row(f"{layer}.layer_scale2.lambda1", f"{ours}.feed_scale.weight"),
        *(
            row
            for name, own in (gated if config.feed == "swiglu" else plain)
            for row in _rows_product(layer, name, own)
        ),
        *weight_and_bias("layernorm", "encoder.norm"),
        *rows_label(config),
    ]


def _rows_product(layer: str, theirs: str, ours: str) -> list[Row]:
    return weight_and_bias(f"{layer}.mlp.{theirs}", ours)


def _mask_token(config: ModelConfig, options: dict[str, Any]) -> dict[str, Tensor]:
    """Zeros, as before training: the class with registers has no option to leave it out."""
    prefix = "" if config.head is None else REGISTERS_PREFIX
    return {f"{prefix}embeddings.mask_token": torch.zeros(1, config.width)}


REGISTERS_PREFIX = "dinov2_with_registers."
DINOV2 = Family(
    name="dinov2",
    heads={"Dinov2ForImageClassification": "label(n)", "Dinov2Model": None},
    prefix="dinov2.",
    body=("embed", "encoder"),
    read=_read_dinov2,
    write=_write_dinov2,
    rows=_rows_dinov2,
    used="hidden_size num_attention_heads mlp_ratio layer_norm_eps hidden_act image_size patch_size num_channels "
    "layerscale_value drop_path_rate use_swiglu_ffn use_mask_token apply_layernorm reshape_hidden_states stage_names "
    "out_features out_indices",
    fixed={"qkv_bias": (True,)},
    derived=r"(dinov2\.)?embeddings\.mask_token",
    zeros=("bias", "attention_bias"),
)

DINOV2_REGISTERS = DINOV2._replace(
    name="dinov2_with_registers",
    heads={"Dinov2WithRegistersForImageClassification": "label(n)", "Dinov2WithRegistersModel": None},
    prefix=REGISTERS_PREFIX,
    read=_read_registers,
    write=_write_registers,
    used=f"{DINOV2.used} num_register_tokens",
    derived=r"(dinov2_with_registers\.)?embeddings\.mask_token",
    computed=_mask_token,
)
