"""`passing`: work in a thread that ends with it, and takes its OpenMP pool along.

torch shares its products among the threads of a pool, one pool for each thread that ever computed something. As soon as
there are more of these threads than cores, libgomp lets those that wait sleep instead of spin, and waking them up for
each of the hundred small products of a token costs a third of its time (LOG.md). So whoever computes here does it in a
thread that does not stay, or not longer than until somebody else computes: a fresh pool costs a prompt a third more.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

T = TypeVar("T")


class Pools:
    """How many threads compute, and how those that rest with a pool of their own are asked to end."""

    def __init__(self) -> None:
        self.computing = 0
        self.resting: list[Callable[[], None]] = []
        self.lock = threading.Lock()

    @contextmanager
    def compute(self) -> Iterator[None]:
        """Who rests is asked to end."""
        self._count(1)
        self._alone()
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def rest(self, leave: Callable[[], None]) -> Iterator[bool]:
        """While it lasts a thread that computes does not; `leave` is called when another begins. Whether none does."""
        with self.lock:
            self.computing -= 1
            self.resting.append(leave)
            free = not self.computing
        try:
            yield free
        finally:
            with self.lock:
                self.computing += 1
                self.resting.remove(leave)
            self._alone()

    def _count(self, more: int) -> None:
        with self.lock:
            self.computing += more

    def _alone(self) -> None:
        with self.lock:
            asked = list(self.resting)
        for leave in asked:
            leave()


POOLS = Pools()


def passing(work: Callable[[], T], name: str, *, computes: bool = True) -> T:
    """What `work` gives or raises, done by a thread of its own while this one waits.

    computes: more than a moment, so that nobody should rest meanwhile.
    """
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with POOLS.compute() if computes else nullcontext():
                found.append(work())
        except BaseException as problem:  # raised again where somebody waits for it
            raised.append(problem)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
