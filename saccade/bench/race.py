"""How two pieces of code are compared on a noisy machine: interleaved rounds in one process, medians, ratios."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Run = Callable[[], object]


def race(runs: Mapping[str, Run], *, rounds: int = 15, least: float = 0.02) -> dict[str, float]:
    """Median seconds of each run. Every round times all of them, in turning order; each for `least` seconds or once."""
    inner = {name: _repeats(run, least) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                times[name].append(_seconds(runs[name], inner[name]))
    finally:
        gc.enable()
    return {name: statistics.median(each) for name, each in times.items()}


def row(case: str, peer: str, ours: float, theirs: float, unit: str = "ms") -> dict[str, Any]:
    """A line of a bench's table; ratio above 1 = saccade is better. Times come in seconds and are shown in ms."""
    scale = 1e3 if unit == "ms" else 1.0
    return {
        "case": case,
        "peer": peer,
        "ours": round(ours * scale, 4),
        "theirs": round(theirs * scale, 4),
        "unit": unit,
        "ratio": round(theirs / ours, 3),
    }


def _repeats(run: Run, least: float) -> int:
    run()
    once = _seconds(run, 1)
    return max(1, min(200, round(least / max(once, 1e-9))))


def _seconds(run: Run, repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats
