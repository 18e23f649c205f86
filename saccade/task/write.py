"""Writing: a language model, which says what comes next (Bengio et al. 2003, Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.batch import Piece, Windows, cover, cover_in_order, side_by_side, window
from saccade.data.corpus import Corpus
from saccade.data.field import Field, Text
from saccade.decode.generate import generate, stream
from saccade.decode.sequence import Sequence as Written
from saccade.error import SaccadeError
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, TrainConfig
from saccade.task import metric
from saccade.task.batch import Batch, Result, fit, unfit
from saccade.task.loss import token_loss
from saccade.task.search import piecewise, search, within

TOGETHER = 32  # texts that are gone on with at a time
SAMPLE = 60  # tokens of the samples that are shown while training


class Write:
    """Windows of one long stream of tokens, at random places; in order, as segments, where the model remembers.

    A model with a memory of M (Dai et al. 2019) sees, at place t of a segment, the t before it and the M before those;
    a token that is written sees the M before it, as if every token were a segment of its own. Under `mask =
    "window(M + 1)"` both are the same, whatever the length of a segment.
    """

    columns: tuple[str, ...] = ("text",)

    def __init__(self, text: Text, *, remembers: bool = False, framed: bool = False) -> None:
        """framed: a text is read with what its tokenizer puts around it, as a model from elsewhere was taught."""
        self.text, self.remembers, self.framed = text, remembers, framed

    @property
    def fields(self) -> dict[str, Field]:
        """By the columns of a corpus."""
        return {"text": self.text}

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the vocabulary and the head that the task asks for."""
        if model.encoder or not model.decoder:
            raise SaccadeError("write needs a decoder alone: give model.decoder a depth, and no encoder")
        return model.model_copy(update={"vocab": self.text.vocab, "head": "vocabulary"})

    def walk(
        self, corpus: Corpus, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Windows without end, as many at a time as make up a batch's tokens."""
        total, rows = len(corpus.stream("text")), max(1, config.batch // config.length)
        if self.remembers:
            stretches = side_by_side(total, config.length, rows, config.accumulate, seed=seed)
            for number, place, piece in stretches.walk(epoch, position):
                yield number, place, self.batch(corpus, piece, config.length)
            return
        order = Windows(total, config.length, rows, seed=seed)
        for place in count(position):
            yield 0, place, self.batch(corpus, order.starts(place), config.length)

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """The whole text, every token but the first predicted once."""
        total, rows = len(corpus.stream("text")), max(1, config.batch // config.length)
        for where, length in (cover_in_order if self.remembers else cover)(total, config.length, rows):
            yield self.batch(corpus, where, length)

    def batch(self, corpus: Corpus, where: np.ndarray | Piece, length: int) -> Batch:
        """Windows that begin at these places."""
        starts, lane, fresh = where if isinstance(where, Piece) else (where, None, False)
        shown, wanted = window(corpus.stream("text"), starts, length)
        return Batch(shown, None, None, wanted.flatten(), None, lane, fresh)

    def loss(self, model: Model, batch: Batch, smoothing: float = 0.0, agree: float = 0.0) -> Tensor:
        """Summed over all tokens that are wanted."""
        batch = batch.twice() if agree else batch
        states = model.states(batch.source, memory=batch.memory).flatten(0, 1)
        states = states if batch.places is None else states[batch.places]
        return token_loss(model, states, batch.wanted, smoothing, agree=agree)

    def predict(
        self, model: Model, inputs: Sequence[str], decode: DecodeConfig, limit: int | None = None
    ) -> list[Result]:
        """How each text goes on."""
        read = [self.shown(each) for each in self.text.encode(list(inputs))]
        results = [unfit(each, limit, "go on from") for each in read]
        rooms = [decode.max_tokens if limit is None else min(decode.max_tokens, limit - len(each) + 1) for each in read]
        left = [number for number, each in enumerate(results) if each is None]
        for room in sorted({rooms[number] for number in left}):  # the same room: written together
            numbers = [number for number in left if rooms[number] == room]
            for group in (numbers[at : at + TOGETHER] for at in range(0, len(numbers), TOGETHER)):
                prompts = [read[number] for number in group]
                for number, found in zip(group, self._write(model, prompts, within(decode, room)), strict=True):
                    text = self.text.decode(found.tokens) if found.text is None else found.text
                    results[number] = Result(text, found.logprob)
        return [each for each in results if each is not None]

    def read(self, text: str, limit: int | None = None) -> list[int]:
        """The text."""
        (tokens,) = self.text.encode([text])
        return fit(self.shown(tokens), limit, "go on from")

    def shown(self, tokens: list[int]) -> list[int]:
        """What a model is shown of a text."""
        return self.text.framed(tokens) if self.framed else tokens

    def write(self, model: Model, read: list[int], decode: DecodeConfig) -> Written:
        """How a text goes on."""
        return self._write(model, [read], decode)[0]

    def stream(self, model: Model, text: str, decode: DecodeConfig, limit: int | None = None) -> Iterator[str]:
        """How a text goes on, piece by piece."""
        decode, tokens = piecewise(decode), self.read(text, limit)
        decode = decode if limit is None else within(decode, limit - len(tokens) + 1)
        options = search(decode, self.text, model)
        yield from stream(model, tokens, end=self.text.ends, max_tokens=decode.max_tokens, **options)

    def _write(self, model: Model, prompts: list[list[int]], decode: DecodeConfig) -> list[Written]:
        options = search(decode, self.text, model)
        return generate(model, prompts, max_tokens=decode.max_tokens, end=self.text.ends, **options)

    def judge(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Nothing beyond what the loss says."""
        return {}, {}

    def quick(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """How the first words of the validation text go on, to be seen while training."""
        start = rows[0][0][:20]
        return {}, [(start, self.predict(model, [start], within(decode, SAMPLE), limit)[0].text)]

    def measures(self, loss: float, count: int, characters: int) -> Mapping[str, float]:
        """What a mean loss says."""
        bits = {"bits_per_character": metric.bits_per_character(loss * count, characters)} if characters else {}
        return {"loss": loss, "perplexity": metric.perplexity(loss), **bits}
