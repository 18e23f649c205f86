"""Pegasus (Zhang et al. 2020): a text from a text, as Marian, but norms stand before each part and after each stack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from saccade.attend.position import sinusoid
from saccade.config import ModelConfig
from saccade.zoo.families.marian import MARIAN, read_translator, rows_translator, write_translator
from saccade.zoo.families.part import weight_and_bias
from saccade.zoo.family import Row


def _read_pegasus(options: dict[str, Any]) -> dict[str, Any]:
    biased = (options.get("architectures") or [""])[0] == "PegasusForConditionalGeneration"
    return read_translator(options) | {"order": "pre", "output_bias": biased}


def _write_pegasus(config: ModelConfig) -> dict[str, Any]:
    return write_translator(config) | {"pad_token_id": 0, "decoder_start_token_id": 0}


def _rows_pegasus(config: ModelConfig) -> Iterable[Row]:
    ends = [weight_and_bias(f"{stack}.layer_norm", f"{stack}.norm") for stack in ("encoder", "decoder")]
    return [*rows_translator(config), *ends[0], *ends[1]]


def _sinusoids(config: ModelConfig, options: dict[str, Any]) -> dict[str, Tensor]:
    """Both stacks' table of positions, which is part of a folder here and not in Marian."""
    empty = torch.zeros(1, options.get("max_position_embeddings", 1024), config.width, dtype=torch.float64)
    waves = sinusoid(layout="half").on_input(empty)[0]
    prefix = "" if config.head is None else MARIAN.prefix
    return {f"{prefix}{stack}.embed_positions.weight": waves.clone() for stack in ("encoder", "decoder")}


PEGASUS = MARIAN._replace(
    name="pegasus",
    heads={"PegasusForConditionalGeneration": "vocabulary", "PegasusModel": None},
    read=_read_pegasus,
    write=_write_pegasus,
    rows=_rows_pegasus,
    computed=_sinusoids,
    fixed={
        "is_decoder": (False,),
        "add_final_layer_norm": (True,),
        "normalize_before": (True,),
        "add_bias_logits": (False,),
        "extra_pos_embeddings": tuple(range(100000)),
    },
)
