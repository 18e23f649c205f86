"""`Searches`: inputs that an engine answers, each by one search, as translations and predictions need them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from saccade.field.result import Result
from saccade.recipe import DecodeConfig
from saccade.serve.kept import Kept
from saccade.serve.opened import Opened
from saccade.serve.order import News
from saccade.serve.passage import FINISHED, Passage, bounded
from saccade.task.answer import Ask, known
from saccade.task.example import Example


class Searches:
    """Inputs with what a search is asked to write for each, and what has been written so far: the best of a beam, or
    the one that is drawn.
    """

    def __init__(
        self,
        opened: Opened,
        raws: Sequence[Any],
        asks: Sequence[Ask],
        decode: DecodeConfig,
        logprobs: int | None = None,
    ) -> None:
        self.opened, self.raws, self.asks, self.decode = opened, raws, asks, decode
        self.jobs = [opened.jobs.make(each, decode, top=logprobs or 0) for each in asks]
        bounded(opened, sum(each.options["max_tokens"] for each in self.jobs), logprobs)
        self.passages = [Passage(opened) for _ in asks]
        self.scores = [0.0] * len(asks)

    async def results(self) -> list[Result]:
        """The results, in their order, when all was written."""
        return [await self._result(number) for number in range(len(self.asks))]

    def kept(self, number: int) -> Kept:
        """What can be looked into afterwards."""
        return Kept(self.opened.name, self.example(number))

    def example(self, number: int) -> Example:
        """What was read and written for one input."""
        passage = self.passages[number]
        return self.opened.intake.example(self.asks[number], passage.ids, passage.ended)

    def add(self, news: News) -> None:
        """What was written of one input."""
        passage = self.passages[news.number]
        if news.found:
            best = news.found[0]
            passage.ids, passage.text = best.tokens, self.opened.text.decode(best.tokens)
            passage.ended, passage.reason = best.finished, FINISHED["end" if best.finished else "length"]
            self.scores[news.number] = best.logprob
        else:
            passage.add(news)
            self.scores[news.number] = news.score if news.reason else 0.0

    async def _result(self, number: int) -> Result:
        passage, text = self.passages[number], self.passages[number].text
        if self.decode.replace_unknown and self.opened.text.unknown in passage.ids:
            text = await self.opened.engine.call(partial(self._known, number))
        return Result(text, text, self.scores[number])

    def _known(self, number: int) -> str:
        """What was written with words of the source in place of the unknown ones."""
        ask, opened = self.asks[number], self.opened
        return known(opened.text, opened.model, self.raws[number], ask.source, ask.prompt, self.passages[number].ids)


def searches_of(opened: Opened, raws: Sequence[Any], decode: DecodeConfig, logprobs: int | None = None) -> Searches:
    """The searches for inputs; refuses those that cannot be answered."""
    return Searches(opened, raws, [opened.intake.asked(each, decode) for each in raws], decode, logprobs)
