"""Recipes as they are read: by name, from TOML or from plain values, with options over them. An unknown key is refused,
with its path and line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from saccade.config import read
from saccade.error import SaccadeError, nearest
from saccade.recipe import Origin, Recipe, plain
from saccade.recipes.earlier import moved, paths, today


def names() -> list[str]:
    """The built-in recipes."""
    return sorted(each.name.removesuffix(".toml") for each in _built_in().iterdir() if each.name.endswith(".toml"))


def header(name: str) -> dict[str, str]:
    """What the comment at the head of a built-in recipe says: `# key: value` lines."""
    found = re.findall(r"^# (\w+): (.+)$", (_built_in() / f"{name}.toml").read_text(), re.MULTILINE)
    return dict(found)


def for_files(kinds: tuple[str, ...]) -> list[str]:
    """The built-in recipes for own files whose columns are of these kinds, where they name the kinds."""
    own = [name for name in names() if "--files" in header(name)["command"]]
    return [name for name in own if _kinds(recipe(name)) == kinds]


def recipe(source: str | Path | Recipe, options: Iterable[str] = ()) -> Recipe:
    """A recipe from a built-in name, a TOML file or a Recipe, with options `a.b=value` over it."""
    options = list(options)
    if isinstance(source, Recipe):
        return from_values(plain(source), options) if options else source
    text = _read_text(source)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SaccadeError(f"{source} is no TOML: {problem}") from None
    return from_values(values, options, str(source), text)


def from_values(
    values: Mapping[str, Any], options: Iterable[str] = (), source: str = "recipe", text: str = ""
) -> Recipe:
    """A recipe from plain values; an error names the dotted path and, where it is known, the line."""
    given = dict(map(option_of, options))
    brought = frozenset(each for path in given for each in (path, *paths(path, values)))
    origin = Origin(source, text, brought, moved(values))
    values = _without_model(values, given)
    for path, value in given.items():
        # `-o key=` with a key of 0.1.0 also takes away what stands at the key's place of today.
        for each in (path, *(paths(path, values) if value is None else ())):
            values = _with_value(values, each.split("."), value)
    values = today(values)
    if "sizes" in values:
        values["sizes"] = _sizes_beside(values["sizes"], given, brought)
    if values.get("start") is None and isinstance(values.get("model"), dict) and "name" in values["model"]:
        values["model"] = _from_zoo(dict(values["model"]))
    try:
        made = read(Recipe, values)
    except SaccadeError as problem:
        refused = _located(problem, values, origin)
        made = _read_for_sizes(values, refused)
        made._refused = refused
    made._origin = origin
    return made


def _located(problem: SaccadeError, values: Mapping[str, Any], origin: Origin) -> SaccadeError:
    """The problem of a recipe's values with its path and, where it is known, its line."""
    message = str(problem).removeprefix(f"{Recipe.__name__}: ")
    if message.startswith("model: "):
        message = _unknown_mixer(values["model"]) or message
    return origin.error(message.split(":")[0].split(" ")[0], message)


def _read_for_sizes(values: Mapping[str, Any], refused: SaccadeError) -> Recipe:
    """A recipe whose [model] does not hold together with the options, but does with what every size has of its own, as
    a width does that fits the heads of the sizes alone; raises `refused` where there is no such recipe. The sizes lay
    their own values over these.
    """
    sizes = values.get("sizes")
    models = [each.get("model") for each in sizes] if isinstance(sizes, list) and _are_tables(*sizes) else []
    if not models or not _are_tables(*models, values.get("model")):
        raise refused
    shared = {key: value for key, value in models[-1].items() if all(key in each for each in models)}
    try:
        return read(Recipe, _merged(values, {"model": shared}))
    except SaccadeError:
        raise refused from None


def at_size(made: Recipe, name: str) -> Recipe:
    """The recipe with the values of one of its sizes (`full`: none), and no sizes left. With a start, whose model and
    fields come along, a size is its [train] alone.
    """
    if not made.sizes:
        return made
    size = next((each for each in made.sizes if each.name == name), None)
    if size is None and made._refused is not None:
        raise made._refused
    laid = {} if size is None else size.tables()
    if made.start is not None:
        laid = {"train": laid.get("train", {})}
    values = {**_merged(plain(made), laid), "size": "auto", "sizes": []}
    try:
        found = from_values(values, source=f"{made._origin.source}, size {name}")
    except SaccadeError as problem:
        raise SaccadeError(f"{problem} (-o size=full leaves the recipe's own values)") from None
    found._origin = made._origin
    return found


