"""`saccade demo`, `serve` and `bench`: saccade shown, served over HTTP, and measured beside its peers."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from saccade.command.option import Json
from saccade.error import SaccadeError, nearest

BENCHES = (
    "attention",
    "model",
    "image",
    "deep",
    "train",
    "decode",
    "serve",
    "ways",
    "words",
    "long",
    "features",
    "graph",
    "detect",
)


def demo(
    run: Annotated[str, typer.Option(help="Where the trained run is kept; one that is there is used.")] = "runs/dates",
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="A value over the recipe's: train.steps=500")
    ] = None,
) -> None:
    """Show what attention does: the party, a sentence, and a translator of dates that is trained now (two minutes).

    On a terminal it ends by serving the translator with a page to look inside.
    """
    from rich.console import Console

    from saccade.demo import demo as show

    console = Console()
    show(console, run, options or [])
    if console.is_terminal and sys.stdin.isatty():
        from saccade.serve.serve import serve as open_door

        typer.echo("The same translator, to be looked into (Ctrl-C ends it):")
        open_door([run], port=0, say=typer.echo)


def serve(
    runs: Annotated[list[str], typer.Argument(help="Runs or Hugging Face folders: FOLDER, or NAME=FOLDER.")],
    host: Annotated[str, typer.Option(help="The address to listen at; another than this machine's needs a key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8017,
    api_key: Annotated[str | None, typer.Option(help="The key that clients must show.")] = None,
    api_key_file: Annotated[str | None, typer.Option(help="A file that holds it; else SACCADE_API_KEY.")] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Let in everybody who can reach the address.")] = False,
) -> None:
    """Serve runs over HTTP: OpenAI's routes, /v1/inspect, and a page to look inside."""
    from saccade.serve.serve import serve as open_door

    open_door(runs, host=host, port=port, key=api_key, key_file=api_key_file, auth=not no_auth, say=typer.echo)


def bench(
    name: Annotated[str, typer.Argument(help="What to measure: " + ", ".join(BENCHES))],
    seconds: Annotated[float | None, typer.Option(min=0.0, help="How long each line is measured.")] = None,
    out: Annotated[str | None, typer.Option(help="Draw it too, as .svg or .png (long, features).")] = None,
    as_json: Json = False,
) -> None:
    """Side by side with the peers, in one run: medians of interleaved rounds; a ratio above 1 = saccade is better."""
    if name not in BENCHES:
        raise SaccadeError(f"no bench is called {name!r}; {nearest(name, BENCHES)}")
    from importlib import import_module

    room = import_module(f"saccade.bench.{name}")
    if out is not None:
        from saccade.disk import writable
        from saccade.look.picture import file_for

        writable(file_for(out, ("svg", "png")))  # before minutes of measuring
        if not hasattr(room, "drawn"):
            raise SaccadeError(f"bench {name} draws no picture: leave out --out")
    rows = []
    for row in room.rows() if seconds is None else room.rows(seconds):
        rows.append(row)
        if not as_json:
            _print_row(row)
    if as_json:
        typer.echo(json.dumps({"rows": rows}))
    if out is not None:
        from saccade import disk

        target = file_for(out, ("svg", "png"))
        for what, drawing in room.drawn(rows).items():
            path = target.with_stem(f"{target.stem}-{what}")
            disk.write(path, drawing.to_png() if target.suffix.lower() == ".png" else drawing.to_svg().encode())
            typer.echo(f"{path}", err=as_json)


def _print_row(row: dict[str, Any]) -> None:
    """A line of a bench: the case, the peer, both numbers and how many times better ours is."""
    theirs, ratio = "-", "not installed" if row["peer"] else ""
    if row["theirs"] is not None:  # of exponents, none is better: they have no ratio
        theirs, ratio = f"{row['theirs']:.3f}", "" if row["ratio"] is None else f"{row['ratio']:.2f}x"
    if "spread" in row:
        ratio += " ({:.2f} to {:.2f})".format(*row["spread"])
    times = f"{row['ours']:>10.3f} {theirs:>10} {row['unit']:<3}"
    typer.echo(f"{row['case']:<62} {row['peer']:<22} {times} {ratio:>8}")
