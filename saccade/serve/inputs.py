"""`Inputs`: texts that an engine answers, as translations and predictions need them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from saccade.decode.unknown import looked_at, pieces, replaced
from saccade.recipe import DecodeConfig
from saccade.serve.kept import Kept
from saccade.serve.opened import Opened
from saccade.serve.order import Ask, News
from saccade.serve.passage import FINISHED, Passage, bounded


class Found(NamedTuple):
    """What one input became, or a note why nothing."""

    text: str
    score: float
    reason: str | None = None
    note: str | None = None


class Inputs:
    """Inputs that an engine answers, each by one sequence: the best of a beam, or the one that is drawn."""

    def __init__(self, opened: Opened, texts: list[str], decode: DecodeConfig, logprobs: int | None = None) -> None:
        self.opened, self.texts, self.decode = opened, texts, decode
        self.top = logprobs or 0
        self.asks = [self._ask(each) for each in texts]
        bounded(opened, sum(each.options["max_tokens"] for each in self.asks), logprobs)
        self.passages = [Passage(opened) for _ in texts]
        self.scores = [0.0] * len(texts)

    def _ask(self, text: str) -> Ask:
        if self.opened.kind == "translate":
            return self.opened.ask_source(text, self.decode, top=self.top)
        return self.opened.ask(self.opened.prompt(text), self.decode, cut=True)

    async def found(self) -> list[Found]:
        """The results, in their order, when all was written."""
        return [await self._found(number) for number in range(len(self.texts))]

    def kept(self, number: int) -> Kept:
        """What can be looked into afterwards."""
        ask, passage = self.asks[number], self.passages[number]
        return Kept(self.opened.name, ask.source or ask.prompt, passage.ids, passage.ended)

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

    async def _found(self, number: int) -> Found:
        passage, text = self.passages[number], self.passages[number].text
        if self.decode.replace_unknown and self.opened.text.unknown in passage.ids:
            text = await self.opened.engine.call(partial(self._known, number))
        return Found(text, self.scores[number], passage.reason)

    def _known(self, number: int) -> str:
        """The translation with words of the source in place of the unknown ones."""
        ask, opened = self.asks[number], self.opened
        written = self.passages[number].ids
        looks = looked_at(opened.model, ask.source or [], ask.prompt, written)
        return replaced(opened.text, written, pieces(opened.text, self.texts[number]), looks)
