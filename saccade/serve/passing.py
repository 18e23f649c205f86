"""`passing`: work in a thread that ends with it, and takes its OpenMP pool along.

torch shares its products among the threads of a pool, one pool for each thread that ever computed something. As soon as
there are more of these threads than cores, libgomp lets those that wait sleep instead of spin, and waking them up for
each of the hundred small products of a token costs a third of its time (LOG.md). So whoever computes here does it in a
thread that does not stay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def passing(work: Callable[[], T], name: str) -> T:
    """What `work` gives or raises, done by a thread of its own while this one waits."""
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as problem:  # raised again where somebody waits for it
            raised.append(problem)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
