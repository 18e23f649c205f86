"""BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from saccade.config import ModelConfig
from saccade.zoo.families.part import activation, table_length, their_activation, weight_and_bias
from saccade.zoo.family import Family, Row


def _read_bert(options: dict[str, Any]) -> dict[str, Any]:
    named = (options.get("architectures") or ["BertModel"])[0]
    return {
        "vocab": options["vocab_size"],
        "width": options["hidden_size"],
        "heads": options["num_attention_heads"],
        "encoder": options["num_hidden_layers"],
        "hidden": options["intermediate_size"],
        "order": "post",
        "epsilon": options.get("layer_norm_eps", 1e-12),
        "feed": activation(options.get("hidden_act", "gelu")),
        "position": f"learned({options['max_position_embeddings']})",
        "segments": options.get("type_vocab_size", 2),
        "norm_embedding": True,
        "pooler": not named.endswith(("ForMaskedLM", "ForQuestionAnswering", "ForTokenClassification")),
        "tie": options.get("tie_word_embeddings", True),
    }


def _read_roberta(options: dict[str, Any]) -> dict[str, Any]:
    return _read_bert(options) | {"offset": (1 if options.get("pad_token_id") is None else options["pad_token_id"]) + 1}


def _write_bert(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.encoder,
        "intermediate_size": config.hidden or 4 * config.width,
        "layer_norm_eps": config.epsilon,
        "hidden_act": their_activation(config, "gelu"),
        "max_position_embeddings": table_length(config),
        "type_vocab_size": config.segments,
        "tie_word_embeddings": config.tie,
    }


def _write_roberta(config: ModelConfig) -> dict[str, Any]:
    return _write_bert(config) | {"pad_token_id": config.offset - 1}


def _rows_body(config: ModelConfig) -> list[Row]:
    layer, ours = "encoder.layer.{}", "encoder.blocks.{}"
    return [
        Row("embeddings.word_embeddings.weight", "embed.tokens.weight"),
        Row("embeddings.position_embeddings.weight", "embed.position.weight"),
        Row("embeddings.token_type_embeddings.weight", "embed.segments.weight"),
        *weight_and_bias("embeddings.LayerNorm", "embed.norm"),
        *weight_and_bias(f"{layer}.attention.self.query", f"{ours}.attention.query"),
        *weight_and_bias(f"{layer}.attention.self.key", f"{ours}.attention.key"),
        *weight_and_bias(f"{layer}.attention.self.value", f"{ours}.attention.value"),
        *weight_and_bias(f"{layer}.attention.output.dense", f"{ours}.attention.out"),
        *weight_and_bias(f"{layer}.attention.output.LayerNorm", f"{ours}.attention_norm"),
        *weight_and_bias(f"{layer}.intermediate.dense", f"{ours}.feed.up"),
        *weight_and_bias(f"{layer}.output.dense", f"{ours}.feed.down"),
        *weight_and_bias(f"{layer}.output.LayerNorm", f"{ours}.feed_norm"),
    ]


def _rows_vocabulary(head: str, config: ModelConfig) -> list[Row]:
    """The vocabulary's bias, and its weight where that is not tied to the embedding."""
    if config.tie:
        return [Row(f"{head}.bias", "head.bias")]
    return weight_and_bias(f"{head}.decoder", "head")


def _rows_bert(config: ModelConfig) -> Iterable[Row]:
    rows = _rows_body(config)
    rows += weight_and_bias("pooler.dense", "pooler") if config.pooler else []
    kind = (config.head or "").partition("(")[0]
    if kind in ("masked", "pretraining"):
        rows += weight_and_bias("cls.predictions.transform.dense", "head.dense")
        rows += weight_and_bias("cls.predictions.transform.LayerNorm", "head.norm")
        rows += _rows_vocabulary("cls.predictions", config)
    if kind == "pretraining":
        rows += weight_and_bias("cls.seq_relationship", "head.follows")
    names = {"next_sentence": "cls.seq_relationship", "label": "classifier", "tags": "classifier", "span": "qa_outputs"}
    return rows + (weight_and_bias(names[kind], "head.out") if kind in names else [])


def _rows_roberta(config: ModelConfig) -> Iterable[Row]:
    rows = _rows_body(config)
    kind = (config.head or "").partition("(")[0]
    if config.pooler:  # the classifier brings a pooler of its own
        rows += weight_and_bias("classifier.dense" if kind == "label" else "pooler.dense", "pooler")
    if kind == "masked":
        rows += weight_and_bias("lm_head.dense", "head.dense") + weight_and_bias("lm_head.layer_norm", "head.norm")
        rows += _rows_vocabulary("lm_head", config)
    names = {"label": "classifier.out_proj", "tags": "classifier", "span": "qa_outputs"}
    return rows + (weight_and_bias(names[kind], "head.out") if kind in names else [])


BERT = Family(
    name="bert",
    heads={
        "BertForMaskedLM": "masked",
        "BertForPreTraining": "pretraining",
        "BertForNextSentencePrediction": "next_sentence",
        "BertForSequenceClassification": "label(n)",
        "BertForTokenClassification": "tags(n)",
        "BertForQuestionAnswering": "span",
        "BertModel": None,
    },
    prefix="bert.",
    body=("embed", "encoder", "pooler"),
    read=_read_bert,
    write=_write_bert,
    rows=_rows_bert,
    used="vocab_size hidden_size num_attention_heads num_hidden_layers intermediate_size layer_norm_eps "
    "hidden_act max_position_embeddings type_vocab_size tie_word_embeddings",
    fixed={"is_decoder": (False,), "add_cross_attention": (False,), "position_embedding_type": ("absolute", None)},
    # Published checkpoints carry the pooler and the second question of pretraining beside any head.
    derived=r"(bert\.)?embeddings\.position_ids|cls\.predictions\.bias|bert\.pooler\..*|cls\.seq_relationship\..*",
    copies={
        r"cls\.predictions\.decoder\.weight": "embed.tokens.weight",
        r"cls\.predictions\.decoder\.bias": "head.bias",
    },
    renamed={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    zeros=("bias", "attention_bias"),
)

ROBERTA = BERT._replace(
    name="roberta",
    heads={
        "RobertaForMaskedLM": "masked",
        "RobertaForSequenceClassification": "label(n)",
        "RobertaForTokenClassification": "tags(n)",
        "RobertaForQuestionAnswering": "span",
        "RobertaModel": None,
    },
    prefix="roberta.",
    body=("embed", "encoder"),
    read=_read_roberta,
    write=_write_roberta,
    rows=_rows_roberta,
    derived=r"(roberta\.)?embeddings\.position_ids|lm_head\.bias|roberta\.pooler\..*",
    copies={r"lm_head\.decoder\.weight": "embed.tokens.weight", r"lm_head\.decoder\.bias": "head.bias"},
    renamed={},
)
