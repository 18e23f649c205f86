"""What the families of pictures have alike: squares of pixels, a table of their places, the layers of ViT."""

from __future__ import annotations

from typing import Any

from saccade import spec
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.embed import EMBEDS
from saccade.zoo.families.part import placed, weight_and_bias
from saccade.zoo.family import Row

Sides = tuple[int, int]


def sides(options: dict[str, Any], name: str, usual: int | Sides) -> Sides:
    """An option that is one side of a square, or height and width."""
    value = options.get(name, usual)
    found = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(found) != 2 or any(isinstance(each, bool) or not isinstance(each, int) or each < 1 for each in found):
        raise SaccadeError(f"config.json: {name} = {value!r} should be one number of pixels, or height and width")
    return found[0], found[1]


def square(options: dict[str, Any], usual: int) -> int:
    """The side of a patch, which is a square here."""
    height, width = sides(options, "patch_size", usual)
    if height != width:
        raise SaccadeError(f"config.json: patch_size = {options['patch_size']!r} is not supported: patches are squares")
    return height


def patches(options: dict[str, Any], usual: int) -> str:
    """The embed: squares of so many pixels and channels."""
    return f"patches({square(options, usual)}, {options.get('num_channels', 3)})"


def table(options: dict[str, Any], usual: int, before: int, antialias: bool = False) -> str:
    """The position: a vector for each patch of a picture of the model's size, `before` of them for class tokens."""
    (height, width), n = sides(options, "image_size", 224), square(options, usual)
    if height % n or width % n:
        raise SaccadeError(f"config.json: a picture of {height} x {width} pixels is not made of squares of {n}")
    more = ", antialias=True" if antialias else ""
    return f"learned({(height // n, width // n)!r}, before={before}{more})"


def picture_options(config: ModelConfig) -> dict[str, Any]:
    """The pixels and channels of a patch; those of ViT where the model has no patches, and so fits no such family."""
    found: dict[str, Any] = {}
    if isinstance(config.embed, str):
        name, found = spec.arguments(config.embed, EMBEDS, "embed")
        found = found if name == "patches" else {}
    return {"patch_size": found.get("n", 16), "num_channels": found.get("channels", 3)}


def size_option(config: ModelConfig) -> dict[str, Any]:
    """The size of a picture whose patches the model's table of positions has rows for."""
    name, found = placed(config)
    grid = found["length"] if name == "learned" and isinstance(found["length"], tuple) else (14, 14)
    n = picture_options(config)["patch_size"]
    height, width = (n * side for side in grid)
    return {"image_size": height if height == width else [height, width]}


def rows_patches() -> list[Row]:
    """The patches' own weights."""
    return weight_and_bias("embeddings.patch_embeddings.projection", "embed.patches")


def rows_extras(config: ModelConfig, registers: str = "register_tokens", behind: int = 0) -> list[Row]:
    """Class tokens and registers, which are one tensor here, and the table of positions. registers: what theirs are
    called; behind: how many of them have positions, which stand last there.
    """
    counts = {"cls_token": min(config.class_tokens, 1), "distillation_token": config.class_tokens - 1}
    there = {name: count for name, count in {**counts, registers: config.registers}.items() if count > 0}
    names = " + ".join(f"embeddings.{name}" for name in there)
    return [
        Row(names, "embed.extras", leading=1, rows=tuple(there.values())),
        Row("embeddings.position_embeddings", "embed.position.weight", leading=1, behind=behind),
    ]


def rows_attention(layer: str, ours: str, inside: str = "attention") -> list[Row]:
    """The four products of attention; inside: what they call the three that come before the weights."""
    return [
        *weight_and_bias(f"{layer}.attention.{inside}.query", f"{ours}.attention.query"),
        *weight_and_bias(f"{layer}.attention.{inside}.key", f"{ours}.attention.key"),
        *weight_and_bias(f"{layer}.attention.{inside}.value", f"{ours}.attention.value"),
        *weight_and_bias(f"{layer}.attention.output.dense", f"{ours}.attention.out"),
    ]


def rows_layer(layer: str, ours: str, inside: str = "attention") -> list[Row]:
    """A layer of ViT, and of those who took over its names."""
    return [
        *rows_attention(layer, ours, inside),
        *weight_and_bias(f"{layer}.layernorm_before", f"{ours}.attention_norm"),
        *weight_and_bias(f"{layer}.intermediate.dense", f"{ours}.feed.up"),
        *weight_and_bias(f"{layer}.output.dense", f"{ours}.feed.down"),
        *weight_and_bias(f"{layer}.layernorm_after", f"{ours}.feed_norm"),
    ]


def rows_label(config: ModelConfig) -> list[Row]:
    """The classifier."""
    return weight_and_bias("classifier", "head.out") if (config.head or "").startswith("label") else []
