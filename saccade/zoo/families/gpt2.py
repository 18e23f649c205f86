"""GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.zoo.families.part import (
    activation,
    rows_decoder_head,
    table_length,
    their_activation,
    weight_and_bias,
)
from saccade.zoo.family import Family, Row


def _read_gpt2(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "vocab": options["vocab_size"],
        "width": options["n_embd"],
        "heads": options["n_head"],
        "decoder": options["n_layer"],
        "hidden": options.get("n_inner") or 4 * options["n_embd"],
        "epsilon": options.get("layer_norm_epsilon", 1e-5),
        "feed": activation(options.get("activation_function", "gelu_new")),
        "position": f"learned({options['n_positions']})",
        "tie": options.get("tie_word_embeddings", True),
    }


def _write_gpt2(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab,
        "n_embd": config.width,
        "n_head": config.heads,
        "n_layer": config.decoder,
        "n_inner": config.hidden,
        "n_positions": table_length(config),
        "layer_norm_epsilon": config.epsilon,
        "activation_function": their_activation(config, "gelu_new"),
        "tie_word_embeddings": config.tie,
        "scale_attn_by_inverse_layer_idx": False,  # it was folded in
    }


def _fold(options: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """With scale_attn_by_inverse_layer_idx, layer n divides its scores by n (from 1 on): so are its queries here."""
    if not options.get("scale_attn_by_inverse_layer_idx"):
        return tensors
    return {name: _divided(name, tensor) for name, tensor in tensors.items()}


def _divided(name: str, tensor: Tensor) -> Tensor:
    """Queries, keys and values of a layer, (C,3C) or (3C,), with the queries divided by its number; others as is."""
    found = re.fullmatch(r"(?:transformer\.)?h\.(\d+)\.attn\.c_attn\.(?:weight|bias)", name)
    if found is None:
        return tensor
    query, *others = tensor.chunk(3, -1)
    return torch.cat((query / (int(found[1]) + 1), *others), -1)


def _rows_gpt2(config: ModelConfig) -> Iterable[Row]:
    block, ours = "h.{}", "decoder.blocks.{}"
    attention = f"{ours}.attention"
    stacked = f"{attention}.query + {attention}.key + {attention}.value"
    return [
        Row("wte.weight", "embed.tokens.weight"),
        Row("wpe.weight", "embed.position.weight"),
        *weight_and_bias(f"{block}.ln_1", f"{ours}.attention_norm"),
        *weight_and_bias(f"{block}.attn.c_attn", stacked, turned=True),
        *weight_and_bias(f"{block}.attn.c_proj", f"{attention}.out", turned=True),
        *weight_and_bias(f"{block}.ln_2", f"{ours}.feed_norm"),
        *weight_and_bias(f"{block}.mlp.c_fc", f"{ours}.feed.up", turned=True),
        *weight_and_bias(f"{block}.mlp.c_proj", f"{ours}.feed.down", turned=True),
        *weight_and_bias("ln_f", "decoder.norm"),
        *rows_decoder_head(config),
    ]


GPT2 = Family(
    name="gpt2",
    heads={
        "GPT2LMHeadModel": "vocabulary",
        "GPT2ForSequenceClassification": "label(n, bare=True)",
        "GPT2Model": None,
    },
    prefix="transformer.",
    body=("embed", "decoder"),
    read=_read_gpt2,
    write=_write_gpt2,
    rows=_rows_gpt2,
    used="vocab_size n_embd n_head n_layer n_inner n_positions layer_norm_epsilon activation_function "
    "tie_word_embeddings scale_attn_by_inverse_layer_idx",
    fixed={
        "scale_attn_weights": (True,),
        "add_cross_attention": (False,),
        "reorder_and_upcast_attn": (False, True),  # the same numbers in another order
    },
    derived=r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias",
    copies={r"lm_head\.weight": "embed.tokens.weight"},
    zeros=("bias", "attention_bias"),
    fold=_fold,
)
