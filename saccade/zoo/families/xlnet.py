"""XLNet (Yang et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.config import ModelConfig
from saccade.zoo.families.part import activation, their_activation, weight_and_bias
from saccade.zoo.family import Family, Row


def _read_xlnet(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "vocab": options["vocab_size"],
        "width": options["d_model"],
        "heads": options["n_head"],
        "head_width": options.get("d_head") or options["d_model"] // options["n_head"],
        "encoder": options["n_layer"],
        "hidden": options["d_inner"],
        "order": "post",
        "epsilon": options.get("layer_norm_eps", 1e-12),
        "feed": activation(options.get("ff_activation", "gelu")),
        "attention_bias": False,
        "position": "xl(True, half)",
        "memory": options.get("mem_len") or 0,
        "streams": 2,
        "tie": options.get("tie_word_embeddings", True),
        "output_bias": (options.get("architectures") or [""])[0] == "XLNetLMHeadModel",
    }


def _write_xlnet(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab,
        "d_model": config.width,
        "n_head": config.heads,
        "d_head": config.head_width or config.width // config.heads,
        "n_layer": config.encoder,
        "d_inner": config.hidden or 4 * config.width,
        "layer_norm_eps": config.epsilon,
        "ff_activation": their_activation(config, "gelu"),
        "mem_len": config.memory or None,
        "tie_word_embeddings": config.tie,
    }


def _rows_xlnet(config: ModelConfig) -> Iterable[Row]:
    layer, ours = "layer.{}", "encoder.blocks.{}"
    theirs, attention = f"{layer}.rel_attn", f"{ours}.attention"
    rows = [
        Row("word_embedding.weight", "embed.tokens.weight"),
        Row("mask_emb", "question", leading=2),
        Row(f"{theirs}.q", f"{attention}.query.weight", turned=True, heads=config.heads),
        Row(f"{theirs}.k", f"{attention}.key.weight", turned=True, heads=config.heads),
        Row(f"{theirs}.v", f"{attention}.value.weight", turned=True, heads=config.heads),
        Row(f"{theirs}.o", f"{attention}.out.weight", heads=config.heads),
        Row(f"{theirs}.r", f"{attention}.position.distance.weight", turned=True, heads=config.heads),
        Row(f"{theirs}.r_w_bias", f"{attention}.position.content"),
        Row(f"{theirs}.r_r_bias", f"{attention}.position.place"),
        Row(f"{theirs}.r_s_bias", f"{attention}.position.segment_bias"),
        Row(f"{theirs}.seg_embed", f"{attention}.position.segments"),
        *weight_and_bias(f"{theirs}.layer_norm", f"{ours}.attention_norm"),
        *weight_and_bias(f"{layer}.ff.layer_1", f"{ours}.feed.up"),
        *weight_and_bias(f"{layer}.ff.layer_2", f"{ours}.feed.down"),
        *weight_and_bias(f"{layer}.ff.layer_norm", f"{ours}.feed_norm"),
    ]
    rows += [] if config.head is None else [Row("lm_loss.bias", "head.bias")]
    return rows + ([] if config.tie or config.head is None else [Row("lm_loss.weight", "head.weight")])


XLNET = Family(
    name="xlnet",
    heads={"XLNetLMHeadModel": "vocabulary", "XLNetModel": None},
    prefix="transformer.",
    body=("embed", "encoder", "question"),
    read=_read_xlnet,
    write=_write_xlnet,
    rows=_rows_xlnet,
    used="vocab_size d_model n_head d_head n_layer d_inner layer_norm_eps ff_activation mem_len tie_word_embeddings "
    "use_mems_eval use_mems_train start_n_top end_n_top",
    fixed={
        "attn_type": ("bi",),
        "bi_data": (False,),
        "clamp_len": (-1, None),
        "same_length": (False,),
        "reuse_len": (None,),
        "untie_r": (True,),
    },
    copies={r"lm_loss\.weight": "embed.tokens.weight"},
    zeros=("output_bias",),
)
