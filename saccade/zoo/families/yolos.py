"""YOLOS (Fang et al. 2021): a ViT whose registers, called detection tokens there, ask for an object each.

Their tokens stand behind the patches, ours before them; attention does not know the order, and positions go along.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.config import ModelConfig
from saccade.zoo.families.part import weight_and_bias
from saccade.zoo.families.picture import rows_extras, rows_layer, rows_patches, sides, square
from saccade.zoo.families.vit import VIT
from saccade.zoo.family import Family, Row

REGISTERS, PIXELS = 100, (512, 864)  # of a folder that does not say how many, or how large its pictures are


def _read_yolos(options: dict[str, Any]) -> dict[str, Any]:
    count, n = options.get("num_detection_tokens", REGISTERS), square(options, 16)
    height, width = (side // n for side in sides(options, "image_size", PIXELS))  # what is left over, theirs leaves out
    detects = (options.get("architectures") or [""])[0].endswith("Detection")
    return {
        **VIT.read({**options, "image_size": [height * n, width * n]}),
        "registers": count,
        "position": f"learned({(height, width)!r}, before={1 + count})",
        "layer_positions": options.get("use_mid_position_embeddings", True),
        **({"named_heads": {"spans": "spans(2)"}} if detects else {}),
    }


def _write_yolos(config: ModelConfig) -> dict[str, Any]:
    found = VIT.write(config)
    return {
        **found,
        "image_size": list(sides(found, "image_size", PIXELS)),
        "num_detection_tokens": config.registers,
        "use_mid_position_embeddings": config.layer_positions,
    }


def _rows_yolos(config: ModelConfig) -> Iterable[Row]:
    rows = [*rows_patches(), *rows_extras(config, "detection_tokens", behind=config.registers)]
    if config.layer_positions:
        mid = "encoder.mid_position_embeddings"
        rows += [Row(mid, "encoder.positions.weight", behind=config.registers)]
    rows += rows_layer("encoder.layer.{}", "encoder.blocks.{}") + weight_and_bias("layernorm", "encoder.norm")
    rows += weight_and_bias("pooler.dense", "pooler") if config.pooler else []
    heads = () if config.head is None else (("class_labels_classifier", "head"), ("bbox_predictor", "heads.spans"))
    for theirs, ours in heads:
        for number, name in enumerate(("inner", "further", "out")):
            rows += weight_and_bias(f"{theirs}.layers.{number}", f"{ours}.{name}")
    return rows


YOLOS = Family(
    name="yolos",
    heads={"YolosForObjectDetection": "elements(n, 0.0, deep=True)", "YolosModel": None},
    prefix="vit.",
    body=("embed", "encoder", "pooler"),
    read=_read_yolos,
    write=_write_yolos,
    rows=_rows_yolos,
    used="hidden_size num_attention_heads intermediate_size layer_norm_eps hidden_act image_size patch_size "
    "num_channels num_detection_tokens use_mid_position_embeddings auxiliary_loss class_cost bbox_cost giou_cost "
    "bbox_loss_coefficient giou_loss_coefficient eos_coefficient",
    fixed={"qkv_bias": (True,)},
    zeros=("bias", "attention_bias"),
    nameless=1,  # "nothing", the last output
)
