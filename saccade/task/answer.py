"""Answering: texts with questions in them, of which the answers alone are learned and judged.

Everything else of a text is there to be read. In `? key value` the value is an answer: the token after a question, and
a question is a certain token, such as `?`, and one more. So what counts is the same for every decoder, however it looks
back, and no search stands between a model and its accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.batch import Piece, texts, window
from saccade.data.corpus import Corpus
from saccade.data.field import Field, Text
from saccade.decode.sequence import Sequence as Written
from saccade.error import SaccadeError
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, TrainConfig
from saccade.task.batch import Batch, Result
from saccade.task.carry import Carry
from saccade.task.write import Write

TOGETHER = 8192  # tokens that are read at a time


class Answer:
    """Texts of one length, each for itself; in segments, with what is remembered of those before, or at once."""

    columns: tuple[str, ...] = ("text",)

    def __init__(self, text: Text, ask: str, *, segment: int | None = None) -> None:
        self.text, self.segment = text, segment
        self.writes = Write(text, remembers=segment is not None)
        tokens = text.encode([ask])[0]
        if len(tokens) != 1 or tokens[0] == text.unknown or text.end is None:
            raise SaccadeError(f"data.ask = {ask!r} is no token of this vocabulary: write one that stands in the texts")
        self.ask, self.end = tokens[0], text.end

    @property
    def fields(self) -> dict[str, Field]:
        """By the columns of a corpus."""
        return self.writes.fields

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the vocabulary and the head that the task asks for."""
        return self.writes.configure(model)

    def walk(
        self, corpus: Corpus, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Texts without end, as many at a time as make up a batch's tokens."""
        size, rows = self._size(corpus.lengths("text") - 1, config.length), max(1, config.batch // config.length)
        order = texts(len(corpus), size, config.length, rows, config.accumulate, seed=seed)
        for number, place, piece in order.walk(epoch, position):
            yield number, place, self.batch(corpus.stream("text"), piece, config.length)

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """Every text once."""
        if not (corpus.stream("text") == self.ask).any():
            raise SaccadeError("no text of this split asks anything: data.ask stands in none of them")
        size = self._size(corpus.lengths("text") - 1, config.length)
        yield from self._all(corpus.stream("text"), size, config.length, max(1, config.batch // config.length))

    def batch(self, stream: np.ndarray, piece: Piece, length: int) -> Batch:
        """Windows that begin at these places, and the answers in them."""
        shown, wanted = window(stream, piece.starts, length)
        before = piece.starts[:, None] + np.arange(length) - 1  # perhaps in the segment before
        places = torch.from_numpy(np.flatnonzero((before >= 0) & (stream[before] == self.ask)))
        lane = None if self.segment is None else piece.lane
        return Batch(shown, None, None, wanted.flatten()[places], places, lane, piece.fresh)

    def loss(self, model: Model, batch: Batch, smoothing: float = 0.0, agree: float = 0.0) -> Tensor:
        """Summed over the answers."""
        return self.writes.loss(model, batch, smoothing, agree)

    def predict(
        self, model: Model, inputs: Sequence[str], decode: DecodeConfig, limit: int | None = None
    ) -> list[Result]:
        """How each text goes on; after a question, with its answer."""
        return self.writes.predict(model, inputs, decode, limit)

    def read(self, text: str, limit: int | None = None) -> list[int]:
        """The text."""
        return self.writes.read(text, limit)

    def write(self, model: Model, read: list[int], decode: DecodeConfig) -> Written:
        """How a text goes on."""
        return self.writes.write(model, read, decode)

    def stream(self, model: Model, text: str, decode: DecodeConfig, limit: int | None = None) -> Iterator[str]:
        """How a text goes on, piece by piece."""
        return self.writes.stream(model, text, decode, limit)

    def judge(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The share of questions to which the likeliest token is the answer."""
        read = [[*tokens, self.end] for tokens in self.text.encode([row[0] for row in rows])]
        size = self._size(np.array([len(each) - 1 for each in read]), self.segment)
        stream, length = np.concatenate([np.array(each) for each in read]), self.segment or size
        carry, right, count, device = Carry(model), 0, 0, model.embed.tokens.weight.device
        with torch.inference_mode(), at_rest(model):
            for batch in self._all(stream, size, length, max(1, TOGETHER // length)):
                moved = carry.along(batch.to(str(device)))
                states = model.states(moved.source, memory=moved.memory).flatten(0, 1)[moved.places]
                right += int((model.answer(states[None])[0].argmax(-1) == moved.wanted).sum())
                count += batch.count
        return {"accuracy": right / max(count, 1)}, {}

    def quick(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """Accuracy, to be seen while training."""
        return self.judge(model, rows, decode, limit)[0], []

    def measures(self, loss: float, count: int, characters: int) -> Mapping[str, float]:
        """What a mean loss says."""
        return {"loss": loss}

    def _all(self, stream: np.ndarray, size: int, length: int, rows: int) -> Iterator[Batch]:
        """All texts of a stream in order, so many at a time, each to its end."""
        begins = np.arange(0, len(stream), size + 1)
        for first in range(0, len(begins), rows):
            for place in range(0, size, length):
                yield self.batch(stream, Piece(begins[first : first + rows] + place, 0, fresh=not place), length)

    def _size(self, sizes: np.ndarray, length: int | None) -> int:
        """How long all texts are; refuses what does not fit."""
        if not len(sizes):
            raise SaccadeError("there is no text to judge")
        size = int(sizes[0])
        if (sizes != size).any():
            some = f"some have {sizes.min()} tokens, some {sizes.max()}"
            raise SaccadeError(f"texts with answers are all as long; here {some}")
        if length is not None and (size % length or (self.segment is None and size != length)):
            fitting = f"{size}" if self.segment is None else f"a divisor of {size}"
            raise SaccadeError(f"the texts have {size} tokens and train.length is {length}: set it to {fitting}")
        return size
