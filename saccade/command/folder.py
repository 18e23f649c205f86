"""`saccade import` and `saccade export`: runs from and to the formats of others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saccade.command.option import Json
from saccade.error import SaccadeError, nearest

if TYPE_CHECKING:
    from saccade.store.run import Run


def import_(
    source: Annotated[str, typer.Argument(help="A Hugging Face folder: config.json and safetensors; or a run.")],
    run: Annotated[str, typer.Argument(help="The run folder to make.")],
    scaling: Annotated[
        str | None, typer.Option(help="Read farther than trained: ntk(4), interpolate(4), yarn(4, 2048), ...")
    ] = None,
) -> None:
    """Make a run of a Hugging Face folder, or of a run with its rotary positions slowed."""
    from saccade.decode.quantise import parameters_of
    from saccade.store.load import load

    made = load(source, scaling=scaling)
    made.save(run)
    count = parameters_of(made.model)
    position = "" if scaling is None else f", {made.model.config.position}"
    typer.echo(f"{run}: {made.family or 'run'}, {count:,} parameters{position}")


def export(
    run: Annotated[str, typer.Argument(help="A run or a Hugging Face folder.")],
    folder: Annotated[str, typer.Argument(help="The folder to make.")],
    to: Annotated[str | None, typer.Option("--format", help="hf: a folder that transformers opens.")] = None,
    family: Annotated[str | None, typer.Option(help="The kind to write, where the run does not tell.")] = None,
    quantise: Annotated[
        str | None, typer.Option(help="int8: a run folder of smaller weights instead; tells what is lost.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run for others to open, or a smaller one of int8 weights."""
    from saccade.store.export import export as write
    from saccade.store.load import load

    if to is not None and to != "hf":
        raise SaccadeError(f"there is no format {to!r}; {nearest(to, ['hf'])}")
    if quantise is None:
        write(load(run), folder, family)
        typer.echo(json.dumps({"folder": folder, "format": "hf"}) if as_json else folder)
        return
    if to is not None or family is not None:
        raise SaccadeError("quantised weights are written as a run folder alone: leave out --format and --family")
    before = load(run)
    after = before.quantise(quantise)
    after.save(folder)
    found = {"folder": folder, "quantised": quantise, **_cost_of_quantising(before, after)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    less = " -> ".join(f"{found['bytes'][each] / 1e6:,.2f} MB" for each in ("before", "after"))
    typer.echo(f"{folder}: {quantise}, {less}, measured on {found['measured_on']}")
    for name, value in found["metrics"].items():
        numbers = [value] if isinstance(value, float) else value.values()
        typer.echo(f"  {name:<22} {' -> '.join(f'{each:.4f}' for each in numbers)}")


def _cost_of_quantising(before: Run, after: Run) -> dict[str, Any]:
    """What smaller weights save, and what they cost: by the run's own data or, where there are none, by its answers."""
    from saccade.data.report import counted
    from saccade.decode.quantise import drift
    from saccade.learn.validate import evaluate as measure

    both = {"before": before, "after": after}
    sizes = {key: sum(each.nbytes for each in run.model.tensors().values()) for key, run in both.items()}
    try:
        if before.recipe is None:
            raise SaccadeError("no recipe names any")
        found = {key: measure(run) for key, run in both.items()}
    except SaccadeError as problem:
        own = "random tokens" if before.model.decoder is None else "tokens that the model wrote itself"
        moved = {} if before.model.head is None else drift(before.model, after.model)
        return {"bytes": sizes, "measured_on": f"{own}, not on data ({problem})", "metrics": moved}
    where = f"{found['before']['split']}, {counted(found['before']['examples'], 'example')}"
    names = [name for name in found["before"]["metrics"] if name in found["after"]["metrics"]]
    metrics = {name: {key: each["metrics"][name] for key, each in found.items()} for name in names}
    return {"bytes": sizes, "measured_on": where, "metrics": metrics}
