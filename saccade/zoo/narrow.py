"""`narrow`: a model of the same parts, a few of each and small, to be tried out at once."""

from __future__ import annotations

from typing import Any

from saccade.config import ModelConfig, read

LAYERS, HEADS, VOCABULARY = 2, 4, 500


def narrow(config: ModelConfig) -> ModelConfig:
    """The configuration with at most two layers (of each stage), four heads as wide as they are, and 500 tokens."""
    heads = next(each for each in range(min(HEADS, config.heads), 0, -1) if config.heads % each == 0)
    changes: dict[str, Any] = {"vocab": min(config.vocab, VOCABULARY)}
    if not config.encoder_keys and not config.decoder_keys:
        share = config.heads // heads
        changes |= {"heads": heads, "width": config.width // share}
        changes |= {} if config.hidden is None else {"hidden": config.hidden // share}
        changes |= {} if config.kv_heads is None else {"kv_heads": _dividing(heads, config.kv_heads // share)}
    for stack in ("encoder", "decoder"):
        depth = [min(each, LAYERS) for each in config.stages] if stack == "encoder" and config.stages else None
        depth = min(getattr(config, stack), LAYERS) if depth is None else depth
        own = getattr(config, f"{stack}_keys")
        changes[stack] = {"depth": depth, **own} if own else depth
    return read(ModelConfig, config.model_dump() | changes)


def _dividing(heads: int, wanted: int) -> int:
    """The largest number of key heads, of at most so many, that divides the heads."""
    return next(each for each in range(max(wanted, 1), 0, -1) if heads % each == 0)
