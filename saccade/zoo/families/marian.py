"""Marian (Junczys-Dowmunt et al. 2018): translation. Pegasus has the same names, with norms in other places."""

from __future__ import annotations

from typing import Any

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.families.part import activation, their_activation, weight_and_bias
from saccade.zoo.family import Family, Row


def read_translator(options: dict[str, Any]) -> dict[str, Any]:
    """Our keys of an encoder and a decoder of equal layers, with sinusoids and one table of tokens."""
    if options.get("decoder_vocab_size", options["vocab_size"]) != options["vocab_size"]:
        raise SaccadeError("config.json: vocab_size and decoder_vocab_size differ, which is not supported")
    for kind in ("attention_heads", "ffn_dim"):
        if options[f"encoder_{kind}"] != options[f"decoder_{kind}"]:
            raise SaccadeError(f"config.json: encoder_{kind} and decoder_{kind} differ, which is not supported")
    return {
        "vocab": options["vocab_size"],
        "width": options["d_model"],
        "heads": options["encoder_attention_heads"],
        "hidden": options["encoder_ffn_dim"],
        "encoder": options["encoder_layers"],
        "decoder": options["decoder_layers"],
        "feed": activation(options.get("activation_function", "gelu")),
        "position": "sinusoid(layout=half)",
        "scale_embedding": options.get("scale_embedding", False),
        "tie": options.get("tie_word_embeddings", True),
    }


def write_translator(config: ModelConfig) -> dict[str, Any]:
    """Their options of such a model; at the greatest length no end is forced, which the model does not ask for."""
    own: dict[str, Any] = {
        "vocab_size": config.vocab,
        "d_model": config.width,
        "scale_embedding": config.scale_embedding,
    }
    for stack, depth in (("encoder", config.encoder), ("decoder", config.decoder)):
        own |= {f"{stack}_layers": depth, f"{stack}_attention_heads": config.heads}
        own |= {f"{stack}_ffn_dim": config.hidden or 4 * config.width}
    own |= {"activation_function": their_activation(config, "gelu"), "tie_word_embeddings": config.tie}
    return own | {"is_encoder_decoder": True, "forced_eos_token_id": None}


def _read_marian(options: dict[str, Any]) -> dict[str, Any]:
    biased = (options.get("architectures") or [""])[0] == "MarianMTModel"
    return read_translator(options) | {"order": "post", "output_bias": biased}


def _write_marian(config: ModelConfig) -> dict[str, Any]:
    own = {"pad_token_id": config.vocab - 1, "decoder_start_token_id": config.vocab - 1}
    own |= {"decoder_vocab_size": config.vocab}
    return write_translator(config) | own | {"share_encoder_decoder_embeddings": True}


def rows_translator(config: ModelConfig) -> list[Row]:
    """The table of names."""
    rows = [Row("shared.weight", "embed.tokens.weight")]
    for stack in ("encoder", "decoder"):
        layer, ours = f"{stack}.layers.{{}}", f"{stack}.blocks.{{}}"
        for theirs, part in [("self_attn", "attention"), ("encoder_attn", "cross")][: 1 + (stack == "decoder")]:
            for name, own in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "out")):
                rows += weight_and_bias(f"{layer}.{theirs}.{name}", f"{ours}.{part}.{own}")
            rows += weight_and_bias(f"{layer}.{theirs}_layer_norm", f"{ours}.{part}_norm")
        rows += weight_and_bias(f"{layer}.fc1", f"{ours}.feed.up")
        rows += weight_and_bias(f"{layer}.fc2", f"{ours}.feed.down")
        rows += weight_and_bias(f"{layer}.final_layer_norm", f"{ours}.feed_norm")
    rows += [] if config.head is None else [Row("final_logits_bias", "head.bias", leading=1)]
    return rows + ([] if config.tie or config.head is None else [Row("lm_head.weight", "head.weight")])


MARIAN = Family(
    name="marian",
    heads={"MarianMTModel": "vocabulary", "MarianModel": None},
    prefix="model.",
    body=("embed", "encoder", "decoder"),
    read=_read_marian,
    write=_write_marian,
    rows=rows_translator,
    used="vocab_size d_model encoder_layers decoder_layers encoder_attention_heads "
    "decoder_attention_heads encoder_ffn_dim decoder_ffn_dim decoder_vocab_size activation_function scale_embedding "
    "tie_word_embeddings",
    fixed={
        "is_decoder": (False,),
        "share_encoder_decoder_embeddings": (True,),
        "add_final_layer_norm": (False,),
        "normalize_before": (False,),
        "add_bias_logits": (False,),
        "extra_pos_embeddings": tuple(range(100000)),
    },
    derived=r"(model\.)?(en|de)coder\.embed_positions\.weight",
    copies={r"(model\.)?(en|de)coder\.embed_tokens\.weight|lm_head\.weight": "embed.tokens.weight"},
    zeros=("bias", "attention_bias", "output_bias"),
)
