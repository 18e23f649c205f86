"""`Desk`: a thread of its own for what takes its time: looking into a run, or writing a chat by its template."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from saccade.serve.passing import passing
from saccade.serve.refusal import Refusal

T = TypeVar("T")


class Desk:
    """One thing after another; `most` may wait. computes: so much that others should not rest (see `passing`)."""

    def __init__(self, name: str, most: int, *, computes: bool = True) -> None:
        self.name, self.most, self.computes, self.waiting = name, most, computes, 0
        self._thread = ThreadPoolExecutor(1, f"saccade-{name}")

    async def work(self, work: Callable[[], T]) -> T:
        """What `work` gives, when its turn has come."""
        if self.waiting >= self.most:
            busy = f"{self.waiting} others wait for {self.name} already: try again later"
            raise Refusal(429, busy, headers={"Retry-After": "1"})
        self.waiting += 1
        try:
            done = partial(passing, work, self.name, computes=self.computes)
            return await asyncio.get_running_loop().run_in_executor(self._thread, done)
        finally:
            self.waiting -= 1

    def close(self) -> None:
        """Nothing new is begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
