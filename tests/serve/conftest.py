"""A server with a run of every kind, for a whole file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import httpx
import pytest
from small import chatting, classifying, serving, translating, writing


@pytest.fixture(scope="module")
def house() -> Iterator[SimpleNamespace]:
    """A server with a run of every kind."""
    runs = {"writer": writing(), "chatter": chatting(), "translator": translating(), "classifier": classifying()}
    with serving(runs) as made:
        yield made


@pytest.fixture(scope="module")
def client(house) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=house.url, timeout=30) as made:
        yield made
