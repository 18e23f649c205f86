"""The device that a recipe trains on."""

from __future__ import annotations

import torch

from saccade.error import SaccadeError


def device_of(name: str) -> str:
    """The device that `train.device` names; auto: the fastest of this machine."""
    if name == "auto":
        return _fastest()
    if name == "meta":
        raise SaccadeError("train.device = 'meta' computes nothing: nothing is learned there")
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise SaccadeError(f"train.device = {name!r} is not available on this machine: {reason}") from None
    return name


def _fastest() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
