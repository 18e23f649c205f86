"""`tuned`: the configuration that fine-tuning begins with: the model found at `start`, with the dropout its folder was
trained with, and with what the recipe changes of it.

The weights come along, so a value may change if every weight keeps its name, its shape and its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.config import ModelConfig, StackConfig, read
from saccade.error import SaccadeError
from saccade.learn.corpora import Say
from saccade.recipe import Recipe
from saccade.store.run import Run
from saccade.zoo.dropout import dropout_of, unexpressed

# What is dropped while training, how scores become weights, what may be seen, how far back, whose state is pooled.
CHANGEABLE = (
    *("dropout", "attention_dropout", "feed_dropout", "path_dropout"),
    *("normaliser", "mask", "pattern", "masks", "memory", "pool", "capacity"),
)


def tuned(source: Run, recipe: Recipe, say: Say) -> ModelConfig:
    """The configuration of the model that `recipe.start` holds, as this recipe trains it."""
    changes, known = recipe.changes or {}, source.model.config.model_dump()
    if source.recipe is None and source.family is not None:  # what was trained here has its dropout in its config
        known |= _dropout_of_folder(source, source.family, changes, say)
    for key, value in changes.items():
        known[key] = _changed(key, value, known, str(recipe.start))
    try:
        return read(ModelConfig, known)
    except SaccadeError as problem:
        whole = f"{ModelConfig.__name__}: "  # of the model, not of one of its keys
        raise SaccadeError(f"model.{problem}".replace(f"model.{whole}", "model: ")) from None


def _dropout_of_folder(source: Run, family: str, changes: Mapping[str, Any], say: Say) -> dict[str, float]:
    """The dropout of a Hugging Face folder, told to the user; a change that the recipe makes is told by the recipe."""
    found = dropout_of(family, source.options)
    if not changes.keys() & found.keys():
        told = ", ".join(f"{name} = {value:g}" for name, value in found.items())
        say(f"{told}: as config.json says (-o model.dropout=... changes it)")
    for name, value in unexpressed(family, source.options).items():
        say(f"{name} = {value:g} of config.json has no key of its own here: dropout = {found['dropout']:g} is used")
    return found


def _changed(key: str, value: Any, known: Mapping[str, Any], start: str) -> Any:
    """The value of a key beside `start`; refuses one that would need other weights."""
    before = known[key]
    if not isinstance(value, dict) or key not in ("encoder", "decoder"):
        _refuse_other_weights(key, value, before, key in CHANGEABLE, start)
        return value
    table = before if isinstance(before, dict) else {"depth": before}
    for name, own in value.items():  # of one stack
        allowed = name in CHANGEABLE and name in StackConfig.model_fields
        _refuse_other_weights(f"{key}.{name}", own, table.get(name, known.get(name)), allowed, start)
    return {**table, **value}


def _refuse_other_weights(key: str, value: Any, before: Any, allowed: bool, start: str) -> None:
    if allowed or value == before:
        return
    raise SaccadeError(
        f"model.{key} = {value!r} does not fit the weights of {start}, which have {before!r}: beside start these may "
        f"change: {', '.join(CHANGEABLE)}; with another model, begin anew (leave out start)"
    )
