"""LLaMA (Touvron et al. 2023), Mistral (Jiang et al. 2023), Qwen 2 and 3 (Yang et al. 2024, 2025)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log
from typing import Any

from saccade.attend.frequency import Scaling, interpolate, llama3, ntk, yarn
from saccade.attend.position import rotary
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import placed, rows_decoder_head
from saccade.zoo.family import Family, Row


def _read_rotary(options: dict[str, Any]) -> str:
    """Our spec of the position; newer folders give `rope_parameters`, older ones `rope_scaling` and `rope_theta`."""
    rope = dict(options.get("rope_parameters") or {})
    rope |= options.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "dynamic":
        raise SaccadeError(
            "config.json: the rope scaling 'dynamic' turns a key by what comes after it, so that a step with a cache "
            "would differ from the whole: write rope_type 'default' there and load the folder with scaling='ntk(2)'"
        )
    if kind not in SCALED:
        raise SaccadeError(f"config.json: the rope scaling {kind!r} is not supported")
    if rope.get("partial_rotary_factor", 1) != 1 or rope.get("truncate", True) is not True:
        raise SaccadeError("config.json: partial_rotary_factor and truncate are not supported")
    base = float(rope.get("rope_theta") or options.get("rope_theta") or 10000.0)
    scaling = SCALED[kind](rope, options)
    return f"rotary(half, {base!r}{f', {scaling}' if scaling else ''})"


def _read_linear(rope: dict[str, Any], options: dict[str, Any]) -> str:
    return f"interpolate={rope['factor']!r}"


def _read_yarn(rope: dict[str, Any], options: dict[str, Any]) -> str:
    length = _trained_length(rope, options)
    factor = rope.get("factor") or options["max_position_embeddings"] / length
    numbers = [factor, length, rope.get("beta_fast") or 32, rope.get("beta_slow") or 1]
    gain = rope.get("attention_factor")
    if gain is None and rope.get("mscale") and rope.get("mscale_all_dim"):
        ours, all_dimensions = (0.1 * rope[each] * log(factor) + 1 for each in ("mscale", "mscale_all_dim"))
        gain = ours / all_dimensions
    numbers += [] if gain is None else [gain]
    return f"yarn=({', '.join(map(repr, numbers))})"


def _read_llama3(rope: dict[str, Any], options: dict[str, Any]) -> str:
    numbers = (rope["factor"], _trained_length(rope, options), rope["low_freq_factor"], rope["high_freq_factor"])
    return f"llama3=({', '.join(map(repr, numbers))})"


def _trained_length(rope: dict[str, Any], options: dict[str, Any]) -> int:
    """How many positions the model was trained on before it was scaled."""
    return int(rope.get("original_max_position_embeddings") or options["max_position_embeddings"])


# Their names of the ways to read longer sequences than a model was trained on, and how each becomes one of ours.
SCALED: dict[str, Callable[[dict[str, Any], dict[str, Any]], str]] = {
    "default": lambda rope, options: "",
    "linear": _read_linear,
    "yarn": _read_yarn,
    "llama3": _read_llama3,
}


def _read_llama(options: dict[str, Any]) -> dict[str, Any]:
    heads = options["num_attention_heads"]
    head_width = options.get("head_dim") or options["hidden_size"] // heads
    bias = options.get("attention_bias", False)
    windows = _read_windows(options)
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
        "bias": options.get("mlp_bias", False),
        "attention_bias": bias,
        "position": _read_rotary(options),
        "tie": options.get("tie_word_embeddings", False),
    }


def _read_windows(options: dict[str, Any]) -> dict[str, Any]:
    """The masks: Mistral has a sliding window in every layer, Qwen in those that `layer_types` names."""
    window = options.get("sliding_window", 4096)  # the default of `transformers`
    kinds = options.get("layer_types") or []
    if options.get("use_sliding_window") and not kinds:  # configurations from before `layer_types`
        first, depth = options.get("max_window_layers", 28), options["num_hidden_layers"]
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
    return _read_llama({"head_dim": 128} | options) | {"head_norm": True}


def _write_llama(config: ModelConfig) -> dict[str, Any]:
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
        "rope_parameters": _write_rotary(config),
        "rope_scaling": None,  # overwrites what an older folder had
        "tie_word_embeddings": config.tie,
    }


def _write_rotary(config: ModelConfig) -> dict[str, Any]:
    name, found = placed(config)
    made, width = rotary(**(found if name == "rotary" else {})), config.head_width or config.width // config.heads
    base = float(made.base)
    if isinstance(made.scaling, ntk):  # a larger base, and nothing else
        base = made.scaling.base(width, base)
    return {"rope_type": "default", "rope_theta": base} | _write_scaling(made.scaling)


def _write_scaling(scaling: Scaling | None) -> dict[str, Any]:
    """Their options of a scaling, whose type replaces "default"."""
    match scaling:
        case interpolate():
            return {"rope_type": "linear", "factor": scaling.factor}
        case llama3():
            own = {"rope_type": "llama3", "low_freq_factor": scaling.low, "high_freq_factor": scaling.high}
            return own | {"factor": scaling.factor, "original_max_position_embeddings": scaling.length}
        case yarn():
            own = {"rope_type": "yarn", "beta_fast": scaling.fast, "beta_slow": scaling.slow}
            own |= {} if scaling.attention is None else {"attention_factor": scaling.attention}
            return own | {"factor": scaling.factor, "original_max_position_embeddings": scaling.length}
    return {}


def _write_with_bias(config: ModelConfig) -> dict[str, Any]:
    attention = config.bias if config.attention_bias is None else config.attention_bias
    return _write_llama(config) | {"attention_bias": bool(attention), "mlp_bias": config.bias}


def _window_size(mask: str) -> int:
    """n of "window(n)"."""
    return int(mask.removeprefix("window(").removesuffix(")"))


def _write_mistral(config: ModelConfig) -> dict[str, Any]:
    window = _window_size(config.mask) if config.mask and config.mask.startswith("window(") else None
    return _write_llama(config) | {"sliding_window": window}


def _write_qwen(config: ModelConfig) -> dict[str, Any]:
    letters = ((config.pattern or "") * config.decoder)[: config.decoder]  # a pattern repeats, one letter a layer
    kinds = ["sliding_attention" if letter == "s" else "full_attention" for letter in letters]
    window = _window_size(config.masks["s"]) if "s" in config.masks else None
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
    if config.bias:
        rows += [Row(f"{layer}.mlp.{name}_proj.bias", f"{ours}.feed.{name}.bias") for name in ("gate", "up", "down")]
    return rows + rows_decoder_head(config)


def _heads(name: str) -> dict[str, str | None]:
    """The classes of a family whose names begin so."""
    labels = "label(n, bare=True)"
    return {f"{name}ForCausalLM": "vocabulary", f"{name}ForSequenceClassification": labels, f"{name}Model": None}


LLAMA = Family(
    name="llama",
    heads=_heads("Llama"),
    prefix="model.",
    body=("embed", "decoder"),
    read=_read_llama,
    write=_write_with_bias,
    rows=_rows_llama,
    used="vocab_size hidden_size num_attention_heads num_key_value_heads head_dim num_hidden_layers "
    "intermediate_size rms_norm_eps rope_parameters rope_scaling rope_theta tie_word_embeddings "
    "attention_bias mlp_bias sliding_window layer_types use_sliding_window max_window_layers",
    fixed={"hidden_act": ("silu", "swish")},
    derived=r"(model\.)?(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",
    copies={r"lm_head\.weight": "embed.tokens.weight"},
)
MISTRAL = LLAMA._replace(name="mistral", heads=_heads("Mistral"), write=_write_mistral)
QWEN2 = LLAMA._replace(name="qwen2", heads=_heads("Qwen2"), read=_read_qwen2, write=_write_qwen)
QWEN3 = LLAMA._replace(
    name="qwen3",
    heads=_heads("Qwen3"),
    read=_read_qwen3,
    write=lambda config: _write_qwen(config) | {"attention_bias": bool(config.attention_bias)},
)
