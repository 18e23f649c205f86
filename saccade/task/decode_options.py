"""A recipe's [decode] as arguments of `generate`."""

from __future__ import annotations

from typing import Any

from saccade.decode.constraint import matching
from saccade.field.text.text import Text
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, idle

BEAM = ("beam", "length_penalty", "length_reward", "groups", "diversity")
OF_TASKS = {"max_tokens", "ratio", "matching", "replace_unknown", "threshold"}  # what a task handles itself


def generate_options(decode: DecodeConfig, text: Text, model: Model) -> dict[str, Any]:
    """The options of `generate`: only those that were changed and have an effect, as a beam search refuses others."""
    usual = {name: field.get_default(call_default_factory=True) for name, field in DecodeConfig.model_fields.items()}
    without = OF_TASKS | idle(decode).keys()
    given = {name: value for name, value in decode.model_dump().items() if name not in without}
    options = {name: value for name, value in given.items() if value != usual[name]}
    if decode.matching is not None:
        options["constraint"] = matching(decode.matching, text, vocab=model.config.vocab)
    return options if decode.beam > 1 else options | {"text": text}


def within(decode: DecodeConfig, most: int) -> DecodeConfig:
    """With at most so many tokens, and min_tokens no higher than that."""
    room = min(decode.max_tokens, most)
    return decode.model_copy(update={"max_tokens": room, "min_tokens": min(decode.min_tokens, room)})


def without_beam(decode: DecodeConfig) -> DecodeConfig:
    """Without a beam: its best text is known only at the end, and what is streamed must be certain at once."""
    usual = {name: DecodeConfig.model_fields[name].default for name in BEAM}
    return decode.model_copy(update=usual)
