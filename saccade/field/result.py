"""`Result`: what a model answers to one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

CUT = "cut: "  # how a note begins that is not of the input


class Result(NamedTuple):
    """value: a text, a label, numbers, a picture; text: the same in words; score: how sure the model is of it (a
    log-probability); note: why there is none, or why it was cut.
    """

    value: Any
    text: str
    score: float
    note: str | None = None


def unanswered(results: Sequence[Result]) -> dict[str, int]:
    """How many inputs got no answer (empty or too long) and how many answers were cut, where there are any."""
    notes = [each.note for each in results if each.note is not None]
    cut = sum(each.startswith(CUT) for each in notes)
    return {name: count for name, count in (("unfit", len(notes) - cut), ("cut", cut)) if count}
