"""How much memory a model takes, counted before any is allocated, and how much there is.

Parameters are counted on the meta device, where a tensor has a shape and no memory. Only what must be held is counted,
so that what is refused could not have run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.model import Model

BUILT = {
    "encoder": 12,
    "decoder": 12,
    "context": 12,
    "experts": 4,
    "stage": 4,
}  # so many are built; of more, the count follows in a straight line
BLOCK = 10_000  # bytes of Python's objects for each block, at least
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container
CERTAIN = 50_000_000  # parameters that every machine holds


def parameters(config: ModelConfig) -> int:
    """The parameters of a model; refuses one whose tensors have more numbers than can be counted."""
    for number, many in enumerate(config.stages):
        if many > BUILT["stage"]:
            less, more = (parameters(_staged(config, number, BUILT["stage"] - each)) for each in (1, 0))
            return more + (many - BUILT["stage"]) * (more - less)
    for key, most in BUILT.items():
        many = 0 if key == "stage" or (key == "encoder" and config.stages) else getattr(config, key)
        if many > most:
            less, more = (parameters(config.model_copy(update={key: each})) for each in (most - 1, most))
            return more + (many - most) * (more - less)
    try:
        with torch.device("meta"):
            return sum(each.numel() for each in Model(config).parameters())
    except (RuntimeError, TypeError, OverflowError) as problem:
        if "verflow" not in str(problem):
            raise
        raise SaccadeError(
            f"this model is too large for any machine (width {config.width:,}, vocabulary {config.vocab:,}): "
            "a single tensor of it has more than 2^63 bytes"
        ) from None


def _staged(config: ModelConfig, number: int, depth: int) -> ModelConfig:
    """The model with another depth of one of its stages."""
    stages = [*config.stages[:number], depth, *config.stages[number + 1 :]]
    return config.model_copy(update={"stages": stages, "encoder": sum(stages)})


def available(device: str = "cpu") -> int:
    """The bytes of memory that a device has; on a CPU those of the machine, or of the container it is in."""
    kind = torch.device(device).type
    if kind == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if kind == "mps":
        return int(torch.mps.recommended_max_memory())
    limits = [int(text) for text in map(_content, LIMITS) if text.isdecimal()]
    return (
        min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits])
        if hasattr(os, "sysconf")
        else sys.maxsize
    )


def refuse_larger(config: ModelConfig, each: int, what: str, device: str = "cpu") -> int:
    """The bytes that a model takes, `each` for every parameter; refuses more than the device has. what: what they
    hold, in words.
    """
    count, layers = parameters(config), config.encoder + config.decoder
    needed, there = each * count + BLOCK * layers, available(device)
    if needed > there:
        cost = f"{gigabytes(needed)} ({each} bytes a parameter: {what})"
        where = "this machine" if device == "cpu" else device
        raise SaccadeError(
            f"this model has {count:,} parameters and takes {cost}, and {where} has {gigabytes(there)}: make it "
            f"smaller (width {config.width:,}, {layers:,} layers)"
        )
    return needed


def may_be_large(config: ModelConfig) -> bool:
    """Whether a model is worth counting before it is built: a few products of its sizes, of which none is too many."""
    layers = config.encoder + config.decoder
    hidden = (config.hidden or 4 * config.width) * max(config.experts, 1)
    return config.width * (config.vocab + layers * (config.width + hidden)) > CERTAIN or layers > 1000


def out_of_memory(problem: BaseException) -> bool:
    """Whether an error says that there was not enough memory: Python's own, numpy's, or one of torch's."""
    return isinstance(problem, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(problem)


def gigabytes(count: int) -> str:
    """Bytes as a person reads them."""
    return f"{count / 1e9:,.1f} GB"


def _content(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
