"""A sign of life while something lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A sign of life beside the output, where somebody sees it."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else nullcontext():
        yield
