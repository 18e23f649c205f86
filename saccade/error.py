"""The one error of the house: something the caller can mend, told in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SaccadeError(ValueError):
    """Bad input. The message says what was wrong, what was expected and what to do."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest names, or all of them."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(each) for each in close) + "?"
    return "there are: " + ", ".join(known)
