"""How pieces of code are compared on a noisy machine: interleaved rounds, in one process or in one each, medians."""

from __future__ import annotations

import gc
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Run = Callable[[], object]


def race(ours: Run, theirs: Run, *, seconds: float = 2.0, slot: float = 0.01) -> tuple[float, float, float]:
    """Median seconds of each, and how many times faster ours is: the median over rounds of the round's own ratio."""
    *times, _ = raced(ours, theirs, seconds=seconds, slot=slot)
    return times[0], times[1], times[2]


def raced(
    ours: Run, theirs: Run, *, seconds: float = 2.0, slot: float = 0.01
) -> tuple[float, float, float, tuple[float, float]]:
    """As `race`, and between which two ratios the middle half of the rounds lies.

    A round times both for a short slot each, in alternating order, so that what disturbs the machine disturbs both.
    """
    repeats = max(1, round(slot / max(spent(ours, 1), spent(theirs, 1), 1e-9)))
    a, b = spent(ours, repeats), spent(theirs, repeats)
    least = 7 if (a + b) * repeats < 5 else 3  # rounds of seconds are hardly disturbed: three are enough
    rounds = max(least, min(201, round(seconds / ((a + b) * repeats)) | 1))
    times: list[tuple[float, float]] = []
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            if turn % 2:
                a, b = spent(ours, repeats), spent(theirs, repeats)
            else:
                b, a = spent(theirs, repeats), spent(ours, repeats)
            times.append((a, b))
    finally:
        gc.enable()
    median = statistics.median
    low, middle, high = statistics.quantiles((b / a for a, b in times), n=4, method="inclusive")
    return median(a for a, _ in times), median(b for _, b in times), middle, (low, high)


class BenchProcess:
    """A process of its own that answers with `tell`: once when it is ready, then for every line that it is sent."""

    def __init__(self, module: str, call: str, **settings: str) -> None:
        code = f"import warnings; warnings.simplefilter('ignore')\nfrom {module} import *\n{call}"
        env = {**os.environ, "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", **settings}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.first = self._answer()

    def turn(self) -> Any:
        """What it answers to a line."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("saccade:"):
                return json.loads(line.removeprefix("saccade:"))
        self.close()
        raise AssertionError("a side of the bench ended before it was done")


def tell(value: object) -> None:
    """Sends a side's answer to the bench; the mark tells it apart from what libraries print."""
    sys.stdout.write(f"saccade:{json.dumps(value)}\n")
    sys.stdout.flush()


def peak() -> float:
    """GB that this process has held at most. (The kernel's own count: `getrusage` would inherit the parent's.)"""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return int(found[1]) * 1024 / 1e9
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def forget_peak() -> None:
    """`peak` counts from now on, where the kernel can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def row(
    case: str,
    peer: str,
    ours: float,
    theirs: float | None,
    ratio: float | None = None,
    unit: str = "ms",
    spread: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """A line of a bench's table; ratio above 1 = saccade is better. Times come in seconds and are shown in ms.

    theirs = None: the peer is not installed, so there is no ratio either. spread: of the ratio, where it is known.
    """
    scale = 1e3 if unit == "ms" else 1.0
    if theirs is None:
        return {"case": case, "peer": peer, "ours": round(ours * scale, 4), "theirs": None, "unit": unit, "ratio": None}
    return {
        "case": case,
        "peer": peer,
        "ours": round(ours * scale, 4),
        "theirs": round(theirs * scale, 4),
        "unit": unit,
        "ratio": round(theirs / ours if ratio is None else ratio, 3),
        **({} if spread is None else {"spread": [round(each, 3) for each in spread]}),
    }


def spent(run: Run, repeats: int = 1) -> float:
    """Seconds that a run takes, the mean of some in a row."""
    begin = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - begin) / repeats
