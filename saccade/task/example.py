"""`Example`: what a model read and wrote once, so that it can be looked into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from saccade.model.input import Input


class Example(NamedTuple):
    """x: the inputs by name, a row each; read: of an output that stands alone, the tokens it goes on from; written:
    the tokens that were written, without the end; ended: whether the end was written too.
    """

    x: Mapping[str, Input]
    read: list[int]
    written: list[int]
    ended: bool

    @property
    def size(self) -> int:
        """About how many positions it has."""
        inputs = sum(next(iter(each.values.values()))[0].numel() for each in self.x.values())
        return inputs + len(self.read) + len(self.written)
