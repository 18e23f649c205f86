"""`saccade list` and `saccade size`: what there is by name, and how large the models are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from saccade.command.option import Json
from saccade.command.sheet import sheet, show
from saccade.error import SaccadeError, nearest

KINDS = (
    "recipes",
    "keys",
    "models",
    "masks",
    "scores",
    "normalisers",
    "positions",
    "summaries",
    "kernels",
    "mixers",
    "updates",
    "data",
)


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
        TABLES.get(name, _print_table)(name, entries)


def size(
    model: Annotated[
        str, typer.Argument(help="A model of the zoo (see `saccade list models`), a run or a Hugging Face folder.")
    ],
    length: Annotated[int | None, typer.Option(min=1, help="Tokens of one sequence.")] = None,
    as_json: Json = False,
) -> None:
    """Layers, width, heads, parameters, memory and FLOPs of a model, counted on the model itself."""
    found = {"model": model, **_size_of(model, length)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for key, value in found.items():
        shown = value
        if key.startswith("bytes"):
            shown = f"{value / 1e9:,.2f} GB" if value >= 1e7 else f"{value / 1e6:,.2f} MB"
        elif isinstance(value, int):
            shown = f"{value:,}" if value < 1e12 else f"{value:.3e}"
        typer.echo(f"{key.replace('_', ' '):<18} {shown}")


def _size_of(model: str, length: int | None) -> dict[str, Any]:
    """The size of a model of the zoo, or of the model in a folder, with the bytes that its weights take as they are."""
    from pathlib import Path

    from saccade.zoo.names import ZOO
    from saccade.zoo.size import size as measure

    if model in ZOO or not Path(model).is_dir():
        return measure(model, length=length)
    from saccade.store.load import load

    made = load(model)
    stored = sum(each.nbytes for each in made.model.tensors().values())
    found = measure(made.model.config, length=length)
    return {"step": made.step, **found, "bytes_stored": stored}


def _print_table(name: str, entries: list[dict[str, Any]]) -> None:
    """What there is of one kind, with the way it is written and what it means."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=name, title_justify="left", box=None, show_header=False, padding=(0, 2))
    for entry in entries:
        table.add_row(Text(entry["written"]), Text(entry["meaning"]))
    show(table)


def _print_recipes(name: str, entries: list[dict[str, Any]]) -> None:
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


def _print_models(name: str, entries: list[dict[str, Any]]) -> None:
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
    show(table)


def _key_entries() -> list[dict[str, Any]]:
    """Every value of a recipe, in the order of its tables; those of [x.NAME] and [y] are the fields' own."""
    from saccade.recipes.write import as_value
    from saccade.task.pair import keys

    entries = []
    for path, takes, usual, needed, meaning in keys():
        written = path if needed or usual is None else f"{path}={as_value(usual)}"
        full = f"{meaning} ({takes}{', needed' if needed else ''})"
        entries.append({"name": path, "takes": takes, "default": usual, "written": written, "meaning": full})
    return entries


def _print_data(name: str, entries: list[dict[str, Any]]) -> None:
    """The data sets: what each is, where it comes from, and which of its files are there."""
    from saccade.data.named import folders

    looked = " and then in ".join(map(str, folders()))
    typer.echo(f"data sets are looked for in {looked} (set SACCADE_DATA to a folder of your own); nothing is fetched")
    for entry in entries:
        there = sum(each["state"] == "there" for each in entry["files"])
        found = f"{there} of {len(entry['files'])} files are there" if entry["files"] else "made here, without files"
        typer.echo(f"{entry['written']}: {found}\n    {entry['meaning']}")
        if entry["files"]:
            typer.echo(f"    source: {entry['source']}; licence: {entry['licence']}")
        for each in entry["files"]:
            typer.echo(f"    {STATES[each['state']]}  {each['path']}  sha256 {each['sha256']}")


def _data_entries() -> list[dict[str, Any]]:
    """The data sets that have a name, and those that are made here."""
    from saccade.data.generated import ABOUT
    from saccade.data.named import DATA, folders, states

    looked = [str(each) for each in folders()]
    sets = [
        {
            "name": name,
            "written": f"data.name={name}",
            "meaning": f"{known.about} (task {known.task})",
            "source": known.origin,
            "licence": known.licence,
            "looked_in": [str(Path(each, name)) for each in looked],
            "files": [each._asdict() for each in states(name)],
        }
        for name, known in DATA.items()
    ]
    made = {"source": "made here", "licence": "", "looked_in": [], "files": []}
    return sets + [
        {"name": name, "written": f"data.name={name}", "meaning": about, **made} for name, about in ABOUT.items()
    ]


def _zoo_entries() -> list[dict[str, Any]]:
    """The models of the zoo with their counts, beside what the lecture says of them."""
    from saccade.zoo.names import LECTURE, ZOO
    from saccade.zoo.size import counts

    entries = []
    for name in ZOO:
        row = LECTURE.get(name)
        said = {"lecture": row.parameters, "data": row.data, "training": row.training} if row else {}
        entries.append({"name": name, **counts(name), **({"lecture": "", "data": "", "training": ""} | said)})
    return entries


def _entries(kind: str) -> list[dict[str, Any]]:
    """The entries of one kind: the name, how it is written, and the first line of its docstring."""
    if kind == "models":
        return _zoo_entries()
    if kind == "recipes":
        from saccade.recipes.read import header, names

        return [{"name": name, **header(name)} for name in names()]
    if kind == "keys":
        return _key_entries()
    if kind == "data":
        return _data_entries()
    import inspect

    from saccade.attend import kernel, mask, normaliser, position, score, summary
    from saccade.model.mixer import MIXERS
    from saccade.model.pairs import UPDATES

    tables: dict[str, dict[str, Any]] = {
        "masks": mask.MASKS | {"causal": type(mask.causal), "everyone": type(mask.everyone)},
        "scores": score.SCORES,
        "normalisers": normaliser.NORMALISERS,
        "positions": position.POSITIONS,
        "summaries": summary.SUMMARIES,
        "kernels": kernel.KERNELS,
        "mixers": MIXERS,
        "updates": UPDATES,
    }
    filled = {  # arguments that the layer gives, so that a spec does not
        "scores": ("width", "heads"),
        "positions": ("head_width", "heads", "input_width"),
        "summaries": ("heads",),
        "mixers": ("width", "causal", "number", "parts"),
        "updates": ("config", "norm"),
    }
    entries = []
    for name, entry in tables[kind].items():
        parameters = [] if kind == "kernels" else list(inspect.signature(entry).parameters.values())
        own = [each for each in parameters if each.name not in filled.get(kind, ())]
        shown = ", ".join(each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in own)
        first = (inspect.getdoc(entry) or "").split("\n\n")[0].replace("\n", " ")
        entries.append({"name": name, "written": f"{name}({shown})" if shown else name, "meaning": first})
    return entries


TABLES = {"recipes": _print_recipes, "models": _print_models, "data": _print_data}
STATES = {"there": "there    ", "missing": "missing  ", "another": "not it   "}
