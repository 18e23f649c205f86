"""How many cases are tried: all in `make test` and `make proof` together, a few in `make test` alone.

Of the examples of hypothesis, `make test` tries a fifth, at least ten and always the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings


def examples(most: int) -> settings:
    """Settings of a test that tries `most` examples in `make proof`."""
    share = most * settings.default.max_examples // 100
    return settings(max_examples=max(share, min(most, 10)))


def proofs(cases: Iterable[Any], but: Collection[Any]) -> list[Any]:
    """The cases of a parametrised test, those that are not in `but` as proofs."""
    return [each if each in but else pytest.param(each, marks=pytest.mark.proof) for each in cases]
