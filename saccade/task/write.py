"""Writing: a language model, which says what comes next (Bengio et al. 2003, Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.batch import Windows, cover, window
from saccade.data.corpus import Corpus
from saccade.data.field import Field, Text
from saccade.decode.generate import generate
from saccade.error import SaccadeError
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, TrainConfig
from saccade.task import metric
from saccade.task.batch import Batch, Result
from saccade.task.loss import token_loss

SAMPLE = 60  # tokens of the samples that are shown while training


class Write:
    """Windows of one long stream of tokens."""

    columns: tuple[str, ...] = ("text",)

    def __init__(self, text: Text) -> None:
        self.text = text

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
        """Windows at random places without end, as many at a time as make up a batch's tokens."""
        order = Windows(len(corpus.stream("text")), config.length, max(1, config.batch // config.length), seed=seed)
        for place in count(position):
            yield 0, place, self.batch(corpus, order.starts(place), config.length)

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """The whole text, every token but the first predicted once."""
        rows = max(1, config.batch // config.length)
        for starts, length in cover(len(corpus.stream("text")), config.length, rows):
            yield self.batch(corpus, starts, length)

    def batch(self, corpus: Corpus, starts: np.ndarray, length: int) -> Batch:
        """Windows that begin at these places."""
        shown, wanted = window(corpus.stream("text"), starts, length)
        return Batch(shown, None, None, wanted.flatten(), None)

    def loss(self, model: Model, batch: Batch, smoothing: float = 0.0) -> Tensor:
        """Summed over all tokens."""
        return token_loss(model, model.states(batch.source).flatten(0, 1), batch.wanted, smoothing)

    def predict(
        self, model: Model, inputs: Sequence[str], decode: DecodeConfig, limit: int | None = None
    ) -> list[Result]:
        """How each text goes on."""
        results = []
        for tokens in self.text.encode(list(inputs)):
            if not tokens:
                results.append(Result("", 0.0, "empty: there is nothing to go on from"))
                continue
            room = decode.max_tokens if limit is None else min(decode.max_tokens, limit - len(tokens) + 1)
            if room < 1:
                results.append(Result("", 0.0, f"too long: {len(tokens)} tokens, and the model was made for {limit}"))
                continue
            (found,) = generate(model, [tokens], max_tokens=room, beam=decode.beam, end=self.text.end)
            results.append(Result(self.text.decode(found.tokens), found.logprob))
        return results

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
        short = decode.model_copy(update={"max_tokens": min(SAMPLE, decode.max_tokens)})
        return {}, [(start, self.predict(model, [start], short, limit)[0].text)]

    def measures(self, loss: float, count: int, characters: int) -> Mapping[str, float]:
        """What a mean loss says."""
        bits = {"bits_per_character": metric.bits_per_character(loss * count, characters)} if characters else {}
        return {"loss": loss, "perplexity": metric.perplexity(loss), **bits}
