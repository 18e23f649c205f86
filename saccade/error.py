"""`SaccadeError`, the one error that a caller can mend; a warning; and the names nearest to one that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SaccadeError(ValueError):
    """Bad input. The message says what was wrong, what was expected and what to do."""


class SaccadeWarning(UserWarning):
    """What was done in place of what was asked for, where that is no error; the command line prints it as a line."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest names, or all of them."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(each) for each in close) + "?"
    return "there are: " + ", ".join(known)
