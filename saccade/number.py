"""Numbers as JSON can tell them: it has no NaN and no infinity."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same in JSON's own values; a number that it cannot tell becomes null."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
