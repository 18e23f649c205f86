"""`Engine`: the thread that one run works in, and `Submission`: what one HTTP request asks it to write.

All that touches the run's scheduler happens in this thread, between two steps: submissions come and go through a queue,
and so do calls (a batch whose answers are said at once). Runs have an engine each, so that a slow one is slow alone.
The engine computes in a short-lived thread, because idle OpenMP pools slow down the other threads (see `worker`). That
thread stays for a while, since a client who asked once often asks again, and ends as soon as another thread computes.

The engine's thread writes the news of a submission and the event loop reads them: news are copied, and the loop itself
puts them into the submission, so that neither thread waits for the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from starlette.requests import Request as HTTPRequest
from starlette.responses import Response

from saccade.decode.request import BeamRequest, Request
from saccade.decode.scheduler import Scheduler
from saccade.error import SaccadeError
from saccade.serve.client import EventStream, attended
from saccade.serve.refusal import Refusal
from saccade.serve.transcript import News, Transcript
from saccade.serve.worker import POOLS, short_thread

T = TypeVar("T")
IDLE = 60.0  # seconds without work after which the thread that works ends
LOG = logging.getLogger("saccade.serve")


class Submission:
    """The transcripts that one client waits for, and the news of them that nobody has read yet."""

    def __init__(self, transcripts: Sequence[Transcript]) -> None:
        self.transcripts, self.left = transcripts, False
        self.running = len(transcripts)  # how many have not ended
        self._news: list[News] = []
        self._bell = asyncio.Event()

    def put(self, news: News) -> None:
        """Adds news; called by the event loop."""
        self._news.append(news)
        self.running -= news.reason is not None
        self._bell.set()

    async def accepted(self) -> None:
        """Waits for the first news: that the engine has taken the submission or, raised here, why it refused."""
        await self._bell.wait()
        for each in self._news:
            if each.tokens:
                return  # an error after the first tokens is raised by `news`, to whoever reads them
            if each.problem is not None:
                raise each.problem

    async def each(self) -> AsyncIterator[News]:
        """All news, one after another, until every transcript has ended. A problem is raised."""
        while self.running or self._news:
            for each in await self.news():
                yield each

    async def news(self) -> list[News]:
        """All that happened since the last call, as soon as anything has. A problem is raised."""
        await self._bell.wait()
        self._bell.clear()
        found, self._news = self._news, []
        for each in found:
            if each.problem is not None:
                raise each.problem
        return found


class InFlight:
    """One transcript of a submission at the scheduler: its request, and how many of its tokens were reported."""

    def __init__(self, submission: Submission, number: int, request: Request | BeamRequest) -> None:
        self.submission, self.number, self.request = submission, number, request
        self._reported = 0

    def news(self) -> News:
        """What was written since the last news; called between two steps."""
        request, number = self.request, self.number
        if isinstance(request, BeamRequest):
            return News(number, reason=request.reason, problem=request.problem, found=tuple(request.found))
        since, self._reported = self._reported, len(request.tokens)
        return News(
            number,
            request.piece,
            tuple(request.tokens[since:]),
            tuple(request.logprobs[since : self._reported]),
            tuple(request.likeliest[since : self._reported]),
            request.reason,
            0.0 if request.reason is None else sum(request.logprobs),
            request.problem,
        )


class Engine:
    """scheduler: makes the run's scheduler, anew after a step that failed; None: the run writes nothing.

    most: sequences that are written or wait, of all submissions. The methods without an underscore belong to the event
    loop.
    """

    def __init__(self, name: str, scheduler: Callable[[], Scheduler] | None, *, most: int = 320) -> None:
        self.name, self.most = name, most
        self.written, self.steps = 0, 0  # counts for the metrics; the engine's thread alone adds to them
        self._make = scheduler
        self._scheduler = None if scheduler is None else scheduler()
        self._running: dict[Request | BeamRequest, InFlight] = {}
        self._submissions: set[Submission] = set()
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
        return sum(each.running for each in self._submissions) + self._calls

    def start(self) -> None:
        """Begins to work for the loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def write(self, request: HTTPRequest, transcripts: Sequence[Transcript]) -> None:
        """Adds what is written to the transcripts until all have ended; cancelled if the client disconnects first."""
        submission = self.submit(transcripts)

        async def read() -> None:
            async for news in submission.each():
                transcripts[news.number].add(news)

        try:
            await attended(request, read())
        except BaseException:
            self.leave(submission)
            raise

    async def stream(
        self,
        request: HTTPRequest,
        transcripts: Sequence[Transcript],
        pieces: Callable[[AsyncIterator[News]], AsyncIterator[dict[str, Any]]],
    ) -> Response:
        """The pieces that are made of the news, as events. A refusal is raised before the first is sent."""
        submission = self.submit(transcripts)
        leave = partial(self.leave, submission)
        try:
            await attended(request, submission.accepted())
        except BaseException:
            leave()
            raise
        return EventStream(pieces(submission.each()), leave)

    def submit(self, transcripts: Sequence[Transcript]) -> Submission:
        """Hands transcripts to the engine's thread; its submission gives what is written, or raises why not."""
        self._admit(len(transcripts))
        submission = Submission(transcripts)
        self._submissions.add(submission)
        self._commands.put(partial(self._accept, submission))
        return submission

    def leave(self, submission: Submission) -> None:
        """Gives up a submission: nobody reads it any more."""
        if not submission.left:
            submission.left = True
            self._commands.put(partial(self._drop, submission))

    async def call(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in the engine's thread between two steps."""
        self._admit(1)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls += 1
        try:
            self._commands.put(partial(self._answer, work, future))
            return await future
        finally:
            self._calls -= 1

    def refuse(self) -> None:
        """Takes no new submissions and calls."""
        self._stopping = True

    def stop(self) -> None:
        """Ends what is left, with an error for its clients, and the thread."""
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
        """Waits for a command, then lets a short thread work until no more come: its OpenMP pool ends with it."""
        while not self._ended:
            first = self._commands.get()
            if first is not _end_idle_thread:
                short_thread(partial(self._serve, first), self._thread.name)

    def _serve(self, first: Callable[[], None]) -> None:
        """Runs commands and steps until there has been nothing to do for a while."""
        command: Callable[[], None] | None = first
        while command is not None:
            try:
                self._obey(command)
                while not self._ended and self._scheduler is not None and self._scheduler.busy:
                    self._step(self._scheduler)
                    self._obey()
            except Exception as problem:  # a thread that dies would leave everybody waiting
                self._fail(problem)
            command = self._next_command()

    def _obey(self, command: Callable[[], None] | None = None) -> None:
        """Runs a command and all that are waiting."""
        if command is not None:
            command()
        with contextlib.suppress(Empty):
            while not self._ended:
                self._commands.get_nowait()()

    def _next_command(self) -> Callable[[], None] | None:
        """The next command, if one comes while this thread may stay idle; None: the thread ends."""
        if self._ended:
            return None
        try:
            with POOLS.rest(partial(self._commands.put, _end_idle_thread)) as free:
                command = self._commands.get(timeout=IDLE if free else 0.0)
        except Empty:
            return None
        return None if command is _end_idle_thread else command

    def _step(self, scheduler: Scheduler) -> None:
        went = scheduler.step()
        self.steps += 1
        news = []
        for request in went:
            running = self._running[request]
            news.append((running.submission, running.news()))
            self.written += len(news[-1][1].tokens)
            if request.reason is not None:
                del self._running[request]
        self._tell(news)

    def _accept(self, submission: Submission) -> None:
        """A submission's sequences go to the scheduler, all or none."""
        if submission.left:
            return
        taken: list[Request | BeamRequest] = []
        try:
            if self._scheduler is None:
                raise Refusal(409, f"{self.name} cannot write: it has no decoder", "model")
            for transcript in submission.transcripts:
                taken.append(transcript.submit(self._scheduler))
        except Exception as problem:
            for request in taken:
                self._scheduler.cancel(request)  # type: ignore[union-attr]
            numbers = range(len(submission.transcripts))
            self._tell([(submission, News(number, reason="failed", problem=problem)) for number in numbers])
            return
        self._running |= {each: InFlight(submission, number, each) for number, each in enumerate(taken)}
        self._tell([(submission, News())])

    def _drop(self, submission: Submission) -> None:
        for request, running in list(self._running.items()):
            if running.submission is submission:
                del self._running[request]
                self._scheduler.cancel(request)  # type: ignore[union-attr]
        self._post(partial(self._submissions.discard, submission))

    def _answer(self, work: Callable[[], T], future: asyncio.Future[T]) -> None:
        if future.cancelled():
            return
        try:
            found, problem = work(), None
        except Exception as raised:
            found, problem = None, raised
        self._post(partial(_settle, future, found, problem))

    def _fail(self, problem: Exception) -> None:
        """A step failed: its requests end with the error, and the next ones get a new scheduler."""
        if not isinstance(problem, SaccadeError):
            LOG.exception("a step of %s failed", self.name)
        self._abandon(problem)
        self._scheduler = None if self._make is None else self._make()

    def _end(self) -> None:
        self._ended = True
        self._abandon(Refusal(503, "the server is stopping"))

    def _abandon(self, problem: Exception) -> None:
        lost, self._running = self._running.values(), {}
        self._tell([(each.submission, News(each.number, reason="failed", problem=problem)) for each in lost])

    def _tell(self, news: list[tuple[Submission, News]]) -> None:
        """Hands all news of a step to the event loop in one call."""
        if news:
            self._post(partial(self._deliver, news))

    def _deliver(self, news: list[tuple[Submission, News]]) -> None:
        for submission, each in news:
            submission.put(each)
            if not submission.running:
                self._submissions.discard(submission)

    def _post(self, call: Callable[[], Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear of it
            self._loop.call_soon_threadsafe(call)  # type: ignore[union-attr]


def _end_idle_thread() -> None:
    """The command that asks an idle thread to end; one that works passes over it."""


def _settle(future: asyncio.Future[Any], found: Any, problem: Exception | None) -> None:
    if future.done():
        return
    if problem is None:
        future.set_result(found)
    else:
        future.set_exception(problem)
