"""Classification: a text to one of several labels, by an encoder that is pooled (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saccade.attend.mask import padding
from saccade.config import ModelConfig
from saccade.data.batch import Batches, Shown, pad, walk
from saccade.data.corpus import Corpus
from saccade.data.field import Field, Label, Text
from saccade.data.spelling import spelled
from saccade.error import SaccadeError
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, TrainConfig
from saccade.task import metric
from saccade.task.batch import Batch, Result, fit, unanswered, unfit
from saccade.task.loss import score_loss

TOGETHER = 64  # texts that are read at a time


class Classify:
    """A text begins with <begin>, whose state the model pools, or whichever knows of all the others; around a text for
    a model from elsewhere stands what its tokenizer puts there.
    """

    columns: tuple[str, ...] = ("source", "label")

    def __init__(self, text: Text, labels: Label) -> None:
        if text.begin is None or text.pad is None:
            raise SaccadeError("this tokenizer lacks a token for begin or padding: classification needs them")
        self.text, self.labels = text, labels
        self.pad = text.pad
        self.before, self.behind = text.frame if any(text.frame) else ([text.begin], [])

    @property
    def fields(self) -> dict[str, Field]:
        """By the columns of a corpus."""
        return {"source": self.text, "label": self.labels}

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the vocabulary and the head that the task asks for."""
        if not model.encoder or model.decoder:
            raise SaccadeError("classify needs an encoder alone: give model.encoder a depth, and no decoder")
        head = f"label({self.labels.vocab})"
        return model.model_copy(update={"vocab": self.text.vocab, "pooler": True, "head": head})

    def walk(
        self, corpus: Corpus, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Batches of similar lengths without end."""
        epochs = spelled(corpus, {"source": self.text}, config.unmerge, seed)
        for number, place, given, indices in walk(epochs, ["source"], config.batch, seed, epoch, position):
            yield number, place, self.batch(given, indices)

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """Every example once."""
        lengths = corpus.lengths("source") + len(self.before) + len(self.behind)
        order = Batches(lengths, max(config.batch, int(lengths.max())), shuffle=False)
        return (self.batch(corpus, indices) for indices in order.epoch(0))

    def batch(self, corpus: Shown, indices: np.ndarray) -> Batch:
        """The examples of these numbers."""
        source, lengths = self._shown(corpus.take("source", indices))
        labels = torch.from_numpy(np.concatenate(corpus.take("label", indices)).astype(np.int64))
        return Batch(source, lengths, None, labels, None)

    def loss(self, model: Model, batch: Batch, smoothing: float = 0.0, agree: float = 0.0) -> Tensor:
        """Summed over the examples."""
        batch = batch.twice() if agree else batch
        scores = model(batch.source, padding=padding(batch.lengths))
        return score_loss(scores.unflatten(0, (-1, batch.count)), batch.wanted, smoothing, agree).sum()

    def predict(
        self, model: Model, inputs: Sequence[str], decode: DecodeConfig, limit: int | None = None
    ) -> list[Result]:
        """The likeliest label of each text."""
        tokens = self.text.encode(list(inputs))
        results: list[Result | None] = [unfit(each, limit, "classify") for each in tokens]
        left = [number for number, each in enumerate(results) if each is None]
        with torch.inference_mode(), at_rest(model):
            for begin in range(0, len(left), TOGETHER):
                numbers = left[begin : begin + TOGETHER]
                shown = self._shown([np.array(tokens[number]) for number in numbers])
                source, lengths = (each.to(model.embed.tokens.weight.device) for each in shown)
                best = model(source, padding=padding(lengths)).float().log_softmax(-1).max(-1)
                for number, score, label in zip(numbers, best.values.tolist(), best.indices.tolist(), strict=True):
                    results[number] = Result(self.labels.names[label], score)
        return [each for each in results if each is not None]

    def read(self, text: str, limit: int | None = None) -> list[int]:
        """The text behind its <begin>."""
        (tokens,) = self.text.encode([text])
        return [*self.before, *fit(tokens, limit, "classify"), *self.behind]

    def write(self, model: Model, read: list[int], decode: DecodeConfig) -> None:
        """Nothing: a text gets a label."""

    def stream(self, model: Model, text: str, decode: DecodeConfig, limit: int | None = None) -> Iterator[str]:
        """The label, which comes all at once."""
        self.read(text, limit)  # refuses what has no answer
        (result,) = self.predict(model, [text], decode, limit)
        yield result.text

    def judge(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The share of right labels."""
        results = self.predict(model, [row[0] for row in rows], decode, limit)
        accuracy = metric.accuracy([each.text for each in results], [row[1] for row in rows])
        return {"accuracy": accuracy}, {**unanswered(results)}

    def quick(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """Accuracy, and a few labels, to be seen while training."""
        shown = self.predict(model, [row[0] for row in rows[:3]], decode, limit)
        found, _ = self.judge(model, rows, decode, limit)
        return found, [(row[0], result.text) for row, result in zip(rows, shown, strict=False)]

    def measures(self, loss: float, count: int, characters: int) -> Mapping[str, float]:
        """What a mean loss says."""
        return {"loss": loss}

    def _shown(self, texts: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        return pad([np.concatenate((self.before, each, self.behind)).astype(np.int64) for each in texts], self.pad)