def option_of(text: str) -> tuple[str, Any]:
    """The path and the value of `a.b=value`; a value that is no TOML is taken as text, and none at all as None."""
    path, equals, written = text.partition("=")
    if not equals or not path.strip():
        raise SaccadeError(f"an option is written a.b=value; got {text!r}")
    if not written.strip():
        return path.strip(), None
    try:
        (value, *more) = tomllib.loads(f"value = {written}").values()
    except tomllib.TOMLDecodeError:
        value, more = written, []
    if more:
        raise SaccadeError(f"an option is one value on one line; got {text!r}: give each its own -o")
    return path.strip(), value


def _built_in() -> Any:
    return resources.files("saccade") / "recipes"


def _kinds(made: Recipe) -> tuple[Any, ...]:
    """The kinds of the columns as a recipe names them: the inputs, then the output."""
    return (*(each.get("kind") for each in made.x.values()), made.y.get("kind"))


def _read_text(source: str | Path) -> str:
    """The text of a recipe's file; a bare name is a built-in one."""
    if isinstance(source, str) and source in names():
        return str((_built_in() / f"{source}.toml").read_text())
    path = Path(source)
    if path.suffix != ".toml":
        raise SaccadeError(
            f"no recipe is called {str(source)!r}; {nearest(str(source), names())} (or give a .toml file)"
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise SaccadeError(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise SaccadeError(f"{path} is not UTF-8") from None


def _from_zoo(model: dict[str, Any]) -> dict[str, Any]:
    """A model of the zoo by its name, with changes; the size of its vocabulary follows from the data (0)."""
    from saccade.zoo.names import named

    base = named(str(model.pop("name"))).model_dump()
    return {**base, "vocab": 0, **model}


def _unknown_mixer(model: Mapping[str, Any]) -> str | None:
    """What is wrong with a mixer that does not exist: it is told before what does not go with it."""
    from saccade.model.mixer import check_names

    stacks = {name: model[name] for name in ("encoder", "decoder") if isinstance(model.get(name), dict)}
    given = {"mixer": model.get("mixer"), "encoder_mixer": model.get("encoder_mixer")}
    given |= {f"{name}.mixer": table.get("mixer") for name, table in stacks.items()}
    for key, value in given.items():
        try:
            check_names([each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)])
        except SaccadeError as problem:
            return f"model.{key}: {problem}"
    return None


def _without_model(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe without its own [model], where an option brings another: by name, or as weights to start from. Where
    the recipe itself has a start, its [model] is what it changes of the model found there, and stays.
    """
    if values.get("start") is not None:
        return {"model" if key == "changes" else key: value for key, value in values.items()}
    brought = given.get("model.name") is not None or given.get("start") is not None
    return {key: value for key, value in values.items() if key != "model" or not brought}


def _with_value(table: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """A copy of the table with a value at a path; None takes away what stood there."""
    first, *rest = path
    if not rest:
        return {key: each for key, each in {**table, first: value}.items() if key != first or value is not None}
    inner = table.get(first, {})
    if not isinstance(inner, dict):
        raise SaccadeError(f"{first} holds a value, not a table: {first}.{'.'.join(rest)} cannot be set")
    return {**table, first: _with_value(inner, rest, value)}


def _without_value(table: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    """A copy of the table without the value at a path, nor one that stands where the path goes through."""
    first, *rest = path
    inner = table.get(first)
    if rest and isinstance(inner, dict):
        return {**table, first: _without_value(inner, rest)}
    return {key: each for key, each in table.items() if key != first}


def _merged(table: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The table with the values of another in place of its own, tables in it too."""
    inner = {key: _merged(table[key], each) for key, each in over.items() if _are_tables(table.get(key), each)}
    return {**table, **over, **inner}


def _are_tables(*values: Any) -> bool:
    return all(isinstance(each, dict) for each in values)


def _sizes_beside(sizes: Any, given: Mapping[str, Any], brought: Iterable[str]) -> Any:
    """The sizes without what options say: an option wins. A model that is brought by its name is left as it is."""
    if not isinstance(sizes, list) or not _are_tables(*sizes):
        return sizes  # to be refused
    for path in (*brought, *(["model"] if given.get("model.name") is not None else [])):
        sizes = [_without_value(each, path.split(".")) for each in sizes]
    return sizes
