"""`Engine`: the thread that one run works in.

All that touches the run's scheduler happens in this thread, between two steps: orders come and go through a queue, and
so do calls (a batch whose answers are said at once). Runs have an engine each, so that a slow one is slow alone. What
is busy works in a passing thread: pools that lie idle slow down the others (see `passing`). It stays for a while, since
who has asked once often asks again, and goes as soon as somebody else computes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from saccade.decode.request import BeamRequest, Request
from saccade.decode.scheduler import Scheduler
from saccade.error import SaccadeError
from saccade.serve.job import Job
from saccade.serve.order import Entry, News, Order
from saccade.serve.passing import POOLS, passing
from saccade.serve.refusal import Refusal

T = TypeVar("T")
IDLE = 60.0  # seconds without work after which the thread that works ends
LOG = logging.getLogger("saccade.serve")


class Engine:
    """scheduler: makes the run's scheduler, anew after a step that failed; None: the run writes nothing.

    most: sequences that are written or wait, of all orders. The methods without an underscore belong to the event loop.
    """

    def __init__(self, name: str, scheduler: Callable[[], Scheduler] | None, *, most: int = 320) -> None:
        self.name, self.most = name, most
        self.written, self.steps = 0, 0  # counts for the metrics; the engine's thread alone adds to them
        self._make = scheduler
        self._scheduler = None if scheduler is None else scheduler()
        self._entries: dict[Request | BeamRequest, Entry] = {}
        self._orders: set[Order] = set()
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._calls = 0
        self._stopping, self._ended = False, False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name=f"saccade-{name}", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether its thread works."""
        return self._thread.is_alive()

    @property
    def load(self) -> int:
        """Sequences and calls that have not ended."""
        return sum(order.running for order in self._orders) + self._calls

    def start(self) -> None:
        """Begins to work for the loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def order(self, jobs: list[Job]) -> Order:
        """Sequences to write; `order.news` tells how they come along, or raises why they cannot."""
        self._admit(len(jobs))
        order = Order(jobs)
        self._orders.add(order)
        self._commands.put(partial(self._take, order))
        return order

    def leave(self, order: Order) -> None:
        """Nobody waits for this order any more."""
        if not order.left:
            order.left = True
            self._commands.put(partial(self._drop, order))

    async def call(self, work: Callable[[], T]) -> T:
        """What `work` gives, which runs between two steps."""
        self._admit(1)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls += 1
        try:
            self._commands.put(partial(self._answer, work, future))
            return await future
        finally:
            self._calls -= 1

    def refuse(self) -> None:
        """From now on nobody new is let in."""
        self._stopping = True

    def stop(self) -> None:
        """Ends what is left, whose clients are told so, and the thread."""
        self.refuse()
        self._commands.put(self._end)

    def join(self, seconds: float) -> None:
        """Waits for the thread's end; a step that takes longer is left to the end of the process."""
        if self.alive:
            self._thread.join(seconds)

    def _admit(self, count: int) -> None:
        if self._stopping:
            raise Refusal(503, "the server is stopping", headers={"Retry-After": "5"})
        if self.load + count > self.most:
            sentence = f"{self.name} has {self.load} sequences to write and room for {self.most}: try again later"
            raise Refusal(429, sentence, headers={"Retry-After": "1"})

    def _work(self) -> None:
        """Waits; what is asked for is done by a thread that ends when nothing more comes, with its OpenMP pool."""
        while not self._ended:
            first = self._commands.get()
            if first is not _leave:
                passing(partial(self._serve, first), self._thread.name)

    def _serve(self, first: Callable[[], None]) -> None:
        """Obeys and steps until there has been nothing to do for a while."""
        command: Callable[[], None] | None = first
        while command is not None:
            try:
                self._obey(command)
                while not self._ended and self._scheduler is not None and self._scheduler.busy:
                    self._step(self._scheduler)
                    self._obey()
            except Exception as problem:  # a thread that dies would leave everybody waiting
                self._fail(problem)
            command = self._next()

    def _obey(self, command: Callable[[], None] | None = None) -> None:
        """Does what was asked for."""
        if command is not None:
            command()
        with contextlib.suppress(Empty):
            while not self._ended:
                self._commands.get_nowait()()

    def _next(self) -> Callable[[], None] | None:
        """What is asked for while this thread may stay, if anything."""
        if self._ended:
            return None
        try:
            with POOLS.rest(partial(self._commands.put, _leave)) as free:
                command = self._commands.get(timeout=IDLE if free else 0.0)
        except Empty:
            return None
        return None if command is _leave else command

    def _step(self, scheduler: Scheduler) -> None:
        went = scheduler.step()
        self.steps += 1
        news = []
        for request in went:
            entry = self._entries[request]
            news.append((entry.order, entry.news()))
            self.written += len(news[-1][1].tokens)
            if request.reason is not None:
                del self._entries[request]
        self._tell(news)

    def _take(self, order: Order) -> None:
        """An order's sequences go to the scheduler, all or none."""
        if order.left:
            return
        taken: list[Request | BeamRequest] = []
        try:
            if self._scheduler is None:
                raise Refusal(409, f"{self.name} cannot write: it has no decoder", "model")
            for job in order.jobs:
                taken.append(job.submit(self._scheduler))
        except Exception as problem:
            for request in taken:
                self._scheduler.cancel(request)  # type: ignore[union-attr]
            self._tell([(order, News(number, reason="failed", problem=problem)) for number in range(len(order.jobs))])
            return
        self._entries.update({each: Entry(order, number, each) for number, each in enumerate(taken)})
        self._tell([(order, News())])

    def _drop(self, order: Order) -> None:
        for request, entry in list(self._entries.items()):
            if entry.order is order:
                del self._entries[request]
                self._scheduler.cancel(request)  # type: ignore[union-attr]
        self._post(partial(self._orders.discard, order))

    def _answer(self, work: Callable[[], T], future: asyncio.Future[T]) -> None:
        if future.cancelled():
            return
        try:
            found, problem = work(), None
        except Exception as raised:
            found, problem = None, raised
        self._post(partial(_settle, future, found, problem))

    def _fail(self, problem: Exception) -> None:
        """A step broke: those who took part in it are told, and the next begin anew."""
        if not isinstance(problem, SaccadeError):
            LOG.exception("a step of %s failed", self.name)
        self._abandon(problem)
        self._scheduler = None if self._make is None else self._make()

    def _end(self) -> None:
        self._ended = True
        self._abandon(Refusal(503, "the server is stopping"))

    def _abandon(self, problem: Exception) -> None:
        entries, self._entries = self._entries, {}
        self._tell([(each.order, News(each.number, reason="failed", problem=problem)) for each in entries.values()])

    def _tell(self, news: list[tuple[Order, News]]) -> None:
        """One call for all the news of a step."""
        if news:
            self._post(partial(self._deliver, news))

    def _deliver(self, news: list[tuple[Order, News]]) -> None:
        for order, each in news:
            order.put(each)
            if not order.running:
                self._orders.discard(order)

    def _post(self, call: Callable[[], Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(call)  # type: ignore[union-attr]


def _leave() -> None:
    """Asks a thread that rests to end; to one that works it says nothing."""


def _settle(future: asyncio.Future[Any], found: Any, problem: Exception | None) -> None:
    if future.done():
        return
    if problem is None:
        future.set_result(found)
    else:
        future.set_exception(problem)
