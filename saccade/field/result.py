"""`Result`: what a model answers to one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

CUT = "cut: "  # how a note begins that says why an answer was cut; all others are about the input


class Result(NamedTuple):
    """value: a text, a label, numbers, None where there is no answer; text: the same as a string; score: how sure the
    model is of it (a log-probability); note: why there is no answer, why it was cut, or what of the input is unknown.

    probabilities: what else the answer might be, the likeliest first. Of a label: every label with its probability. Of
    a text with blanks: for each blank some words with theirs. None where nothing is known.
    """

    value: Any
    text: str
    score: float
    note: str | None = None
    probabilities: dict[str, float] | list[dict[str, float]] | None = None

    def described(self) -> dict[str, Any]:
        """What a program reads of it beside its text: the value where that is no text, the score, and what is known
        of the note and the probabilities.
        """
        value = {} if self.value in (self.text, None) else {"value": self.value}
        beside = {"note": self.note, "probabilities": self.probabilities}
        return {**value, "score": self.score, **{name: each for name, each in beside.items() if each}}


def unanswered(results: Sequence[Result]) -> dict[str, int]:
    """How many inputs got no answer (empty or too long) and how many answers were cut, where there are any."""
    unfit = sum(each.value is None and each.note is not None for each in results)
    cut = sum(each.value is not None and each.note is not None and each.note.startswith(CUT) for each in results)
    return {name: count for name, count in (("unfit", unfit), ("cut", cut)) if count}
