"""Signals that ask a training to stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stop_signals(asked: Callable[[int], None]) -> Iterator[None]:
    """Inside, SIGTERM and Ctrl-C call `asked` with their number. Works in the main thread only; elsewhere it does
    nothing.
    """

    def handler(number: int, _: Any) -> None:
        asked(number)

    before = {}
    for each in (signal.SIGTERM, signal.SIGINT):
        try:
            before[each] = signal.signal(each, handler)
        except ValueError:  # not the main thread: whoever runs it decides about signals
            break
    try:
        yield
    finally:
        for each, own in before.items():
            signal.signal(each, own)
