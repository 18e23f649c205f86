"""`saccade bench deep`: can two hundred layers learn? The same decoder in the orders post, pre and deep.

An experiment of learning, not of speed (Wang et al. 2022). The text is a Markov chain with a lag: each token follows
from the one `LAG` before it by a fixed permutation or, now and then, comes by chance. All tokens are equally frequent,
so a model that knows the frequencies alone loses exactly log V nats a token, one that knows the rule `floor()`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.bench.race import row
from saccade.config import ModelConfig, read
from saccade.zoo.build import build

VOCAB, LAG, CHANCE = 11, 2, 0.1
WIDTH, HEADS, LENGTH, BATCH = 32, 2, 24, 16
DEPTH, STEPS, WARMUP, RATE = 200, 400, 60, 1e-3


def rows(seconds: float = 0.0, depth: int = DEPTH, steps: int = STEPS) -> Iterator[dict[str, Any]]:
    """The losses in the end: `deep` beside the frequencies alone and beside the other orders. Some minutes.

    It lasts as many steps as it has; `seconds` is there because every bench takes it.
    """
    case = f"{depth} layers, order deep, loss after {steps} steps"
    ours = ending(curves(("deep",), depth=depth, steps=steps)["deep"])
    yield row(case, "the frequencies alone", ours, math.log(VOCAB), unit="nats")
    for order in ("post", "pre"):
        theirs = ending(curves((order,), depth=depth, steps=steps)[order])
        yield row(case, f"order {order}", ours, theirs, unit="nats")


def curves(
    orders: tuple[str, ...] = ("deep", "post", "pre"), *, depth: int = DEPTH, steps: int = STEPS, rate: float = RATE
) -> dict[str, list[float]]:
    """The loss of each step in nats, for each order: the same seed, data, steps and learning rate."""
    torch.set_flush_denormal(True)  # gradients that vanish become denormal numbers, which are slow to compute with
    try:
        return {order: list(learn(order, depth, steps, rate)) for order in orders}
    finally:
        torch.set_flush_denormal(False)


def learn(order: str, depth: int, steps: int, rate: float, seed: int = 0) -> Iterator[float]:
    """Trains a decoder with Adam, after a linear warm-up at a constant rate; the loss of each step, on fresh text."""
    torch.manual_seed(seed)
    model = build(_config(order, depth))
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    texts = torch.Generator().manual_seed(seed)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / WARMUP)
        tokens = text(BATCH, LENGTH, texts)
        scores = model(tokens[:, :-1])[:, LAG - 1 :]  # of the tokens that follow from another
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, LAG:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield loss.item()


def text(batch: int, length: int, generator: torch.Generator) -> Tensor:
    """Tokens (batch, length) of the chain, in its stationary state from the first token on."""
    rule = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(1))
    tokens = torch.randint(VOCAB, (batch, length), generator=generator)
    surprised = torch.rand(batch, length, generator=generator) < CHANCE
    for t in range(LAG, length):
        tokens[:, t] = torch.where(surprised[:, t], tokens[:, t], rule[tokens[:, t - LAG]])
    return tokens


def floor() -> float:
    """The entropy of a token given the past: what a perfect model loses."""
    other = CHANCE / VOCAB
    right = 1 - CHANCE + other
    return -right * math.log(right) - (VOCAB - 1) * other * math.log(other)


def ending(curve: list[float]) -> float:
    """The mean loss of the last tenth."""
    last = curve[-max(1, len(curve) // 10) :]
    return sum(last) / len(last)


def _config(order: str, depth: int) -> ModelConfig:
    own = {"vocab": VOCAB, "width": WIDTH, "heads": HEADS, "hidden": 2 * WIDTH, "position": f"learned({LENGTH})"}
    return read(ModelConfig, own | {"decoder": depth, "order": order, "head": "vocabulary"})
