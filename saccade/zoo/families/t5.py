"""T5 (Raffel et al. 2020)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import placed
from saccade.zoo.family import Family, Row

GATES = {"gated-gelu": "geglu_tanh", "gated-silu": "swiglu", "relu": "relu", "gelu": "gelu"}


def _read_t5(options: dict[str, Any]) -> dict[str, Any]:
    feed = options.get("feed_forward_proj", "relu")
    if feed not in GATES:
        raise SaccadeError(f"config.json: feed_forward_proj = {feed!r} is not supported; there are: {', '.join(GATES)}")
    tie = options.get("tie_word_embeddings", True)
    buckets = options.get("relative_attention_num_buckets", 32)
    distance = options.get("relative_attention_max_distance", 128)
    return {
        "vocab": options["vocab_size"],
        "width": options["d_model"],
        "heads": options["num_heads"],
        "head_width": options["d_kv"],
        "hidden": options["d_ff"],
        "encoder": options["num_layers"],
        "decoder": options.get("num_decoder_layers") or options["num_layers"],
        "norm": "rms",
        "epsilon": options.get("layer_norm_epsilon", 1e-6),
        "feed": GATES[feed],
        "bias": False,
        "score": "dot",
        "position": f"t5({buckets}, {distance})",
        "share_position": True,
        "tie": tie,
        "scale_output": options.get("scale_decoder_outputs", tie),
    }


def _write_t5(config: ModelConfig) -> dict[str, Any]:
    name, found = placed(config)
    buckets, distance = (found["buckets"], found["distance"]) if name == "t5" else (32, 128)
    return {
        "vocab_size": config.vocab,
        "d_model": config.width,
        "num_heads": config.heads,
        "d_kv": config.head_width or config.width // config.heads,
        "d_ff": config.hidden or 4 * config.width,
        "num_layers": config.encoder,
        "num_decoder_layers": config.decoder,
        "layer_norm_epsilon": config.epsilon,
        "feed_forward_proj": {ours: theirs for theirs, ours in GATES.items()}.get(config.feed, "relu"),
        "relative_attention_num_buckets": buckets,
        "relative_attention_max_distance": distance,
        "tie_word_embeddings": config.tie,
        "scale_decoder_outputs": config.scale_output,
        "is_encoder_decoder": True,
    }


def _rows_t5(config: ModelConfig) -> Iterable[Row]:
    rows = [Row("shared.weight", "embed.tokens.weight")]
    for stack in ("encoder", "decoder"):
        block, ours = f"{stack}.block.{{}}.layer", f"{stack}.blocks.{{}}"
        first = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        rows += [Row(first, f"{stack}.blocks.0.attention.position.weight")]
        parts = [("0.SelfAttention", "attention"), ("1.EncDecAttention", "cross")][: 1 + (stack == "decoder")]
        for theirs, part in parts:
            for letter, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "out")):
                rows += [Row(f"{block}.{theirs}.{letter}.weight", f"{ours}.{part}.{name}.weight")]
            rows += [Row(f"{block}.{theirs[0]}.layer_norm.weight", f"{ours}.{part}_norm.weight")]
        last = f"{block}.{len(parts)}"
        gated = config.feed in ("geglu_tanh", "swiglu")
        names = [("wi_0", "gate"), ("wi_1", "up")] if gated else [("wi", "up")]
        for theirs, name in [*names, ("wo", "down")]:
            rows += [Row(f"{last}.DenseReluDense.{theirs}.weight", f"{ours}.feed.{name}.weight")]
        rows += [Row(f"{last}.layer_norm.weight", f"{ours}.feed_norm.weight")]
        rows += [Row(f"{stack}.final_layer_norm.weight", f"{stack}.norm.weight")]
    return rows + ([] if config.tie or config.head is None else [Row("lm_head.weight", "head.weight")])


T5 = Family(
    name="t5",
    heads={"T5ForConditionalGeneration": "vocabulary", "T5Model": None, "T5WithLMHeadModel": "vocabulary"},
    prefix="",
    body=("embed", "encoder", "decoder"),
    read=_read_t5,
    write=_write_t5,
    rows=_rows_t5,
    used="vocab_size d_model num_heads d_kv d_ff num_layers num_decoder_layers layer_norm_epsilon "
    "feed_forward_proj relative_attention_num_buckets relative_attention_max_distance "
    "tie_word_embeddings scale_decoder_outputs dense_act_fn is_gated_act",
    fixed={"is_decoder": (False,)},
    derived=r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
    copies={r"(encoder|decoder)\.embed_tokens\.weight|lm_head\.weight": "embed.tokens.weight"},
)
