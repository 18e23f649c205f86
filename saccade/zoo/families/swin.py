"""Swin (Liu et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import activation, placed, their_activation, weight_and_bias
from saccade.zoo.families.picture import patches, picture_options, rows_label, rows_layer, rows_patches
from saccade.zoo.family import Family, Row


def _read_swin(options: dict[str, Any]) -> dict[str, Any]:
    width, depths, heads = (
        options.get("embed_dim", 96),
        _each_stage(options, "depths"),
        _each_stage(options, "num_heads"),
    )
    ratio, window = options.get("mlp_ratio", 4.0), options.get("window_size", 7)
    stages = range(len(depths))
    if heads != [heads[0] << stage for stage in stages]:
        told = f"num_heads = {heads} and depths = {depths}"
        raise SaccadeError(f"config.json: {told} are not supported: heads double from stage to stage here")
    if any(int(ratio * (width << stage)) != int(ratio * width) << stage for stage in stages):
        raise SaccadeError(f"config.json: mlp_ratio = {ratio!r} does not double the hidden width from stage to stage")
    return {
        "width": width,
        "heads": heads[0],
        "encoder": depths,
        "hidden": int(ratio * width),
        "epsilon": options.get("layer_norm_eps", 1e-5),
        "feed": activation(options.get("hidden_act", "gelu")),
        "embed": patches(options, 4),
        "norm_embedding": True,
        "window": window,
        "position": f"offsets({(window, window)!r})",
        "pool": "mean",
    }


def _each_stage(options: dict[str, Any], name: str) -> list[int]:
    """An option that has a number for each stage."""
    found = options[name]
    if not isinstance(found, list | tuple) or not found or not all(type(each) is int and each > 0 for each in found):
        raise SaccadeError(f"config.json: {name} = {found!r} should be a list of whole numbers, one for each stage")
    return list(found)


def _write_swin(config: ModelConfig) -> dict[str, Any]:
    depths = config.stages or [config.encoder]
    name, found = placed(config)
    window = found["sides"][0] if name == "offsets" else 7
    return {
        "embed_dim": config.width,
        "depths": depths,
        "num_heads": [config.heads << stage for stage in range(len(depths))],
        "mlp_ratio": (config.hidden or 4 * config.width) / config.width,
        "layer_norm_eps": config.epsilon,
        "hidden_act": their_activation(config, "gelu"),
        "window_size": config.window or window,
        "qkv_bias": True,
        "use_absolute_embeddings": False,
        **picture_options(config),
    }


def _rows_swin(config: ModelConfig) -> Iterable[Row]:
    """Their layers are counted from the beginning of each stage, and ours from the first one."""
    rows = [*rows_patches(), *weight_and_bias("embeddings.norm", "embed.norm")]
    for stage, (depth, end) in enumerate(zip(config.stages, accumulate(config.stages), strict=True)):
        for inside in range(depth):
            layer, ours = f"encoder.layers.{stage}.blocks.{inside}", f"encoder.blocks.{end - depth + inside}"
            rows += rows_layer(layer, ours, "self")
            table = "attention.self.relative_position_bias_table"
            rows += [Row(f"{layer}.{table}", f"{ours}.attention.position.weight")]
    for stage in range(len(config.stages) - 1):
        between, ours = f"encoder.layers.{stage}.downsample", f"encoder.merges.{stage}"
        rows += [Row(f"{between}.reduction.weight", f"{ours}.out.weight")]
        rows += weight_and_bias(f"{between}.norm", f"{ours}.norm")
    return rows + weight_and_bias("layernorm", "encoder.norm") + rows_label(config)


SWIN = Family(
    name="swin",
    heads={"SwinForImageClassification": "label(n)", "SwinModel": None},
    prefix="swin.",
    body=("embed", "encoder"),
    read=_read_swin,
    write=_write_swin,
    rows=_rows_swin,
    used="embed_dim hidden_size depths num_heads num_layers mlp_ratio layer_norm_eps hidden_act window_size image_size "
    "patch_size num_channels drop_path_rate encoder_stride stage_names out_features out_indices",
    # The norms of the embedding and between stages have this value whatever layer_norm_eps says.
    fixed={"qkv_bias": (True,), "use_absolute_embeddings": (False,), "layer_norm_eps": (1e-5,)},
    derived=r"(swin\.)?encoder\.layers\.\d+\.blocks\.\d+\.attention\.self\.relative_position_index",
    zeros=("bias", "attention_bias"),
)
