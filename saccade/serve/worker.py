"""`Worker`: a thread beside the event loop for what takes its time: tokenising a long text, writing a chat by its
template, looking into a run; and `short_thread`: work in a thread that ends with it and takes its OpenMP pool along.

torch shares its products among the threads of a pool, one pool for each thread that ever computed something. As soon as
there are more of these threads than cores, libgomp lets those that wait sleep instead of spin, and waking them up for
each of the hundred small products of a token costs a third of its time (LOG.md). So all computing here is done in
threads that end afterwards, or stay idle only until another computes, since a fresh pool makes a prompt a third slower.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TypeVar

from saccade.serve.refusal import Refusal

T = TypeVar("T")


class Worker:
    """Works on one thing after another; `most` may wait. computes: so much that idle threads should end (`Pools`)."""

    def __init__(self, name: str, most: int, *, computes: bool = True) -> None:
        self.name, self.most, self.computes, self.waiting = name, most, computes, 0
        self._thread = ThreadPoolExecutor(1, f"saccade-{name}")

    async def work(self, work: Callable[[], T]) -> T:
        """The result of `work`, when its turn has come."""
        if self.waiting >= self.most:
            busy = f"{self.waiting} requests wait for {self.name} already: try again later"
            raise Refusal(429, busy, headers={"Retry-After": "1"})
        self.waiting += 1
        try:
            done = partial(short_thread, work, self.name, computes=self.computes)
            return await asyncio.get_running_loop().run_in_executor(self._thread, done)
        finally:
            self.waiting -= 1

    def close(self) -> None:
        """What has begun ends by itself; nothing new begins."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class Pools:
    """How many threads compute, and how the idle ones, which hold an OpenMP pool each, are asked to end."""

    def __init__(self) -> None:
        self.computing = 0
        self.resting: list[Callable[[], None]] = []
        self.lock = threading.Lock()

    @contextmanager
    def compute(self) -> Iterator[None]:
        """Asks idle threads to end while this one computes."""
        self._count(1)
        self._end_resting()
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def rest(self, leave: Callable[[], None]) -> Iterator[bool]:
        """A thread that computes rests while this lasts; `leave` is called when another begins. Gives whether the
        thread may stay: whether no other computes.
        """
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
            self._end_resting()

    def _count(self, more: int) -> None:
        with self.lock:
            self.computing += more

    def _end_resting(self) -> None:
        with self.lock:
            asked = list(self.resting)
        for leave in asked:
            leave()


POOLS = Pools()


def short_thread(work: Callable[[], T], name: str, *, computes: bool = True) -> T:
    """What `work` gives or raises, done by a thread of its own while this one waits.

    computes: long enough that idle threads should end meanwhile.
    """
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            with POOLS.compute() if computes else nullcontext():
                found.append(work())
        except BaseException as problem:  # raised again in the thread that waits
            raised.append(problem)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
