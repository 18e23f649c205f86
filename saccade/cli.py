"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from saccade import __version__
from saccade.error import SaccadeError, nearest

app = typer.Typer(
    name="saccade",
    help="Train, run and look inside attention models: any X to any Y.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


BENCHES = ("attention", "model", "deep")
KINDS = ("models", "masks", "scores", "normalisers", "positions", "kernels")


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo() -> None:
    """Show what attention does: the party, a sentence, and an attention learned while you watch."""
    from rich.console import Console

    from saccade.demo import demo as run

    run(Console())


@app.command("list")
def list_(
    kind: Annotated[str | None, typer.Argument(help="One of: " + ", ".join(KINDS))] = None, as_json: Json = False
) -> None:
    """What there is, with the way it is written."""
    if kind is not None and kind not in KINDS:
        raise SaccadeError(f"there is no list of {kind!r}; {nearest(kind, KINDS)}")
    found = {each: _entries(each) for each in (KINDS if kind is None else (kind,))}
    if as_json:
        typer.echo(json.dumps(found))
        return
    if kind == "models":
        _models(found["models"])
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    for name, entries in found.items():
        table = Table(title=name, title_justify="left", box=None, show_header=False, padding=(0, 2))
        for entry in entries:
            table.add_row(Text(entry["written"]), Text(entry["meaning"]))
        Console().print(table)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="What to measure: " + ", ".join(BENCHES))],
    seconds: Annotated[float | None, typer.Option(min=0.0, help="How long each line is measured.")] = None,
    as_json: Json = False,
) -> None:
    """Side by side with the peers, in one run: medians of interleaved rounds; a ratio above 1 = saccade is better."""
    if name not in BENCHES:
        raise SaccadeError(f"no bench is called {name!r}; {nearest(name, BENCHES)}")
    rows = []
    from importlib import import_module

    measure = import_module(f"saccade.bench.{name}").rows
    for row in measure() if seconds is None else measure(seconds):
        rows.append(row)
        if not as_json:
            times = f"{row['ours']:>10.3f} {row['theirs']:>10.3f} {row['unit']:<3}"
            typer.echo(f"{row['case']:<62} {row['peer']:<22} {times} {row['ratio']:>7.2f}x")
    if as_json:
        typer.echo(json.dumps({"rows": rows}))


@app.command("import")
def import_(
    source: Annotated[str, typer.Argument(help="A Hugging Face folder: config.json and safetensors.")],
    run: Annotated[str, typer.Argument(help="The run folder to make.")],
) -> None:
    """Make a run of a Hugging Face folder."""
    from saccade.store import load

    made = load(source)
    made.save(run)
    count = sum(each.numel() for each in made.model.parameters())
    typer.echo(f"{run}: {made.family}, {count:,} parameters")


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    folder: Annotated[str, typer.Argument(help="The folder to make.")],
    to: Annotated[str, typer.Option("--format", help="hf: a folder that transformers opens.")] = "hf",
    family: Annotated[str | None, typer.Option(help="The kind to write, where the run does not tell.")] = None,
) -> None:
    """Write a run for others to open."""
    from saccade.store import export as write
    from saccade.store import load

    if to != "hf":
        raise SaccadeError(f"there is no format {to!r}; {nearest(to, ['hf'])}")
    write(load(run), folder, family)
    typer.echo(folder)


@app.command()
def size(
    model: Annotated[str, typer.Argument(help="A model of the zoo: see `saccade list models`.")],
    length: Annotated[int | None, typer.Option(min=1, help="Tokens of one sequence.")] = None,
    as_json: Json = False,
) -> None:
    """Layers, width, heads, parameters, memory and FLOPs of a model, counted on the model itself."""
    from saccade.zoo.size import size as measure

    found = {"model": model, **measure(model, length=length)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for key, value in found.items():
        shown = value
        if key.startswith("bytes"):
            shown = f"{value / 1e9:,.2f} GB"
        elif isinstance(value, int):
            shown = f"{value:,}" if value < 1e12 else f"{value:.3e}"
        typer.echo(f"{key.replace('_', ' '):<18} {shown}")


def _models(entries: list[dict[str, Any]]) -> None:
    """The lecture's table with our own counts beside its own."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for name in ("model", "layers", "width", "heads", "parameters", "lecture", "data", "training"):
        table.add_column(name, no_wrap=name != "training", justify="left" if name in ("model", "training") else "right")
    for entry in entries:
        table.add_row(
            *(
                f"{entry[key]:,}" if key != "name" else entry[key]
                for key in ("name", "layers", "width", "heads", "parameters")
            ),
            *(entry[key] for key in ("lecture", "data", "training")),
        )
    Console().print(table)


def _zoo() -> list[dict[str, Any]]:
    from saccade.zoo.names import LECTURE, ZOO
    from saccade.zoo.size import size as measure

    entries = []
    for name in ZOO:
        found, row = measure(name), LECTURE.get(name)
        counts = {key: found[key] for key in ("layers", "width", "heads", "parameters")}
        said = {"lecture": row.parameters, "data": row.data, "training": row.training} if row else {}
        entries.append({"name": name, **counts, **({"lecture": "", "data": "", "training": ""} | said)})
    return entries


def _entries(kind: str) -> list[dict[str, Any]]:
    """The names of a table with how each is written and the first line of what it says of itself."""
    if kind == "models":
        return _zoo()
    import inspect

    from saccade.attend import kernel, mask, normaliser, position, score

    tables: dict[str, dict[str, Any]] = {
        "masks": mask.MASKS | {"causal": type(mask.causal), "everyone": type(mask.everyone)},
        "scores": score.SCORES,
        "normalisers": normaliser.NORMALISERS,
        "positions": position.POSITIONS,
        "kernels": kernel.KERNELS,
    }
    filled = {"scores": ("width", "heads"), "positions": ("head_width", "heads", "input_width")}  # by the layer
    entries = []
    for name, entry in tables[kind].items():
        parameters = [] if kind == "kernels" else list(inspect.signature(entry).parameters.values())
        own = [each for each in parameters if each.name not in filled.get(kind, ())]
        shown = ", ".join(each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in own)
        first = (inspect.getdoc(entry) or "").split("\n\n")[0].replace("\n", " ")
        entries.append({"name": name, "written": f"{name}({shown})" if shown else name, "meaning": first})
    return entries


def main() -> None:
    """The entry point: what the caller can mend is told in one sentence, with exit code 2."""
    try:
        app()
    except SaccadeError as problem:
        sys.stderr.write(f"saccade: {problem}\n")
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
