"""`saccade list` and `saccade size`: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from saccade.command.option import Json
from saccade.command.sheet import sheet
from saccade.error import SaccadeError, nearest

KINDS = ("recipes", "keys", "models", "masks", "scores", "normalisers", "positions", "summaries", "kernels", "mixers")


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
    for name, entries in found.items():
        TABLES.get(name, _table)(name, entries)


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


def _table(name: str, entries: list[dict[str, Any]]) -> None:
    """What there is of one kind, with the way it is written and what it means."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=name, title_justify="left", box=None, show_header=False, padding=(0, 2))
    for entry in entries:
        table.add_row(Text(entry["written"]), Text(entry["meaning"]))
    sheet().print(table)


def _recipes(name: str, entries: list[dict[str, Any]]) -> None:
    """The commands, with what their recipes are about and what they took and reached when they were measured."""
    from rich.padding import Padding
    from rich.text import Text

    page = sheet()
    for entry in entries:
        page.print(Text(entry["command"], style="bold"))
        page.print(Padding(Text(entry["about"]), (0, 0, 0, 4), expand=False))
        minutes, _, how = entry.get("minutes", "").partition(" ")
        measured = f"{minutes} minutes {how}".rstrip() + f"; {entry['score']}" if "score" in entry else "not measured"
        page.print(Padding(Text(measured, style="dim"), (0, 0, 0, 4), expand=False))


def _models(name: str, entries: list[dict[str, Any]]) -> None:
    """The lecture's table with our own counts beside its own."""
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
    sheet().print(table)


def _keys() -> list[dict[str, Any]]:
    """Every value of a recipe, in the order of its tables; those of [x.NAME] and [y] are the fields' own."""
    from saccade.recipe import as_value
    from saccade.task.pair import keys

    entries = []
    for path, takes, usual, needed, meaning in keys():
        written = path if needed or usual is None else f"{path}={as_value(usual)}"
        told = f"{meaning} ({takes}{', needed' if needed else ''})"
        entries.append({"name": path, "takes": takes, "default": usual, "written": written, "meaning": told})
    return entries


def _zoo() -> list[dict[str, Any]]:
    from saccade.zoo.names import LECTURE, ZOO
    from saccade.zoo.size import counts

    entries = []
    for name in ZOO:
        row = LECTURE.get(name)
        said = {"lecture": row.parameters, "data": row.data, "training": row.training} if row else {}
        entries.append({"name": name, **counts(name), **({"lecture": "", "data": "", "training": ""} | said)})
    return entries


def _entries(kind: str) -> list[dict[str, Any]]:
    """The names of a table with how each is written and the first line of what it says of itself."""
    if kind == "models":
        return _zoo()
    if kind == "recipes":
        from saccade.recipe import header, names

        return [{"name": name, **header(name)} for name in names()]
    if kind == "keys":
        return _keys()
    import inspect

    from saccade.attend import kernel, mask, normaliser, position, score, summary
    from saccade.model.mixer import MIXERS

    tables: dict[str, dict[str, Any]] = {
        "masks": mask.MASKS | {"causal": type(mask.causal), "everyone": type(mask.everyone)},
        "scores": score.SCORES,
        "normalisers": normaliser.NORMALISERS,
        "positions": position.POSITIONS,
        "summaries": summary.SUMMARIES,
        "kernels": kernel.KERNELS,
        "mixers": MIXERS,
    }
    filled = {  # by the layer
        "scores": ("width", "heads"),
        "positions": ("head_width", "heads", "input_width"),
        "summaries": ("heads",),
        "mixers": ("width", "causal", "number"),
    }
    entries = []
    for name, entry in tables[kind].items():
        parameters = [] if kind == "kernels" else list(inspect.signature(entry).parameters.values())
        own = [each for each in parameters if each.name not in filled.get(kind, ())]
        shown = ", ".join(each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in own)
        first = (inspect.getdoc(entry) or "").split("\n\n")[0].replace("\n", " ")
        entries.append({"name": name, "written": f"{name}({shown})" if shown else name, "meaning": first})
    return entries


TABLES = {"recipes": _recipes, "models": _models}
