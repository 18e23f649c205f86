"""`passing`: work in a thread that ends with it, and takes its OpenMP pool along.

torch shares its products among the threads of a pool, one pool for each thread that ever computed something. As soon as
there are more of these threads than cores, libgomp lets those that wait sleep instead of spin, and waking them up for
each of the hundred small products of a token costs a third of its time (LOG.md). So whoever computes here does it in a
thread that does not stay, or not longer than until somebody else computes: a fresh pool costs a prompt a third more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
_resting: list[Callable[[], None]] = []  # how those that wait with a pool of their own are asked to end


def passing(work: Callable[[], T], name: str, *, computes: bool = True) -> T:
    """What `work` gives or raises, done by a thread of its own while this one waits.

    computes: more than a moment, so that who rests is asked to end.
    """
    for leave in list(_resting) if computes else ():
        leave()
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


@contextmanager
def resting(leave: Callable[[], None]) -> Iterator[None]:
    """While it lasts, the thread computes nothing; `leave` is called as soon as another begins to."""
    _resting.append(leave)
    try:
        yield
    finally:
        _resting.remove(leave)
