"""`saccade data`: a split of a run's data as a file, for another system to answer."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from saccade.command.option import Json


def data(
    run: Annotated[str, typer.Argument(help="A run.")],
    out: Annotated[
        list[str],
        typer.Option(help="A .tsv, .csv or .jsonl; or a file of lines for each column: --out val.en --out val.de"),
    ],
    split: Annotated[str | None, typer.Option(help="train, val or test; the last there is by default.")] = None,
    as_json: Json = False,
) -> None:
    """Write a split of a run's data as the run's own files are, so that another system can be compared on it."""
    from saccade.data.report import counted
    from saccade.learn.heldout import write_split
    from saccade.store.load import load

    found = write_split(load(run), split, out)
    if as_json:
        typer.echo(json.dumps({"run": run, **found._asdict()}))
        return
    typer.echo(f"{', '.join(found.files)}: {found.split}, {counted(found.rows, 'row')}")
