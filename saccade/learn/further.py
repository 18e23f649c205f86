"""How a run is trained further than its recipe says: a new run that starts with its weights, as a command to copy.

The steps of a run are fixed when it begins, since its learning rate depends on them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade.learn.run_name import next_folder
from saccade.recipe import Recipe
from saccade.recipes.read import option_of
from saccade.recipes.write import as_value
from saccade.store import checkpoint


def further(folder: Path, changes: Mapping[str, Any]) -> str:
    """The end of a sentence: how to train the weights of this run with these changes of its recipe, by dotted path.
    Steps that were meant in all become those that are left.
    """
    done, values = max(checkpoint.steps(folder), default=0), {**changes, "start": str(folder)}
    what, total = "begin one with its weights", changes.get("train.steps")
    if isinstance(total, int) and total > done:
        what, values["train.steps"] = f"train its weights for {total - done:,} more steps", total - done
    options = [f"{path}={'' if value is None else _written(value)}" for path, value in values.items()]
    words = ["saccade", "train", str(folder / "recipe.toml"), *(word for each in options for word in ("-o", each))]
    return f"to {what}: {shlex.join([*words, '--run', str(next_folder(folder))])}"


def further_as(folder: Path, asked: Recipe, keys: Sequence[str]) -> str:
    """The same for a recipe that differs in these keys from that of the run; empty where other tables differ too."""
    paths = [key.split(".") for key in keys]
    if any(len(path) != 2 or path[0] not in ("train", "decode") for path in paths):
        return ""
    return further(folder, {f"{table}.{key}": getattr(getattr(asked, table), key) for table, key in paths})


def _written(value: Any) -> str:
    """The value of an option; a plain word needs no quotes."""
    plain = isinstance(value, str) and option_of(f"a={value}") == ("a", value)
    return str(value) if plain else as_value(value)
