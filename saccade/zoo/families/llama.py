"""LLaMA (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen 2 and 3 (Yang et al. 2024, 2025)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import placed
from saccade.zoo.family import Family, Row


def _rotary(options: dict[str, Any]) -> str:
    rope = dict(options.get("rope_parameters") or {})
    rope |= options.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise SaccadeError(f"config.json: the rope scaling {kind!r} is not supported")
    if rope.get("partial_rotary_factor", 1) != 1:
        raise SaccadeError("config.json: partial_rotary_factor is not supported")
    return f"rotary(half, {float(rope.get('rope_theta', options.get('rope_theta', 10000.0)))!r})"


def _read_llama(options: dict[str, Any]) -> dict[str, Any]:
    heads = options["num_attention_heads"]
    head_width = options.get("head_dim") or options["hidden_size"] // heads
    bias = options.get("attention_bias", False)
    windows = _windows(options)
    return windows | {
        "vocab": options["vocab_size"],
        "width": options["hidden_size"],
        "heads": heads,
        "kv_heads": options.get("num_key_value_heads") or heads,
        "head_width": head_width,
        "decoder": options["num_hidden_layers"],
        "hidden": options["intermediate_size"],
        "norm": "rms",
        "epsilon": options.get("rms_norm_eps", 1e-6),
        "feed": "swiglu",
        "bias": False,
        "attention_bias": bias,
        "position": _rotary(options),
        "tie": options.get("tie_word_embeddings", False),
    }


def _windows(options: dict[str, Any]) -> dict[str, Any]:
    """Mistral slides every layer's window, Qwen those that `layer_types` names."""
    window = options.get("sliding_window")
    kinds = options.get("layer_types") or []
    if options.get("use_sliding_window") and not kinds:  # configurations from before `layer_types`
        first, depth = options.get("max_window_layers", 0), options["num_hidden_layers"]
        kinds = ["sliding_attention" if number >= first else "full_attention" for number in range(depth)]
    if options["model_type"] == "mistral":
        return {"mask": f"window({window})"} if window else {}
    if "sliding_attention" not in kinds:
        return {}
    letters = "".join("s" if kind == "sliding_attention" else "f" for kind in kinds)
    return {"pattern": letters, "masks": {"s": f"window({window})", "f": "everyone"}}


def _read_qwen2(options: dict[str, Any]) -> dict[str, Any]:
    return _read_llama(options) | {"attention_bias": "qkv"}


def _read_qwen3(options: dict[str, Any]) -> dict[str, Any]:
    return _read_llama(options) | {"head_norm": True}


def _write_llama(config: ModelConfig) -> dict[str, Any]:
    name, found = placed(config)
    if name != "rotary":
        raise SaccadeError(f"this family turns its heads (rotary); the model has position {config.position!r}")
    return {
        "vocab_size": config.vocab,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads or config.heads,
        "head_dim": config.head_width or config.width // config.heads,
        "num_hidden_layers": config.decoder,
        "intermediate_size": config.hidden or 4 * config.width,
        "rms_norm_eps": config.epsilon,
        "hidden_act": "silu",
        "rope_parameters": {"rope_theta": float(found["base"]), "rope_type": "default"},
        "tie_word_embeddings": config.tie,
    }


def _write_with_bias(config: ModelConfig) -> dict[str, Any]:
    return _write_llama(config) | {"attention_bias": bool(config.attention_bias)}


def _write_mistral(config: ModelConfig) -> dict[str, Any]:
    window = int(config.mask[7:-1]) if config.mask and config.mask.startswith("window(") else None
    return _write_llama(config) | {"sliding_window": window}


def _write_qwen(config: ModelConfig) -> dict[str, Any]:
    letters = (config.pattern or "") * config.decoder  # a pattern repeats
    letters = letters[: config.decoder]
    kinds = ["sliding_attention" if letter == "s" else "full_attention" for letter in letters]
    window = int(config.masks["s"][7:-1]) if "s" in config.masks else None
    own = {"layer_types": kinds or ["full_attention"] * config.decoder, "sliding_window": window}
    own |= {"use_sliding_window": window is not None, "max_window_layers": config.decoder}
    return _write_llama(config) | own


def _rows_llama(config: ModelConfig) -> Iterable[Row]:
    layer, ours = "layers.{}", "decoder.blocks.{}"
    rows = [
        Row("embed_tokens.weight", "embed.tokens.weight"),
        Row(f"{layer}.input_layernorm.weight", f"{ours}.attention_norm.weight"),
        Row(f"{layer}.self_attn.q_proj.weight", f"{ours}.attention.query.weight"),
        Row(f"{layer}.self_attn.k_proj.weight", f"{ours}.attention.key.weight"),
        Row(f"{layer}.self_attn.v_proj.weight", f"{ours}.attention.value.weight"),
        Row(f"{layer}.self_attn.o_proj.weight", f"{ours}.attention.out.weight"),
        Row(f"{layer}.post_attention_layernorm.weight", f"{ours}.feed_norm.weight"),
        Row(f"{layer}.mlp.gate_proj.weight", f"{ours}.feed.gate.weight"),
        Row(f"{layer}.mlp.up_proj.weight", f"{ours}.feed.up.weight"),
        Row(f"{layer}.mlp.down_proj.weight", f"{ours}.feed.down.weight"),
        Row("norm.weight", "decoder.norm.weight"),
    ]
    if config.attention_bias:
        rows += [
            Row(f"{layer}.self_attn.q_proj.bias", f"{ours}.attention.query.bias"),
            Row(f"{layer}.self_attn.k_proj.bias", f"{ours}.attention.key.bias"),
            Row(f"{layer}.self_attn.v_proj.bias", f"{ours}.attention.value.bias"),
        ]
    if config.attention_bias is True:
        rows += [Row(f"{layer}.self_attn.o_proj.bias", f"{ours}.attention.out.bias")]
    if config.head_norm:
        rows += [
            Row(f"{layer}.self_attn.q_norm.weight", f"{ours}.attention.query_norm.weight"),
            Row(f"{layer}.self_attn.k_norm.weight", f"{ours}.attention.key_norm.weight"),
        ]
    return rows + ([] if config.tie or config.head is None else [Row("lm_head.weight", "head.weight")])


LLAMA = Family(
    name="llama",
    heads={"LlamaForCausalLM": "vocabulary", "LlamaModel": None},
    prefix="model.",
    body=("embed", "decoder"),
    read=_read_llama,
    write=_write_with_bias,
    rows=_rows_llama,
    used="vocab_size hidden_size num_attention_heads num_key_value_heads head_dim num_hidden_layers "
    "intermediate_size rms_norm_eps rope_parameters rope_scaling rope_theta tie_word_embeddings "
    "attention_bias sliding_window layer_types use_sliding_window max_window_layers",
    fixed={"hidden_act": ("silu", "swish"), "mlp_bias": (False,)},
    derived=r"(model\.)?(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq|lm_head\.weight",
)
MISTRAL = LLAMA._replace(
    name="mistral", heads={"MistralForCausalLM": "vocabulary", "MistralModel": None}, write=_write_mistral
)
QWEN2 = LLAMA._replace(
    name="qwen2", heads={"Qwen2ForCausalLM": "vocabulary", "Qwen2Model": None}, read=_read_qwen2, write=_write_qwen
)
QWEN3 = LLAMA._replace(
    name="qwen3",
    heads={"Qwen3ForCausalLM": "vocabulary", "Qwen3Model": None},
    read=_read_qwen3,
    write=lambda config: _write_qwen(config) | {"attention_bias": bool(config.attention_bias)},
)
