"""Options that several commands take."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]

Parts = Annotated[
    list[str] | None,
    typer.Option("--parts", metavar="MODULE:NAME", help="A score, mask or mixer of your own that a run names."),
]


def options_of(given: list[str] | None) -> dict[str, Any]:
    """`beam=5` as Python's values."""
    from saccade.recipes.read import option_of

    return dict(map(option_of, given or []))
