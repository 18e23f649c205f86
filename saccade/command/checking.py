"""`saccade check symmetry`: what a model promises, and whether it keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saccade.command.option import Json
from saccade.command.sheet import sheet
from saccade.command.waiting import waiting
from saccade.error import SaccadeError, nearest

if TYPE_CHECKING:
    from rich.text import Text

    from saccade.model.model import Model
    from saccade.model.move import Symmetry

CHECKS = ("symmetry",)


def check(
    law: Annotated[str, typer.Argument(help="What to check: " + ", ".join(CHECKS))],
    what: Annotated[str, typer.Argument(metavar="RUN|MODEL", help="A run, or a model (see `saccade list models`).")],
    examples: Annotated[int, typer.Option(min=1, help="Held-out examples of a run to try.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the orders and other inputs that are drawn.")] = 0,
    as_json: Json = False,
) -> None:
    """Which symmetries a model promises, by its parts, and how far it is from keeping each.

    Ends with 1 where a promise is broken.
    """
    if law not in CHECKS:
        raise SaccadeError(f"no check is called {law!r}; {nearest(law, CHECKS)}")
    with waiting("reading"):
        found, told, words = _of_run(what, examples, seed) if Path(what).is_dir() else _of_model(what, seed)
    broken = [each for each in found if each.broken]
    if as_json:
        rows = [_described(each) for each in found]
        typer.echo(json.dumps({"what": what, "tried": told, "kept": not broken, "moves": words, "rows": rows}))
    else:
        _print(what, told, words, found)
    if broken:
        raise typer.Exit(1)


def _of_run(folder: str, examples: int, seed: int) -> tuple[list[Symmetry], str, dict[str, str]]:
    """The symmetries of a run, on what they were tried, and what was done."""
    from saccade.data.report import counted
    from saccade.learn.symmetry import symmetries_of, words_of
    from saccade.store.load import load

    run = load(folder)
    found, count = symmetries_of(run, examples, seed)
    tried = counted(count, "held-out example") if count else "an input at random (its data are not there)"
    return found, tried, _words(run.model) | words_of(run)


def _of_model(name: str, seed: int) -> tuple[list[Symmetry], str, dict[str, str]]:
    """The same of a model of the zoo, with random weights and few of each part."""
    import torch

    from saccade.model.symmetry import symmetries
    from saccade.zoo.build import build
    from saccade.zoo.names import named
    from saccade.zoo.narrow import narrow

    config, made = named(name), narrow(named(name))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build(made)
    layers = f"{made.encoder + made.decoder} of {config.encoder + config.decoder} layers"
    told = f"random weights, {layers}, {made.width} of {config.width} channels: it is about parts, not their sizes"
    return symmetries(model, seed=seed), told, _words(model)


def _words(model: Model) -> dict[str, str]:
    """What is done with what the model reads, by the symmetry's name."""
    from saccade.model.symmetry import moves_of

    return moves_of(model)


def _described(each: Symmetry) -> dict[str, Any]:
    kept = None if each.error is None else each.error <= each.tolerance
    own = {name: getattr(each, name) for name in ("where", "part", "layers", "symmetry", "promised", "because")}
    return own | {"error": each.error, "tolerance": each.tolerance, "kept": kept, "broken": each.broken}


def _print(what: str, told: str, words: Mapping[str, str], found: list[Symmetry]) -> None:
    """A row for each part, then for the model, with a column for each symmetry; below, why what is not promised."""
    from rich.table import Table

    from saccade.model.move import TOLERANCE

    page = sheet()
    page.print(f"{what}: {told}; float64, kept: at most {TOLERANCE:g} of the largest output apart", soft_wrap=True)
    names = list(dict.fromkeys(each.symmetry for each in found))
    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("", "part", *names):
        table.add_column(head, no_wrap=head != "part")
    rows: dict[tuple[str, str], dict[str, Symmetry]] = {}
    for each in found:
        rows.setdefault((each.where, each.part), {})[each.symmetry] = each
    before = ""
    for (where, part), cells in rows.items():
        if where == "model" != before:
            table.add_section()
        layers = max(each.layers for each in cells.values())
        times = f"  x {layers}" if layers > 1 else ""
        table.add_row(where if where != before else "", f"{part}{times}", *(_cell(cells.get(name)) for name in names))
        before = where
    page.print(table)
    for name in names:
        page.print(f"{name}: {words.get(name, '')}", soft_wrap=True)
        whys = dict.fromkeys(e.because for e in found if e.symmetry == name and e.where == "model" and e.because)
        for why in whys:
            page.print(f"  not promised, because {why}", soft_wrap=True, style="dim")
    for each in found:
        if each.broken:
            page.print(
                f"BROKEN: {each.where} {each.part} promises {each.symmetry} and is {each.error:.1e} off", style="red"
            )


def _cell(each: Symmetry | None) -> Text:
    """Whether it is kept, with the error."""
    from rich.text import Text

    if each is None:
        return Text("")
    error = "" if each.error is None else f"{each.error:.0e}" if each.error else "0"
    if each.broken:
        return Text(f"BROKEN {error}", style="bold red")
    if each.promised:
        return Text(f"kept {error}" if error else "promised", style="green" if error else "")
    return Text(f"no {error}".rstrip(), style="dim")
