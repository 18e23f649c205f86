"""The dropout that a Hugging Face folder was trained with, in our keys.

Reading a model leaves it out, since it changes nothing in use; a training that starts from the folder takes it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from saccade.config import ModelConfig
from saccade.error import SaccadeError


class DropoutOptions(NamedTuple):
    """The options of config.json that hold a family's dropout; None: the family has none there.

    main: of the embedding and of each part's output; attention: of the weights; feed: inside the feed-forward. beside:
    options for places that follow `main` here, so that another value cannot be expressed. path: the share of examples
    that skip a part. usual: what `transformers` takes where config.json names no value; all others are 0.
    """

    main: str | None
    attention: str | None
    feed: str | None
    beside: tuple[str, ...] = ()
    path: str | None = None
    usual: Mapping[str, float] = {}


def dropout_of(family: str, options: Mapping[str, Any]) -> dict[str, float]:
    """`dropout`, and where they differ from it `attention_dropout` and `feed_dropout`, as `transformers` would train
    this config.json: an option that it does not name has the default of its family. `path_dropout` where there is any.
    """
    names = OPTIONS[family]
    places = (names.main, names.attention, names.feed, names.path)
    main, attention, feed, path = (_value(name, options, names.usual) for name in places)
    others = {"attention_dropout": attention, "feed_dropout": feed}
    found = {"dropout": main} | {key: value for key, value in others.items() if value != main}
    return found | ({"path_dropout": path} if path else {})


def dropout_options(family: str, config: ModelConfig) -> dict[str, float]:
    """What config.json says of a model's dropout, so that a training goes on there as it would here; nothing for a
    family that is unknown, which whoever writes the folder refuses.
    """
    names = OPTIONS.get(family, DropoutOptions(None, None, None))
    own = {names.attention: config.attention_dropout, names.feed: config.feed_dropout}
    found = {name: config.dropout if value is None else value for name, value in own.items()}
    found |= dict.fromkeys((names.main, *names.beside), config.dropout)
    found |= {names.path: config.path_dropout}
    return {name: value for name, value in found.items() if name is not None}


def unexpressed(family: str, options: Mapping[str, Any]) -> dict[str, float]:
    """The options for places that follow `dropout` here, and have another value in this config.json."""
    names = OPTIONS[family]
    main = _value(names.main, options, names.usual)
    beside = (name for name in names.beside if options.get(name) is not None)
    return {name: value for name in beside if (value := _value(name, options, names.usual)) != main}


def _value(name: str | None, options: Mapping[str, Any], usual: Mapping[str, float]) -> float:
    if name is None:
        return 0.0
    found = options.get(name)
    value = usual.get(name, 0.0) if found is None else found
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise SaccadeError(f"config.json: {name} = {value!r} is no share to drop: it should be from 0 to below 1")
    return float(value)


def _tenth(*names: str) -> dict[str, float]:
    return dict.fromkeys(names, 0.1)


_NAMES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
_BERT = DropoutOptions(*_NAMES, None, ("classifier_dropout",), usual=_tenth(*_NAMES))
_LLAMA = DropoutOptions(None, "attention_dropout", None)
_BART = DropoutOptions("dropout", "attention_dropout", "activation_dropout", usual=_tenth("dropout"))
_VIT = DropoutOptions(*_NAMES, None)
_DINOV2 = DropoutOptions(*_NAMES, None, path="drop_path_rate")
OPTIONS = {
    "gpt2": DropoutOptions(
        "resid_pdrop", "attn_pdrop", None, ("embd_pdrop",), usual=_tenth("resid_pdrop", "attn_pdrop", "embd_pdrop")
    ),
    "bert": _BERT,
    "roberta": _BERT,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gpt_neox": DropoutOptions("hidden_dropout", "attention_dropout", None),
    "t5": DropoutOptions("dropout_rate", "dropout_rate", "dropout_rate", usual=_tenth("dropout_rate")),
    "marian": _BART,
    "pegasus": _BART,
    "xlnet": DropoutOptions("dropout", "dropout", "dropout", usual=_tenth("dropout")),
    "vit": _VIT,
    "deit": _VIT,
    "dinov2": _DINOV2,
    "dinov2_with_registers": _DINOV2,
    "yolos": _VIT,
    "swin": _DINOV2._replace(usual=_tenth("drop_path_rate")),
}
