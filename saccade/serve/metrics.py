"""`Metrics`: what `/metrics` counts, in Prometheus' text format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from saccade.serve.looks import Looks
from saccade.serve.opened import Opened


class Metrics:
    """Counts of one server; its engines keep their own."""

    def __init__(self) -> None:
        self.started = time.time()
        self.answers: Counter[int] = Counter()
        self.left = 0

    def answered(self, status: int) -> None:
        """One more answer with this status."""
        self.answers[status] += 1

    def text(self, opened: Iterable[Opened], kept: int, looks: Looks) -> str:
        """All of it, a line a number."""
        runs = list(opened)
        lines = [
            *_table("saccade_answers_total", "counter", "status", self.answers.items()),
            *_table("saccade_tokens_total", "counter", "model", ((each.name, each.engine.written) for each in runs)),
            *_table("saccade_steps_total", "counter", "model", ((each.name, each.engine.steps) for each in runs)),
            *_table("saccade_sequences", "gauge", "model", ((each.name, each.engine.load) for each in runs)),
            *_one("saccade_clients_left_total", "counter", self.left),
            *_one("saccade_kept_answers", "gauge", kept),
            *_one("saccade_inspections", "gauge", len(looks)),
            *_one("saccade_inspection_bytes", "gauge", looks.nbytes),
            *_one("process_start_time_seconds", "gauge", round(self.started, 3)),
        ]
        return "\n".join(lines) + "\n"


def _one(name: str, kind: str, value: float) -> list[str]:
    return [f"# TYPE {name} {kind}", f"{name} {value}"]


def _table(name: str, kind: str, label: str, values: Iterable[tuple[object, float]]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f'{name}{{{label}="{_escaped(key)}"}} {value}' for key, value in values)]


def _escaped(label: object) -> str:
    return str(label).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
