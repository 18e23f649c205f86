"""Workers, and work in a thread that ends with it."""

from __future__ import annotations

import threading
import time

import pytest

from saccade.serve import engine
from saccade.serve.engine import Engine
from saccade.serve.worker import POOLS, short_thread


def test_it_gives_what_the_work_gives_or_raises():
    assert short_thread(lambda: threading.current_thread().name, "short") == "short"
    with pytest.raises(KeyError, match="wrong"):
        short_thread(lambda: {}["wrong"], "short")
    assert not any(each.name == "short" for each in threading.enumerate())


def test_an_engine_that_has_nothing_to_do_keeps_no_thread_that_computed(monkeypatch):
    monkeypatch.setattr(engine, "IDLE", 0.05)
    made, seen = Engine("idle", None), []
    made._thread.start()
    for _ in range(3):
        made._commands.put(lambda: seen.append(threading.current_thread()))
        end = time.monotonic() + 5
        while (len(seen) == 0 or seen[-1].is_alive()) and time.monotonic() < end:
            time.sleep(0.01)
        assert not seen.pop().is_alive()
    assert made.alive
    made._commands.put(made._end)
    made.join(5.0)
    assert not made.alive


def test_an_engine_rests_until_somebody_else_computes():
    made, seen = [Engine(name, None) for name in ("first", "second")], []

    def asked(number):
        count = len(seen)
        made[number]._commands.put(lambda: seen.append(threading.current_thread()))
        end = time.monotonic() + 5
        while len(seen) == count and time.monotonic() < end:
            time.sleep(0.01)
        return seen[-1]

    for each in made:
        each._thread.start()
    first = asked(0)
    time.sleep(0.1)
    assert asked(0) is first  # it has waited
    second = asked(1)
    first.join(5)
    assert not first.is_alive()
    assert asked(0) not in (first, second)
    second.join(5)
    assert not second.is_alive()
    assert short_thread(lambda: 3, "looking") == 3
    seen[-1].join(5)
    assert not seen[-1].is_alive()
    assert (POOLS.computing, POOLS.resting) == (0, [])

    def busy():
        third = asked(0)
        third.join(5)  # who would rest beside somebody who computes does not
        assert not third.is_alive()

    short_thread(busy, "computing")
    for each in made:
        each._commands.put(each._end)
        each.join(5.0)
        assert not each.alive
