"""What JSON can tell of a result's value: a text or a label as it is, an array as its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.number import finite

PLAIN = (str, bool, int, float, type(None))


def told(value: Any) -> Any:
    """The value in JSON's own values; null of what these cannot tell."""
    if isinstance(value, PLAIN):
        return finite(value)
    if isinstance(value, Mapping):
        return {str(name): told(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    return told(value.tolist()) if hasattr(value, "tolist") else None
