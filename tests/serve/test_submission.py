"""A submission: what a client waits for, and how it hears of trouble."""

from __future__ import annotations

import asyncio

import pytest
from small import text

from saccade.serve.engine import Submission
from saccade.serve.transcript import News, Transcript
from saccade.task.answer import Ask

BROKEN = News(reason="failed", problem=AssertionError("broken"))


def submission(*news: News) -> Submission:
    made = Submission([Transcript(text(), Ask([5], None, 3), {})])
    for each in news:
        made.put(each)
    return made


async def accepted(*news: News) -> list[News]:
    made = submission(*news)
    await made.accepted()
    return await made.news()


def test_a_refusal_is_raised_before_the_first_piece():
    with pytest.raises(AssertionError, match="broken"):
        asyncio.run(accepted(BROKEN))


def test_what_breaks_later_is_for_who_reads():
    """However late the client asks whether its submission was taken: the engine may have written and failed by then."""

    async def late() -> None:
        made = submission(News(tokens=(7,), logprobs=(-1.0,)), BROKEN)
        await made.accepted()
        with pytest.raises(AssertionError, match="broken"):
            await made.news()

    asyncio.run(late())
    assert asyncio.run(accepted(News(tokens=(7,), logprobs=(-1.0,))))[0].tokens == (7,)
