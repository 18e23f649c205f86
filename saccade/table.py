"""Tables of values, checked when they are made: an unknown key is refused with the nearest known one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from saccade.error import SaccadeError, nearest

Read = TypeVar("Read", bound="Config")


class Config(BaseModel):
    """The base of all tables: no unknown keys, no changes after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def read(kind: type[Read], values: Mapping[str, Any]) -> Read:
    """A configuration from plain values; an error is one sentence that begins with the dotted path of the key."""
    try:
        return kind(**values)
    except ValidationError as problem:
        raise SaccadeError(sentence(kind, problem)) from None


def sentence(kind: type[Config], problem: ValidationError) -> str:
    """The first thing that is wrong; where a key takes several kinds of value, the sentence names all of them."""
    unknown = [each for each in problem.errors() if each["type"] == "extra_forbidden"]
    first = (unknown or problem.errors())[0]  # unknown keys first: a misspelt key is reported as missing too
    path, known = _path(kind, first["loc"])
    where = ".".join(path) or kind.__name__
    if first["type"] == "extra_forbidden":
        inside = [each.path for each in keys(kind) if len(path) == 1 and each.path.endswith(f".{path[0]}")]
        hint = f"did you mean {inside[0]!r}?" if inside else nearest(path[-1], known)
        return f"{where} is unknown; {hint}"
    same = [each for each in problem.errors() if _path(kind, each["loc"])[0] == path]
    key = next((each for each in keys(kind) if each.path == ".".join(path)), None)
    if first["type"] in ("value_error", "assertion_error"):
        return f"{where}: {expected(first)}"
    return f"{where}{_wrong(path, same, key)}{_nearest_value(first)}{_list_hint(where, same)}"


def _wrong(path: list[str], errors: list[Any], key: Key | None) -> str:
    """How a sentence goes on after the name of a key whose value is missing, or of another kind."""
    first, takes = errors[0], "" if key is None else key.takes.replace(" | ", " or ")
    inside = first["loc"][len(path) :]  # a place in a list; pydantic's name of an alternative stands there too
    if first["type"] == "missing":
        return (
            f": entry {inside[-1] + 1} is missing"
            if inside
            else f" is missing{takes and f': it takes {_with_article(takes)}'}"
        )
    alternatives = {each["loc"][len(path) : -1] for each in errors if len(each["loc"]) > len(path) + 1}
    if alternatives and takes:  # entries that fit none of several kinds of list
        return f" should be {_with_article(takes)}"
    place = f" (entry {inside[-1] + 1})" if inside and isinstance(inside[-1], int) else ""
    if takes and not place and first["type"] in NUMERIC:
        said = [_with_article(takes)]
    else:
        said = [_expected_of(each, key) for each in errors]
    got = "" if isinstance(first["input"], dict) else f"; got {first['input']!r:.80}"  # a whole table is not repeated
    return f"{place} should be {' or '.join(dict.fromkeys(said))}{got}"


def _expected_of(error: Any, key: Key | None) -> str:
    """What was expected of a value; where that is a regular expression, what the key means."""
    if error["type"] == "string_pattern_mismatch" and key is not None and key.meaning:
        return f"as in: {key.meaning}"
    return expected(error)


def expected(error: Mapping[str, Any], table: str = "a table") -> str:
    """What pydantic expected of a value, in plain words, to stand after "should be"; of an error that is ours, its own
    sentence. table: what a mapping is called.
    """
    inside = error.get("ctx") or {}
    if error["type"] in ("value_error", "assertion_error"):
        return str(inside.get("error", error["msg"]))
    bounds = {
        name: int(each) if isinstance(each, float) and each.is_integer() else each for name, each in inside.items()
    }
    return EXPECTED.get(error["type"], "a value of another kind").format_map({**bounds, "table": table})


def _with_article(takes: str) -> str:
    """What a key takes, with an article where it is one thing: `a whole number`, but `true or false`."""
    return f"a {takes}" if takes.startswith(("whole", "number", "text", "list", "table")) else takes


