"""Recipes as they are written: as TOML, which `read.py` takes back; and the keys in which two of them differ."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from saccade.recipe import Recipe, plain


def to_toml(tables: Mapping[str, Any], above: str = "") -> str:
    """Plain values, and tables of them in tables, as TOML (JSON's strings and numbers are TOML's too)."""
    inner = {key: value for key, value in tables.items() if isinstance(value, dict) and value}
    values = {key: value for key, value in tables.items() if key not in inner and value is not None}
    lines = [f"{_key(key)} = {as_value(value)}" for key, value in values.items()]
    for name, table in inner.items():
        path = f"{above}{_key(name)}"
        body = to_toml(table, f"{path}.").strip()
        has_values = any(not (isinstance(each, dict) and each) for each in table.values())
        lines += ["", f"[{path}]\n{body}" if has_values else body]
    return "\n".join(lines).strip() + "\n"


def as_toml(made: Recipe) -> str:
    """The whole recipe, defaults included."""
    return to_toml(plain(made))


def as_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_value(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def differences(old: Recipe, new: Recipe) -> list[str]:
    """The dotted keys in which two recipes differ; a key that their sizes have differently is named as itself."""
    tables = [{**plain(each), "sizes": [(size.name, size.up_to) for size in each.sizes]} for each in (old, new)]
    found = _differing(*map(flat, tables))
    for sizes in zip(old.sizes, new.sizes, strict=False):
        found |= _differing(*(flat(each.tables()) for each in sizes))
    return sorted(re.sub(r"^changes\.", "model.", key) for key in found)  # as they are written


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The values of tables in tables by their dotted paths."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = list(value) if isinstance(value, tuple) else value
    return found


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> set[str]:
    return {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)}


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
