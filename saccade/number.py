"""Values for JSON, which has no NaN and no infinity."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same value with None (null) for every NaN and infinity in it, at any depth; tuples become lists."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
