"""`saccade bench features`: how near attention by random features comes to exact softmax attention.

The relative error |o - softmax(q k^T / sqrt(D)) v| / |softmax(q k^T / sqrt(D)) v| of a whole output, over seeds of the
directions: its mean and its tail (the 95th percentile), as features grow. What estimates without bias falls as
1 / sqrt(features). Lines compare FAVOR+ with random Fourier features of the same q and k, long ones and short ones
(where queries and keys are longer, weights differ more, and positive features win: Choromanski et al. 2021); and
orthogonal directions with independent ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

import saccade
from saccade.attend.feature import feature
from saccade.bench.growth import exponent
from saccade.bench.race import row
from saccade.look.drawing import Drawing
from saccade.look.lines import lines

HEADS, LENGTH, WIDTH = 2, 256, 64
SIZES = (64, 128, 256, 512, 1024, 2048)
SPREADS = (0.25, 0.5, 1.0)  # of the numbers in q and k: weights alike, as at the start of training, and far apart
SEEDS = 20
TAIL = 0.95
KINDS: dict[str, dict[str, Any]] = {
    "favor": {"kind": "favor"},
    "favor, independent": {"kind": "favor", "orthogonal": False},
    "fourier": {"kind": "fourier", "unit": False},
}


def rows(seconds: float = 0.0, sizes: Sequence[int] = SIZES, seeds: int = SEEDS) -> Iterator[dict[str, Any]]:
    """All lines; they count errors, not seconds."""
    for spread in SPREADS:
        found = {name: [errors(name, n, spread, seeds) for n in sizes] for name in KINDS}
        for what, measure in (("mean error", _mean), ("tail of errors", _tail)):
            values = {name: [measure(each) for each in some] for name, some in found.items()}
            for peer in ("fourier", "favor, independent"):
                for n, ours, theirs in zip(sizes, values["favor"], values[peer], strict=True):
                    yield row(f"favor, spread {spread}, {n} features, {what}", peer, ours, theirs, unit="")
        for name, some in found.items():
            grown = exponent(sizes, [_mean(each) for each in some])
            yield row(f"{name}, spread {spread}, exponent of features", "", grown, None, unit="")


def errors(name: str, n: int, spread: float, seeds: int = SEEDS) -> Tensor:
    """The relative error of each seed's output, (seeds,)."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, LENGTH, WIDTH, generator=generator) for _ in range(3))
    q, k = q * spread, k * spread
    exact = saccade.attention(q, k, v)
    scale = WIDTH**-0.5
    scores = [feature(n=n, seed=seed, scale=scale, **KINDS[name]) for seed in range(seeds)]
    found = [saccade.attention(q, k, v, score=each, normaliser="sum", kernel="linear") for each in scores]
    return torch.stack([(each - exact).norm() / exact.norm() for each in found])


def drawn(found: Sequence[dict[str, Any]]) -> dict[str, Drawing]:
    """The mean errors over the number of features."""
    sizes = sorted({int(size[1]) for each in found if (size := re.search(r"(\d+) features", each["case"]))})
    series: dict[str, list[float | None]] = {}
    known = {each["case"]: each for each in found if each["peer"] == "fourier"}
    for spread in SPREADS:
        here = [known.get(f"favor, spread {spread}, {n} features, mean error", {}) for n in sizes]
        for name, side in (("favor", "ours"), ("fourier", "theirs")):
            series[f"{name}, spread {spread}"] = [each.get(side) for each in here]
    title = "relative error, by number of features"
    return {"error": lines(series, [str(each) for each in sizes], title=title, powers=True)}


def _mean(values: Tensor) -> float:
    return float(values.mean())


def _tail(values: Tensor) -> float:
    return float(values.quantile(TAIL))
