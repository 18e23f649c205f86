"""How time and memory grow with the length of a sequence."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from saccade.bench.race import forget_peak, peak


def exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """x of values ~ length ** x: the slope of the logarithms over the upper half of the lengths, by least squares."""
    half = len(lengths) // 2 if len(lengths) > 5 else 0  # a line through two noisy points says little
    x, y = ([math.log(each) for each in some[half:]] for some in (lengths, values))
    mean = sum(x) / len(x)
    spread = sum((each - mean) ** 2 for each in x)
    return sum((a - mean) * b for a, b in zip(x, y, strict=True)) / spread


def peaks(lengths: Sequence[int], prepare: Callable[[int], Callable[[], object]]) -> list[float]:
    """GB that a run adds at its peak, for each length, beyond what it was prepared with."""
    prepare(16)()  # what torch itself keeps from its first call on is not counted
    found = []
    for T in lengths:
        run = prepare(T)
        forget_peak()
        before = peak()
        run()
        found.append(peak() - before)
    return found


def alone(module: str, *arguments: Any) -> list[float]:
    """`memory(*arguments)` of a module, in a process that gives back at once what it frees, so that no length stands
    on another's memory.
    """
    code = f"from {module} import memory\nprint(memory(*{arguments!r}))"
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    found: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
