"""`Metrics`: what `/metrics` counts, in Prometheus' text format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from saccade.serve.inspect import Looks
from saccade.serve.served import Served


class Metrics:
    """Counts of one server; its engines keep their own."""

    def __init__(self) -> None:
        self.started = time.time()
        self.answers: Counter[int] = Counter()
        self.left = 0

    def answered(self, status: int) -> None:
        """One more answer with this status."""
        self.answers[status] += 1

    def text(self, served: Iterable[Served], kept: int, looks: Looks) -> str:
        """All of it, a line a number."""
        runs = list(served)
        lines = [
            *_labelled("saccade_answers_total", "counter", "status", self.answers.items()),
            *_labelled("saccade_tokens_total", "counter", "model", ((each.name, each.engine.written) for each in runs)),
            *_labelled("saccade_steps_total", "counter", "model", ((each.name, each.engine.steps) for each in runs)),
            *_labelled("saccade_sequences", "gauge", "model", ((each.name, each.engine.load) for each in runs)),
            *_single("saccade_clients_left_total", "counter", self.left),
            *_single("saccade_kept_answers", "gauge", kept),
            *_single("saccade_inspections", "gauge", len(looks)),
            *_single("saccade_inspection_bytes", "gauge", looks.nbytes),
            *_single("process_start_time_seconds", "gauge", round(self.started, 3)),
        ]
        return "\n".join(lines) + "\n"


def _single(name: str, kind: str, value: float) -> list[str]:
    return [f"# TYPE {name} {kind}", f"{name} {value}"]


def _labelled(name: str, kind: str, label: str, values: Iterable[tuple[object, float]]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f'{name}{{{label}="{_escaped(key)}"}} {value}' for key, value in values)]


def _escaped(label: object) -> str:
    return str(label).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
