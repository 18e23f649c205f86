"""What the tables of several families are made of."""

from __future__ import annotations

from typing import Any

from saccade import spec
from saccade.attend.position import POSITIONS
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.zoo.family import Row

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
ACTIVATIONS |= {"silu": "silu", "swish": "silu"}
BACK = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}


def activation(name: str) -> str:
    """Our name of an activation."""
    if name not in ACTIVATIONS:
        raise SaccadeError(
            f"config.json: the activation {name!r} is not supported; there are: {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


def their_activation(config: ModelConfig, usual: str) -> str:
    """Their name of the model's activation; the family's usual one where they have none, and so it does not fit."""
    return BACK.get(config.feed, usual)


def weight_and_bias(theirs: str, ours: str, turned: bool = False) -> list[Row]:
    """The rows of a module with a weight and a bias; `ours` may be several, stacked."""
    stacked = ours.split(" + ")
    weight = " + ".join(f"{each}.weight" for each in stacked)
    bias = " + ".join(f"{each}.bias" for each in stacked)
    return [Row(f"{theirs}.weight", weight, turned), Row(f"{theirs}.bias", bias)]


def placed(config: ModelConfig) -> tuple[str | None, dict[str, Any]]:
    """The name of the model's position and its arguments."""
    return (None, {}) if config.position is None else spec.arguments(config.position, POSITIONS, "position")


def table_length(config: ModelConfig) -> int:
    """The rows of a learned table of positions; those of BERT where the model has none, and so fits no such family."""
    name, found = placed(config)
    return found["length"] if name == "learned" and isinstance(found["length"], int) else 512


def rows_decoder_head(config: ModelConfig) -> list[Row]:
    """The rows of what stands on a decoder: a vocabulary that is not tied, or the scores of labels."""
    if config.head is None:
        return []
    if config.head.startswith("label"):
        return [Row("score.weight", "head.out.weight")]
    return [] if config.tie else [Row("lm_head.weight", "head.weight")]
