"""Schedules: the learning rate as a share of its highest, a function of the step alone (Vaswani et al. 2017,
Loshchilov & Hutter 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable

from saccade.recipe import TrainConfig


def share(config: TrainConfig, step: int) -> float:
    """The share of the highest rate at `step` (the first is 1): linear during the warm-up, then the schedule."""
    if step <= config.warmup:
        return step / config.warmup
    return SCHEDULES[config.schedule](config, step)


def _progress(config: TrainConfig, step: int) -> float:
    """From 0 at the end of the warm-up to 1 at the last step."""
    return min(1.0, (step - config.warmup) / max(1, config.steps - config.warmup))


def constant(config: TrainConfig, step: int) -> float:
    return 1.0


def linear(config: TrainConfig, step: int) -> float:
    """Linear from 1 down to `final`."""
    return 1 - (1 - config.final) * _progress(config, step)


def cosine(config: TrainConfig, step: int) -> float:
    """Half a cosine wave from 1 down to `final`."""
    return config.final + (1 - config.final) * 0.5 * (1 + math.cos(math.pi * _progress(config, step)))


def inverse_sqrt(config: TrainConfig, step: int) -> float:
    """sqrt(warmup / step)."""
    return math.sqrt(max(config.warmup, 1) / step)


SCHEDULES: dict[str, Callable[[TrainConfig, int], float]] = {
    "constant": constant,
    "linear": linear,
    "cosine": cosine,
    "inverse_sqrt": inverse_sqrt,
}