def _list_hint(where: str, errors: list[Any]) -> str:
    """The end of the sentence where a list was expected and a text came, as when a shell has removed its quotes."""
    given = errors[0]["input"]
    if not isinstance(given, str) or not any(each["type"] in ("list_type", "tuple_type") for each in errors):
        return ""
    entries = [each.strip().strip("\"'") for each in given.strip().strip("[]").split(",")]
    written = json.dumps([_number_in(each) for each in entries if each], ensure_ascii=False)
    if len(written) > LONGEST:
        return ""
    return f": write {written}, on the command line -o '{where}={written}', whose outer quotes keep the inner ones"


def _number_in(text: str) -> int | float | str:
    """The number that a text is, or the text."""
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return float(text) if "." in text else int(text)


def _nearest_value(error: Any) -> str:
    """The end of the sentence: the nearest of the values that a key takes, where one is near."""
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    near = nearest(error["input"], re.findall("'([^']+)'", error["ctx"]["expected"]))
    return f"; {near}" if near.startswith("did") else ""


def _written(kind: type[Config]) -> list[str]:
    """The names that one may write; others are a part of another key's value."""
    return [name for name, field in kind.model_fields.items() if not field.exclude]


def _path(kind: type[Config], loc: tuple[int | str, ...]) -> tuple[list[str], Iterable[str]]:
    """The dotted path of an error, without pydantic's names of alternatives, and the names known at its end."""
    path: list[str] = []
    known: Iterable[str] = _written(kind)
    for part in loc:
        path.append(str(part))
        known = _written(kind)
        if isinstance(part, int):  # a place in a list of tables
            continue
        field = kind.model_fields.get(part)
        if field is None:
            break
        inner = field.annotation
        if get_origin(inner) is dict:
            path += [str(key) for key in loc[len(path) :]]
            break
        table = _config_in(inner)
        if table is None:
            break
        kind = table
    return path, known


def _config_in(annotation: Any) -> type[Config] | None:
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
        if field.exclude:  # written as a part of another key's value
            continue
        table, listed = _config_in(field.annotation), get_origin(field.annotation) is list
        if table is not None and not listed:
            yield from keys(table, f"{before}{name}.")
            continue
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        bounds = [
            (sign, getattr(each, limit))
            for each in field.metadata
            for limit, sign in SIGNS.items()
            if hasattr(each, limit)
        ]
        within = " and ".join(f"{sign} {_bound_text(value)}" for sign, value in bounds)
        takes = f"{_type_in_words(field.annotation)} {within}"
        yield Key(f"{before}{name}", takes.strip(), usual, field.is_required(), field.description or "")
        if table is not None:
            yield from keys(table, f"{before}{name}.")


def _type_in_words(annotation: Any) -> str:
    """What a field takes, in words."""
    origin, inside = get_origin(annotation), [each for each in get_args(annotation) if each is not type(None)]
    if origin is Literal:
        return " | ".join(map(str, inside))
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(_type_in_words, inside)))
    if origin is Annotated:
        return _type_in_words(inside[0])
    if origin in (list, tuple):
        return f"list of {_type_in_words(inside[0])}"
    return "table" if _config_in(annotation) else WORDS.get(origin or annotation, str(annotation))


def _bound_text(bound: float) -> str:
    return f"2^{bound.bit_length() - 1}" if isinstance(bound, int) and bound >= 1 << 31 else str(bound)


SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
WORDS = {int: "whole number", float: "number", str: "text", bool: "true | false", dict: "table of texts"}
LONGEST = 200  # characters of a list that a hint writes out
# Errors after which the key's own kind and bounds say more than the error.
BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
NUMERIC = ("int_type", "int_parsing", "int_from_float", "float_type", "float_parsing", *BOUNDS)
# What pydantic's errors expected, by their type.
EXPECTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    "int_parsing_size": "a smaller whole number",
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    "greater_than": "above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "below {lt}",
    "less_than_equal": "{le} or less",
    "multiple_of": "a multiple of {multiple_of}",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "a text",
    "string_unicode": "a text without half a character (an unpaired surrogate)",
    "string_too_short": "a text of {min_length} or more characters",
    "string_too_long": "a text of {max_length} or fewer characters",
    "string_pattern_mismatch": "a text that matches {pattern}",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "iterable_type"), "a list"),
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of {max_length} or fewer",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"), "{table}"),
    "invalid_key": "{table} whose names are texts",
    **dict.fromkeys(("literal_error", "enum"), "{expected}"),
    "none_required": "left out",
    **dict.fromkeys(("recursion_loop", "recursion_depth_exceeded"), "nested less deeply"),
}
