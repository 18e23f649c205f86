"""An order: what a client waits for, and how it hears of trouble."""

from __future__ import annotations

import asyncio

import pytest

from saccade.serve.job import Job
from saccade.serve.order import News, Order

BROKEN = News(reason="failed", problem=AssertionError("broken"))


async def accepted(*news: News) -> list[News]:
    order = Order([Job([5])])
    for each in news:
        order.put(each)
    await order.accepted()
    return await order.news()


def test_a_refusal_is_raised_before_the_first_piece():
    with pytest.raises(AssertionError, match="broken"):
        asyncio.run(accepted(BROKEN))


def test_what_breaks_later_is_for_who_reads():
    """However late the client asks whether its order was taken: the engine may have written and failed by then."""

    async def late() -> None:
        order = Order([Job([5])])
        order.put(News(tokens=(7,), logprobs=(-1.0,)))
        order.put(BROKEN)
        await order.accepted()
        with pytest.raises(AssertionError, match="broken"):
            await order.news()

    asyncio.run(late())
    assert asyncio.run(accepted(News(tokens=(7,), logprobs=(-1.0,))))[0].tokens == (7,)
