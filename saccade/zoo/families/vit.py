"""ViT (Dosovitskiy et al. 2021) and DeiT (Touvron et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import activation, their_activation, weight_and_bias
from saccade.zoo.families.picture import (
    patches,
    picture_options,
    rows_extras,
    rows_label,
    rows_layer,
    rows_patches,
    size_option,
    table,
)
from saccade.zoo.family import Family, Row


def _read_vit(options: dict[str, Any], class_tokens: int = 1) -> dict[str, Any]:
    width = options.get("hidden_size", 768)
    if (options.get("pooler_output_size") or width) != width:
        raise SaccadeError("config.json: a pooler_output_size that is not hidden_size is not supported")
    named = (options.get("architectures") or ["Model"])[0]
    return {
        "width": width,
        "heads": options.get("num_attention_heads", 12),
        "encoder": options.get("num_hidden_layers", 12),
        "hidden": options.get("intermediate_size", 3072),
        "epsilon": options.get("layer_norm_eps", 1e-12),
        "feed": activation(options.get("hidden_act", "gelu")),
        "embed": patches(options, 16),
        "class_tokens": class_tokens,
        "position": table(options, 16, class_tokens),
        "pool": "first",
        "pooler": named.endswith("Model"),
    }


def _read_deit(options: dict[str, Any]) -> dict[str, Any]:
    return _read_vit(options, class_tokens=2)


def _write_vit(config: ModelConfig) -> dict[str, Any]:
    return {
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.encoder,
        "intermediate_size": config.hidden or 4 * config.width,
        "layer_norm_eps": config.epsilon,
        "hidden_act": their_activation(config, "gelu"),
        "qkv_bias": True,
        **picture_options(config),
        **size_option(config),
    }


def _rows_vit(config: ModelConfig) -> Iterable[Row]:
    rows = [*rows_patches(), *rows_extras(config), *rows_layer("encoder.layer.{}", "encoder.blocks.{}")]
    rows += weight_and_bias("layernorm", "encoder.norm") + rows_label(config)
    return rows + (weight_and_bias("pooler.dense", "pooler") if config.pooler else [])


def _rows_deit(config: ModelConfig) -> Iterable[Row]:
    if not (config.head or "").startswith("taught"):
        return _rows_vit(config)
    heads = weight_and_bias("cls_classifier", "head.out") + weight_and_bias("distillation_classifier", "head.teacher")
    return [*_rows_vit(config), *heads]


VIT = Family(
    name="vit",
    heads={"ViTForImageClassification": "label(n)", "ViTModel": None},
    prefix="vit.",
    body=("embed", "encoder", "pooler"),
    read=_read_vit,
    write=_write_vit,
    rows=_rows_vit,
    used="hidden_size num_attention_heads intermediate_size layer_norm_eps hidden_act image_size patch_size "
    "num_channels pooler_output_size encoder_stride",
    fixed={"qkv_bias": (True,), "pooler_act": ("tanh",)},
    derived=r"vit\.pooler\..*",  # which published checkpoints carry beside a classifier that does not read it
    zeros=("bias", "attention_bias"),
)

DEIT = VIT._replace(
    name="deit",
    heads={
        "DeiTForImageClassification": "label(n)",
        "DeiTForImageClassificationWithTeacher": "taught(n)",
        "DeiTModel": None,
    },
    prefix="deit.",
    read=_read_deit,
    rows=_rows_deit,
    derived=r"deit\.pooler\..*",
)
