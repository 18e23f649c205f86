"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023): GPT-2 with rotary positions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.attend.position import rotary
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import activation, placed, their_activation, weight_and_bias
from saccade.zoo.family import Family, Row


def _read_neox(options: dict[str, Any]) -> dict[str, Any]:
    parallel = options.get("use_parallel_residual", True)
    return {
        "vocab": options["vocab_size"],
        "width": options["hidden_size"],
        "heads": options["num_attention_heads"],
        "decoder": options["num_hidden_layers"],
        "hidden": options["intermediate_size"],
        "order": "parallel" if parallel else "pre",
        "epsilon": options.get("layer_norm_eps", 1e-5),
        "feed": activation(options.get("hidden_act", "gelu")),
        "attention_bias": options.get("attention_bias", True),
        "position": _read_rotary(options),
        "tie": options.get("tie_word_embeddings", False),
    }


def _read_rotary(options: dict[str, Any]) -> str:
    """Only the first numbers of a head turn; older folders name the share `rotary_pct`."""
    rope = dict(options.get("rope_parameters") or {}) | dict(options.get("rope_scaling") or {})
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise SaccadeError(f"config.json: a rope scaling of gpt_neox is not supported: {rope}")
    base = float(rope.get("rope_theta") or options.get("rotary_emb_base") or 10000.0)
    share = rope.get("partial_rotary_factor", options.get("rotary_pct", 0.25))
    width = int(options["hidden_size"] // options["num_attention_heads"] * share)
    return f"rotary(half, {base!r}, {width})"


def _write_neox(config: ModelConfig) -> dict[str, Any]:
    name, found = placed(config)
    made, width = rotary(**(found if name == "rotary" else {})), config.width // config.heads
    rope = {"rope_type": "default", "rope_theta": float(made.base)}
    attention = config.bias if config.attention_bias is None else config.attention_bias
    return {
        "vocab_size": config.vocab,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.decoder,
        "intermediate_size": config.hidden or 4 * config.width,
        "use_parallel_residual": config.order == "parallel",
        "layer_norm_eps": config.epsilon,
        "hidden_act": their_activation(config, "gelu"),
        "attention_bias": bool(attention),
        "rope_parameters": rope | {"partial_rotary_factor": (made.width or width) / width},
        "rope_scaling": None,  # overwrites what an older folder had
        "tie_word_embeddings": config.tie,
    }


def _rows_neox(config: ModelConfig) -> Iterable[Row]:
    layer, ours = "layers.{}", "decoder.blocks.{}"
    attention = f"{ours}.attention"
    stacked = f"{attention}.query + {attention}.key + {attention}.value"
    attending = weight_and_bias(f"{layer}.attention.query_key_value", stacked)
    attending = [row._replace(interleaved=config.heads) for row in attending]
    attending += weight_and_bias(f"{layer}.attention.dense", f"{attention}.out")
    biased = config.bias if config.attention_bias is None else config.attention_bias
    return [
        Row("embed_in.weight", "embed.tokens.weight"),
        *weight_and_bias(f"{layer}.input_layernorm", f"{ours}.attention_norm"),
        *(row for row in attending if biased or row.theirs.endswith("weight")),
        *weight_and_bias(f"{layer}.post_attention_layernorm", f"{ours}.feed_norm"),
        *weight_and_bias(f"{layer}.mlp.dense_h_to_4h", f"{ours}.feed.up"),
        *weight_and_bias(f"{layer}.mlp.dense_4h_to_h", f"{ours}.feed.down"),
        *weight_and_bias("final_layer_norm", "decoder.norm"),
        *([] if config.tie or config.head is None else [Row("embed_out.weight", "head.weight")]),
    ]


NEOX = Family(
    name="gpt_neox",
    heads={"GPTNeoXForCausalLM": "vocabulary", "GPTNeoXModel": None},
    prefix="gpt_neox.",
    body=("embed", "decoder"),
    read=_read_neox,
    write=_write_neox,
    rows=_rows_neox,
    used="vocab_size hidden_size num_attention_heads num_hidden_layers intermediate_size use_parallel_residual "
    "layer_norm_eps hidden_act attention_bias rope_parameters rope_scaling rotary_emb_base rotary_pct "
    "tie_word_embeddings",
    fixed={"is_decoder": (False, True)},
    derived=r"(gpt_neox\.)?layers\.\d+\.attention\.(rotary_emb\.inv_freq|(masked_)?bias)",
    copies={r"embed_out\.weight": "embed.tokens.weight"},
    renamed={"lm_head.weight": "embed_out.weight"},
    zeros=("bias",),
)
