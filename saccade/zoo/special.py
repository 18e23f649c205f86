"""Which tokens begin, end and fill up texts, and what classes are called, as the folder of a checkpoint says it.

The names of tokens only hint at it: what ends a turn of a chat model is often not what is called the end of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Our roles and the options that say them, the first before the others.
OPTIONS = {
    "pad": ("pad_token_id",),
    "begin": ("decoder_start_token_id", "bos_token_id"),
    "end": ("eos_token_id",),
}


def special(options: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, list[int]]:
    """The tokens of each role that is told: by generation_config.json, else by config.json, as `transformers` asks."""
    found = {}
    for role, names in OPTIONS.items():
        told = [source.get(name) for name in names for source in (generation, options)]
        found[role] = next(filter(None, map(_tokens, told)), [])
    return {role: tokens for role, tokens in found.items() if tokens}


def labels(options: Mapping[str, Any]) -> list[str]:
    """The names of classes in the order of their numbers; none where they are not told, or not all."""
    told = options.get("id2label")
    if not isinstance(told, dict):
        return []
    names = {str(number): name for number, name in told.items()}
    found = [names.get(str(number)) for number in range(len(names))]
    return [str(each) for each in found] if None not in found and len(set(found)) == len(found) else []


def _tokens(told: Any) -> list[int]:
    """One token or several, as a list; what is no token is none."""
    several = told if isinstance(told, list) else [told]
    return [each for each in several if isinstance(each, int) and not isinstance(each, bool) and each >= 0]
