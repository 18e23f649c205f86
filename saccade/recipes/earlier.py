"""Recipes of 0.1.0, when everything was text: their keys of texts, windows and losses belong to the fields now.

0.1.0                                          today
data.tokenizer, vocab, lower                   x.source, y: of every text
data.limit                                     x.source.limit, y.limit
data.ask                                       y.ask
train.length                                   y.window
train.smoothing, agree                         y.smoothing, y.agree
train.unmerge, unmerge_side                    x.source.unmerge, y.unmerge
train.reward, samples                          train.objective = "reward(share, samples=4)"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saccade import spec
from saccade.error import SaccadeError

# Where a key's value goes, by the task of 0.1.0; a task that is missing had no use for it.
TEXTS = {"translate": ("x.source", "y"), "write": ("y",), "classify": ("x.source",)}
READ = {"translate": ("x.source", "y"), "classify": ("x.source",)}
WRITTEN = {"write": ("y",)}
SAID = {"translate": ("y",), "write": ("y",), "classify": ("y",)}
MOVED: dict[str, tuple[str, Mapping[str, tuple[str, ...]], Any, str]] = {
    # 0.1.0: the name today, where it goes, what it was unless given, and what it is of
    "data.tokenizer": ("tokenizer", TEXTS, "bpe", "texts"),
    "data.vocab": ("vocab", TEXTS, 8000, "texts"),
    "data.lower": ("lower", TEXTS, False, "texts"),
    "data.limit": ("limit", READ, 256, "examples, and write reads windows of one text (y.window)"),
    "data.ask": ("ask", WRITTEN, None, "texts that are gone on with"),
    "train.length": ("window", WRITTEN, 256, "a window of one text"),
    "train.smoothing": ("smoothing", SAID, 0.0, "tokens and labels"),
    "train.agree": ("agree", SAID, 0.0, "tokens and labels"),
    "train.unmerge": ("unmerge", READ, 0.0, "whole examples, and write reads windows of one text"),
}
SIDES = {"both": ("x.source", "y"), "source": ("x.source",)}  # of unmerge, in a translation
REWARD = {"train.reward": "share", "train.samples": "samples"}  # as the objective calls them
SAMPLES = 4  # unless given


def today(values: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe of any version as one of today; keys of 0.1.0 win over those of today, since options may bring them."""
    made = {key: dict(table) if isinstance(table, Mapping) else table for key, table in values.items()}
    _check_unmerge_side(made)
    for old, (_, _, usual, what) in MOVED.items():
        table, key = old.split(".")
        if not isinstance(made.get(table), dict) or key not in made[table]:
            continue
        value, places = made[table].pop(key), paths(old, made)
        if not places and value is not None and value != usual:
            raise SaccadeError(f"{old} belongs to {what}, and the task is {made.get('task')}: take it away (-o {old}=)")
        for path in places:
            if value is not None:
                _set(made, path.split("."), value)
    if isinstance(made.get("train"), dict):
        made["train"].pop("unmerge_side", None)
        _reward_as_objective(made["train"])
    return made


def paths(old: str, values: Mapping[str, Any]) -> list[str]:
    """Where a key of 0.1.0 stands today, in a recipe with these values."""
    if old == "train.reward":
        return ["train.objective"]
    if old not in MOVED:
        return []
    (name, places, *_), task, train = MOVED[old], str(values.get("task")), values.get("train")
    where = places.get(task, ())
    if old == "train.unmerge" and task == "translate" and isinstance(train, Mapping):
        where = SIDES.get(str(train.get("unmerge_side", "both")), ())
    return [f"{place}.{name}" for place in where]


def moved(values: Mapping[str, Any]) -> dict[str, str]:
    """The keys of 0.1.0 in a recipe, by where they stand today."""
    tables = {name: table for name, table in values.items() if isinstance(table, Mapping)}
    found = [old for old in MOVED if old.split(".")[1] in tables.get(old.split(".")[0], {})]
    return {path: old for old in found for path in paths(old, values)}


def _check_unmerge_side(values: Mapping[str, Any]) -> None:
    """Refuses an unknown `train.unmerge_side`, and one without `train.unmerge`, where it has no effect."""
    train = values.get("train")
    train = train if isinstance(train, Mapping) else {}
    side = train.get("unmerge_side", "both")
    if str(side) not in SIDES:
        raise SaccadeError(f"train.unmerge_side = {side!r} is neither 'both' nor 'source'")
    if side != "both" and not train.get("unmerge"):
        raise _idle("train.unmerge_side", "train.unmerge")


def _reward_as_objective(train: dict[str, Any]) -> None:
    """Turns train.reward and train.samples into train.objective; where one of them is missing, that of an objective
    that is there already stays.
    """
    given = {name: train.pop(old.split(".")[1]) for old, name in REWARD.items() if old.split(".")[1] in train}
    text = str(train.get("objective", ""))
    before = spec.arguments(text, {"reward": _reward_signature}, "objective")[1] if text.startswith("reward(") else {}
    share, samples = ({"share": 0.0, "samples": SAMPLES, **before, **given}[name] for name in REWARD.values())
    if share:
        train["objective"] = f"reward({share!r}, samples={samples!r})"
    elif "share" in given and before:  # a share of 0 takes the objective away
        train.pop("objective")
    elif samples != SAMPLES:
        raise _idle("train.samples", "train.reward")


def _reward_signature(share: float, samples: int = SAMPLES) -> None:
    """The arguments of the objective, for `spec.arguments`; the objective itself lives in a room above this one."""


def _idle(path: str, owner: str) -> SaccadeError:
    return SaccadeError(f"{path} belongs to {owner} and does nothing here: take it away (-o {path}=)")


def _set(table: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Sets a value at a path; tables on the way are copied, since the caller's values must not change."""
    for part in path[:-1]:
        table[part] = dict(table.get(part) or {})
        table = table[part]
    table[path[-1]] = value
