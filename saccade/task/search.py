"""How a recipe's [decode] is told to `generate`."""

from __future__ import annotations

from typing import Any

from saccade.decode.constraint import matching
from saccade.field.text.text import Text
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, idle

BEAM = ("beam", "length_penalty", "length_reward", "groups", "diversity")
OF_TASKS = {"max_tokens", "ratio", "matching", "replace_unknown"}  # what a task sees to itself


def search(decode: DecodeConfig, text: Text, model: Model) -> dict[str, Any]:
    """The options of `generate`, those alone that were changed and do something: a beam search refuses others."""
    usual = {name: field.get_default(call_default_factory=True) for name, field in DecodeConfig.model_fields.items()}
    without = OF_TASKS | idle(decode).keys()
    given = {name: value for name, value in decode.model_dump().items() if name not in without}
    options = {name: value for name, value in given.items() if value != usual[name]}
    if decode.matching is not None:
        options["constraint"] = matching(decode.matching, text, vocab=model.config.vocab)
    return options if decode.beam > 1 else options | {"text": text}


def within(decode: DecodeConfig, most: int) -> DecodeConfig:
    """With so many tokens at most, and no more of them at least."""
    room = min(decode.max_tokens, most)
    return decode.model_copy(update={"max_tokens": room, "min_tokens": min(decode.min_tokens, room)})


def piecewise(decode: DecodeConfig) -> DecodeConfig:
    """Without a beam, whose best is known only at the end: what is streamed is searched greedily, or drawn."""
    usual = {name: DecodeConfig.model_fields[name].default for name in BEAM}
    return decode.model_copy(update=usual)
