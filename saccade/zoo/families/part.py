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


def weight_and_bias(theirs: str, ours: str, turned: bool = False) -> list[Row]:
    """A weight and a bias."""
    stacked = ours.split(" + ")
    weight = " + ".join(f"{each}.weight" for each in stacked)
    bias = " + ".join(f"{each}.bias" for each in stacked)
    return [Row(f"{theirs}.weight", weight, turned), Row(f"{theirs}.bias", bias)]


def placed(config: ModelConfig) -> tuple[str | None, dict[str, Any]]:
    """The name of the model's position and its arguments."""
    return (None, {}) if config.position is None else spec.arguments(config.position, POSITIONS, "position")


def table_length(config: ModelConfig) -> int:
    """The rows of a learned table of positions."""
    name, found = placed(config)
    if name != "learned":
        raise SaccadeError(
            f"this family keeps a learned table of positions; the model has position {config.position!r}"
        )
    return int(found["length"])
