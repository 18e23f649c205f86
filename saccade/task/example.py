"""`Example`: what a model read and wrote once, so that it can be looked into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from saccade.model.input import Input

TOKEN = 8  # bytes of a token


class Example(NamedTuple):
    """x: the inputs by name, a row each; read: without an X, the tokens of the prompt; written: the tokens that were
    written, without the end; ended: whether the end was written too.
    """

    x: Mapping[str, Input]
    read: list[int]
    written: list[int]
    ended: bool

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        inputs = sum(value.nbytes for each in self.x.values() for value in each.values.values())
        return inputs + TOKEN * (len(self.read) + len(self.written))
