"""The engine by itself: submissions come, are written, are left, and fail, without a server."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from small import slow, text, writing

import saccade
from saccade.decode.step import row_bytes
from saccade.error import SaccadeError
from saccade.serve.engine import Engine
from saccade.serve.refusal import Refusal
from saccade.serve.transcript import Transcript
from saccade.task.answer import Ask

LENGTH = 13


def engine(run=None, **options: int) -> Engine:
    model = (run or writing()).model
    return Engine("small", lambda: saccade.Scheduler(model, text=text()), **options)


def ask(length: int = LENGTH, prompt: tuple[int, ...] = (5, 7, 11), **options: object) -> Transcript:
    return Transcript(text(), Ask(list(prompt), None, length), {"max_tokens": length, **options})


async def read(submission) -> list[str]:
    texts = [""] * len(submission.transcripts)
    async for news in submission.each():
        texts[news.number] += news.piece
    return texts


def run(work, made: Engine):
    """The coroutine that `work` makes, with a working engine, which has nothing left afterwards."""

    async def whole():
        made.start()
        try:
            return await asyncio.wait_for(work(), 20)
        finally:
            made.stop()
            made.join(5)
            assert not made.alive

    return asyncio.run(whole())


def test_submissions_are_written_together_and_each_is_told_its_own():
    made = engine()

    async def work():
        submissions = [made.submit([ask(temperature=1.0, seed=seed), ask(5)]) for seed in range(7)]
        return await asyncio.gather(*(read(each) for each in submissions))

    found = run(work, made)
    for seed, (drawn, greedy) in enumerate(found):
        (own,) = saccade.generate(
            writing().model, [[5, 7, 11]], max_tokens=LENGTH, temperature=1.0, seed=seed, text=text()
        )
        assert drawn == own.text
        assert len(greedy) == 5
    assert made.written == 7 * (LENGTH + 5)
    assert made.steps < 7 * LENGTH, "they share their steps: one after another, each would need LENGTH"


def test_what_the_scheduler_refuses_is_raised_where_it_was_asked():
    made = engine()

    async def work():
        good, bad = made.submit([ask()]), made.submit([ask(), ask(temperature=-1)])
        with pytest.raises(SaccadeError, match="temperature"):
            await bad.accepted()
        with pytest.raises(SaccadeError, match="temperature"):
            await read(bad)
        assert made._scheduler._waiting == [] or len(made._scheduler._waiting) == 1
        return await read(good), made.load

    assert run(work, made) == ([run_alone()], 0)


def run_alone() -> str:
    return saccade.generate(writing().model, [[5, 7, 11]], max_tokens=LENGTH, text=text())[0].text


def test_who_leaves_before_it_begins_is_never_begun():
    made = engine()

    async def work():
        hold = threading.Event()
        busy = asyncio.ensure_future(made.call(hold.wait))
        await asyncio.sleep(0.05)
        submission = made.submit([ask()])
        made.leave(submission)
        made.leave(submission)
        hold.set()
        await busy
        while made.load:
            await asyncio.sleep(0.01)
        return made.steps

    assert run(work, made) == 0


def test_the_count_of_sequences_is_bounded():
    made = engine(most=3)

    async def work():
        submission = made.submit([ask(), ask()])
        with pytest.raises(Refusal) as problem:
            made.submit([ask(), ask()])
        assert problem.value.status == 429
        made.submit([ask()])
        await read(submission)

    run(work, made)


def test_a_call_runs_between_steps_and_its_problem_is_raised():
    made = engine()

    async def work():
        submission = made.submit([ask()])
        assert await made.call(lambda: threading.current_thread().name) == "saccade-small"
        with pytest.raises(ZeroDivisionError):
            await made.call(lambda: 1 // 0)
        return await read(submission)

    assert run(work, made) == [run_alone()]


def test_an_engine_that_stops_tells_those_who_wait():
    made = engine(slow(writing(), 0.05))

    async def work():
        submission = made.submit([ask(200)])
        await submission.accepted()
        made.stop()
        with pytest.raises(Refusal, match="stopping"):
            await read(submission)
        with pytest.raises(Refusal, match="stopping"):
            made.submit([ask()])

    run(work, made)


def test_a_step_that_fails_ends_its_submissions_and_no_others():
    model = writing().model
    failing = {"now": True}

    def fail(*_: object) -> None:
        if failing["now"]:
            raise RuntimeError("broken")

    model.decoder.register_forward_hook(fail)
    made = Engine("small", lambda: saccade.Scheduler(model, text=text()))

    async def work():
        with pytest.raises(RuntimeError, match="broken"):
            await read(made.submit([ask()]))
        failing["now"] = False
        return await read(made.submit([ask()])), made.load

    assert run(work, made) == ([run_alone()], 0)


def test_a_shared_beginning_is_not_read_twice():
    """The second prompt begins as the first did: its prefill is shorter, and what it writes is the same."""
    model, field = writing().model, text()
    seen: list[int] = []
    model.decoder.register_forward_hook(lambda module, args, out: seen.append(args[0].shape[1]))
    made = Engine("small", lambda: saccade.Scheduler(model, text=field, prefixes=1000))
    (first, second) = field.encode(["the same long beginning, then this", "the same long beginning, then that"])

    async def work():
        for prompt in (first, second):
            await read(made.submit([ask(3, prompt)]))

    run(work, made)
    assert seen[0] == len(first)
    assert max(seen[1:]) < 10


def test_an_idle_engine_does_nothing():
    made = engine()

    async def work():
        await read(made.submit([ask()]))
        used = time.process_time()
        await asyncio.sleep(0.3)
        return time.process_time() - used

    assert run(work, made) < 0.1


def test_int8_weights_have_keys_and_values_in_float32():
    """Rows are bounded by the bytes of what is kept, not by those of the weights."""
    made = writing(tie=True)
    for each in (made, made.quantise()):
        assert row_bytes(each.model, 1) == 2 * 2 * 24 * 4
