"""Tables of values, checked when they are made: unknown keys are refused and the nearest name is told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from saccade.error import SaccadeError, nearest

Read = TypeVar("Read", bound="Config")


class Config(BaseModel):
    """The common ground: nothing unknown, nothing changed after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def read(kind: type[Read], values: Mapping[str, Any]) -> Read:
    """A configuration from plain values; what is wrong is told in one sentence with its dotted path."""
    try:
        return kind(**values)
    except ValidationError as problem:
        raise SaccadeError(sentence(kind, problem)) from None


def sentence(kind: type[Config], problem: ValidationError) -> str:
    """The first thing that is wrong; where a field takes several kinds of value, all of them are told."""
    unknown = [each for each in problem.errors() if each["type"] == "extra_forbidden"]
    first = (unknown or problem.errors())[0]  # a name that is misspelt is missing too
    path, known = _path(kind, first["loc"])
    where = ".".join(path) or kind.__name__
    if first["type"] == "extra_forbidden":
        inside = [each.path for each in keys(kind) if len(path) == 1 and each.path.endswith(f".{path[0]}")]
        return f"{where} is unknown; {f'did you mean {inside[0]!r}?' if inside else nearest(path[-1], known)}"
    same = [each for each in problem.errors() if _path(kind, each["loc"])[0] == path]
    told = " or ".join(dict.fromkeys(_told(kind, path, each) for each in same))
    got = "" if first["type"] == "missing" or isinstance(first["input"], dict) else f"; got {first['input']!r:.80}"
    return f"{where}: {told}{got}{_meant(first)}"


def _told(kind: type[Config], path: list[str], error: Any) -> str:
    """What was expected; where pydantic would show a regular expression, what the key is about."""
    if error["type"] != "string_pattern_mismatch":
        return str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    meaning = next((each.meaning for each in keys(kind) if each.path == ".".join(path)), "")
    return f"Input should be as in: {meaning}" if meaning else str(error["msg"])


def _meant(error: Any) -> str:
    """The nearest of the values that a key takes, where one is near."""
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    near = nearest(error["input"], re.findall("'([^']+)'", error["ctx"]["expected"]))
    return f"; {near}" if near.startswith("did") else ""


def _path(kind: type[Config], loc: tuple[int | str, ...]) -> tuple[list[str], Iterable[str]]:
    """The dotted path of an error, without pydantic's names of alternatives, and the names known at its end."""
    path: list[str] = []
    known: Iterable[str] = kind.model_fields
    for part in loc:
        path.append(str(part))
        field = kind.model_fields.get(str(part))
        known = kind.model_fields
        if field is None:
            break
        inner = field.annotation
        if get_origin(inner) is dict:
            path += [str(key) for key in loc[len(path) :]]
            break
        table = _table(inner)
        if table is None:
            break
        kind = table
    return path, known


def _table(annotation: Any) -> type[Config] | None:
    """The configuration that a field holds, if it holds one."""
    held = (each for each in (annotation, *get_args(annotation)) if isinstance(each, type))
    return next((each for each in held if issubclass(each, Config)), None)


class Key(NamedTuple):
    """A value of a configuration: its dotted path, what it takes, what it is unless given, and what it means."""

    path: str
    takes: str
    usual: Any
    needed: bool
    meaning: str


def keys(kind: type[Config], before: str = "") -> Iterator[Key]:
    """Every value of a configuration, those of its tables too."""
    for name, field in kind.model_fields.items():
        if field.exclude:  # told by another
            continue
        table = _table(field.annotation)
        if table is not None:
            yield from keys(table, f"{before}{name}.")
            continue
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        bounds = [
            (sign, getattr(each, name))
            for each in field.metadata
            for name, sign in SIGNS.items()
            if hasattr(each, name)
        ]
        takes = " ".join([_takes(field.annotation), " and ".join(f"{sign} {_shown(value)}" for sign, value in bounds)])
        yield Key(f"{before}{name}", takes.strip(), usual, field.is_required(), field.description or "")


def _takes(annotation: Any) -> str:
    """What a field takes, in words."""
    origin, inside = get_origin(annotation), [each for each in get_args(annotation) if each is not type(None)]
    if origin is Literal:
        return " | ".join(map(str, inside))
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(_takes, inside)))
    if origin is Annotated:
        return _takes(inside[0])
    if origin in (list, tuple):
        return f"list of {_takes(inside[0])}"
    return WORDS.get(origin or annotation, str(annotation))


def _shown(bound: float) -> str:
    return f"2^{bound.bit_length() - 1}" if isinstance(bound, int) and bound >= 1 << 31 else str(bound)


SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
WORDS = {int: "whole number", float: "number", str: "text", bool: "true | false", dict: "table of texts"}
