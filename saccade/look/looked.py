"""`Looked` and `Layered`: what the pictures need to know of a look and of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from saccade.field.unit import Side
from saccade.look.cuts import Borders
from saccade.look.map import Map
from saccade.look.statistic import Statistic


class Layered(Protocol):
    """What the pictures need to know of a layer; `Layer` is one."""

    @property
    def name(self) -> str:
        """As in `model.named_modules()`."""

    @property
    def kind(self) -> str:
        """self, cross or asks."""

    @property
    def rows(self) -> str:
        """The side that looks."""

    @property
    def columns(self) -> str:
        """The side that is looked at."""

    @property
    def heads(self) -> int:
        """How many there are."""

    @property
    def borders(self) -> Borders | None:
        """Of the windows that it cuts a picture into."""


class Looked(Protocol):
    """What the pictures need to know of a look; `Look` is one."""

    sides: dict[str, Side]

    @property
    def layers(self) -> Sequence[Layered]:
        """Those that looked."""

    @property
    def usual(self) -> str:
        """The map to begin with."""

    @property
    def output(self) -> str:
        """What was written, or said at once."""

    def map(self, *args: Any, **options: Any) -> Map:
        """Who looked at whom; for the options see `Look.map`."""

    def statistics(self, layer: str) -> list[Statistic]:
        """Of each head."""
