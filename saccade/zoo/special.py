"""Which tokens begin, end and fill up texts, and the names of classes, as the folder of a checkpoint gives them.

The names of tokens are not enough: the token that ends a chat model's turn is often not the one called end of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Our roles and the options that give them, the first before the others.
OPTIONS = {
    "pad": ("pad_token_id",),
    "begin": ("decoder_start_token_id", "bos_token_id"),
    "end": ("eos_token_id",),
}


def special(options: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, list[int]]:
    """The tokens of each role, from generation_config.json or else config.json, as `transformers` reads them."""
    found = {}
    for role, names in OPTIONS.items():
        values = [source.get(name) for name in names for source in (generation, options)]
        found[role] = next(filter(None, map(_tokens, values)), [])  # the first that names any
    return {role: tokens for role, tokens in found.items() if tokens}


def labels(options: Mapping[str, Any]) -> list[str]:
    """The names of classes in the order of their numbers; none where some are missing or two are the same."""
    found = label_names(options)
    return found if len(set(found)) == len(found) else []


def label_names(options: Mapping[str, Any]) -> list[str]:
    """The names of classes in the order of their numbers, which may be equal; none where some are missing."""
    given = options.get("id2label")
    if not isinstance(given, dict):
        return []
    names = {str(number): name for number, name in given.items()}
    found = [names.get(str(number)) for number in range(len(names))]
    return [] if None in found else [str(each) for each in found]


def label_options(names: Sequence[str]) -> dict[str, Any]:
    """What config.json says of the names of classes."""
    numbered = list(enumerate(names))
    return {"id2label": {str(n): name for n, name in numbered}, "label2id": {name: n for n, name in numbered}}


def _tokens(value: Any) -> list[int]:
    """One token or several, as a list; whatever is not the number of a token is left out."""
    several = value if isinstance(value, list) else [value]
    return [each for each in several if isinstance(each, int) and not isinstance(each, bool) and each >= 0]
