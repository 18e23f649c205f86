"""Translation: a text to a text, by an encoder-decoder (Sutskever et al. 2014, Vaswani et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend.mask import padding
from saccade.config import ModelConfig
from saccade.data.batch import Batches, Shown, pad, walk
from saccade.data.corpus import Corpus
from saccade.data.field import Field, Text
from saccade.data.spelling import spelled
from saccade.decode.generate import generate, stream
from saccade.decode.sequence import Sequence as Written
from saccade.decode.unknown import looked_at, pieces, replaced
from saccade.error import SaccadeError
from saccade.model.model import Model
from saccade.recipe import DecodeConfig, TrainConfig
from saccade.task import metric
from saccade.task.batch import CUT, Batch, Result, fit, unanswered, unfit
from saccade.task.loss import token_loss
from saccade.task.reward import Limits, draw, regret
from saccade.task.search import piecewise, search

STEP = 8  # sources that differ by less may become equally long, and are translated together
TOGETHER = 4096  # tokens that are decoded at a time, beams counted


class Translate:
    """Source and target share one vocabulary; a source ends with <end>, a target begins with <begin>."""

    columns: tuple[str, ...] = ("source", "target")
    metrics: tuple[str, ...] = ("exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower", "length_ratio")

    def __init__(self, text: Text, language: str = "en") -> None:
        if text.begin is None or text.end is None or text.pad is None:
            raise SaccadeError("this tokenizer lacks a token for begin, end or padding: translation needs them")
        self.text, self.language = text, language
        self.pad, self.begin, self.end = text.pad, text.begin, text.end

    @property
    def fields(self) -> dict[str, Field]:
        """By the columns of a corpus."""
        return {"source": self.text, "target": self.text}

    def configure(self, model: ModelConfig) -> ModelConfig:
        """The model with the vocabulary and the head that the task asks for."""
        if not model.encoder or not model.decoder:
            raise SaccadeError("translate needs an encoder and a decoder: give model.encoder and model.decoder a depth")
        return model.model_copy(update={"vocab": self.text.vocab, "head": "vocabulary"})

    def walk(
        self, corpus: Corpus, config: TrainConfig, seed: int, epoch: int, position: int
    ) -> Iterator[tuple[int, int, Batch]]:
        """Batches of similar lengths without end; the tokens that are added count in their size."""
        apart = self.columns if config.unmerge_side == "both" else ("source",)
        epochs = spelled(corpus, dict.fromkeys(apart, self.text), config.unmerge, seed)
        for number, place, given, indices in walk(epochs, self.columns, config.batch, seed, epoch, position):
            yield number, place, self.batch(given, indices)

    def whole(self, corpus: Corpus, config: TrainConfig) -> Iterator[Batch]:
        """Every example once."""
        lengths = [corpus.lengths(each) + 1 for each in self.columns]
        budget = max(config.batch, max(int(each.max()) for each in lengths))
        return (self.batch(corpus, indices) for indices in Batches(lengths, budget, shuffle=False).epoch(0))

    def batch(self, corpus: Shown, indices: np.ndarray) -> Batch:
        """The examples of these numbers."""
        (source, lengths), (target, sizes) = (pad(corpus.take(each, indices), self.pad) for each in self.columns)
        shown = F.pad(target, (1, 0), value=self.begin)
        wanted = self._ended(target, sizes)
        places = (torch.arange(shown.shape[1]) <= sizes[:, None]).flatten().nonzero().squeeze(1)
        source, full = self._ended(source, lengths), int(lengths.min()) == source.shape[1]
        return Batch(source, None if full else lengths + 1, shown, wanted.flatten()[places], places)

    def _ended(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """<end> after each row: (B,T) -> (B,T+1)."""
        return F.pad(tokens, (0, 1), value=self.pad).scatter_(1, lengths[:, None], self.end)

    def loss(self, model: Model, batch: Batch, smoothing: float = 0.0, agree: float = 0.0) -> Tensor:
        """Summed over the target's tokens, the end among them."""
        batch = batch.twice() if agree else batch
        hidden = None if batch.lengths is None else padding(batch.lengths)
        behind = padding(batch.sizes) if model.config.experts else None  # causality hides it from all but experts
        states = model.states(batch.source, batch.target, padding=hidden, target_padding=behind).flatten(0, 1)
        states = states if batch.places is None else states[batch.places]
        return token_loss(model, states, batch.wanted, smoothing, agree=agree)

    def regret(self, model: Model, batch: Batch, samples: int) -> Tensor:
        """Summed over the examples, by its gradient: minus the expected GLEU of what the model writes."""
        sizes = (batch.source != self.pad).sum(1) if batch.lengths is None else batch.lengths
        rows = zip(batch.source.tolist(), sizes.tolist(), strict=True)
        assert batch.target is not None
        ends = (batch.wanted == self.end).nonzero().flatten().tolist()
        begins = [0, *(place + 1 for place in ends[:-1])]
        references = [batch.wanted[begin:end].tolist() for begin, end in zip(begins, ends, strict=True)]
        limits = self._limits(model, batch.target.shape[1], samples)
        return regret(model, [row[:size] for row, size in rows], references, limits)

    def worth(self, model: Model, rows: Sequence[Sequence[str]], samples: int, limit: int | None = None) -> float:
        """The mean GLEU of translations that are drawn, with the same seed each time: what a reward raises."""
        sources, references = (self.text.encode([row[column] for row in rows]) for column in (0, 1))
        kept = [number for number, each in enumerate(sources) if unfit(each, limit, "translate") is None]
        if not kept:
            return math.nan
        limits = self._limits(model, max(len(references[number]) for number in kept) + 1, samples)
        ended = [[*sources[number], self.end] for number in kept]
        return float(draw(model, ended, [references[number] for number in kept], limits, seed=0)[1].mean())

    def _limits(self, model: Model, target: int, samples: int) -> Limits:
        """Twice as long as the longest target, and no longer than the model can."""
        return Limits(self.begin, self.end, samples, min(2 * target, model.room or 2 * target))

    def predict(
        self, model: Model, inputs: Sequence[str], decode: DecodeConfig, limit: int | None = None
    ) -> list[Result]:
        """A translation of each text, in their order; an empty or over-long one gets a note instead."""
        tokens = self.text.encode(list(inputs))
        results = [unfit(each, limit, "translate") for each in tokens]
        left = sorted((number for number, each in enumerate(results) if each is None), key=lambda n: len(tokens[n]))
        longest = [self.longest(model, len(tokens[number]) + 1, decode) for number in left]
        for group in _groups([len(tokens[number]) for number in left], longest, TOGETHER // decode.beam):
            numbers = [left[each] for each in group]
            sources = [[*tokens[number], self.end] for number in numbers]
            for number, source, found in zip(numbers, sources, self._write(model, sources, decode), strict=True):
                unknown = decode.replace_unknown and self.text.unknown in found.tokens
                text = self._known(model, inputs[number], source, found.tokens) if unknown else self._text(found)
                most = self.longest(model, len(source), decode)
                cut = None if found.finished else f"{CUT}no end within {most} tokens (max_tokens, ratio)"
                results[number] = Result(text, found.logprob, cut)
        return [each for each in results if each is not None]

    def read(self, text: str, limit: int | None = None) -> list[int]:
        """The source with its end."""
        (tokens,) = self.text.encode([text])
        return [*fit(tokens, limit, "translate"), self.end]

    def write(self, model: Model, read: list[int], decode: DecodeConfig) -> Written:
        """The translation of a source."""
        return self._write(model, [read], decode)[0]

    def stream(self, model: Model, text: str, decode: DecodeConfig, limit: int | None = None) -> Iterator[str]:
        """A translation, piece by piece."""
        decode, source = piecewise(decode), self.read(text, limit)
        yield from stream(
            model,
            [self.begin],
            source=source,
            end=self.text.ends,
            max_tokens=self.longest(model, len(source), decode),
            **search(decode, self.text, model),
        )

    def judge(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics of the translations of rows (source, reference), and what belongs beside them."""
        results = self.predict(model, [row[0] for row in rows], decode, limit)
        found, beside = self.score([each.text for each in results], [row[1] for row in rows])
        return found, {**beside, **unanswered(results)}

    def score(self, hypotheses: list[str], references: list[str]) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics, with their signatures and, for BLEU on Moses' tokens, a 95 % interval; without
        sacrebleu the first alone.
        """
        first, *others = self.metrics
        found = metric.measure([first], hypotheses, self.asked(first, references))
        if not metric.installed():
            return found, {"missing": "BLEU and chrF need pip install 'saccade[translate]'"}
        found |= metric.measure(others, hypotheses, references, language=self.language)
        interval = metric.interval("bleu_tokenised_lower", hypotheses, references, language=self.language)
        beside = {
            "signatures": metric.signatures(self.metrics, language=self.language),
            "interval": {"bleu_tokenised_lower": list(interval)},
        }
        return found, beside | ({"lower": True} if self.text.lower else {})

    def asked(self, name: str, references: list[str]) -> list[str]:
        """The references of a metric: whoever writes no capitals is not asked for equal ones. BLEU and chrF are what
        their signatures say, whoever writes.
        """
        return [each.lower() for each in references] if name == "exact_match" and self.text.lower else references

    def quick(
        self, model: Model, rows: Sequence[Sequence[str]], decode: DecodeConfig, limit: int | None = None
    ) -> tuple[dict[str, float], list[tuple[str, str]]]:
        """Exact match and, where it is installed, BLEU, and a few outputs, to be seen while training."""
        results = self.predict(model, [row[0] for row in rows], decode, limit)
        hypotheses = [each.text for each in results]
        references = self.asked("exact_match", [row[1] for row in rows])
        bleu = "bleu_tokenised_lower" if self.text.lower else "bleu_13a"
        names = ["exact_match", bleu] if metric.installed() else ["exact_match"]
        found = metric.measure(names, hypotheses, references, language=self.language)
        return found, [(row[0], text) for row, text in zip(rows[:3], hypotheses, strict=False)]

    def measures(self, loss: float, count: int, characters: int) -> Mapping[str, float]:
        """What a mean loss says."""
        return {"loss": loss, "perplexity": metric.perplexity(loss)}

    def _write(self, model: Model, sources: list[list[int]], decode: DecodeConfig) -> list[Written]:
        longest, options = self.longest(model, len(sources[0]), decode), search(decode, self.text, model)
        return generate(model, sources=sources, begin=self.begin, end=self.text.ends, max_tokens=longest, **options)

    def longest(self, model: Model, source: int, decode: DecodeConfig) -> int:
        """Tokens that the translation of so many may have, by its own length alone, and as the model has positions."""
        most = min(decode.max_tokens, model.room or decode.max_tokens)
        if decode.ratio is None:
            return most
        steps = -(-source // STEP) * STEP
        return min(most, max(math.ceil(decode.ratio * steps) + 10, decode.min_tokens))

    def _text(self, found: Written) -> str:
        return self.text.decode(found.tokens) if found.text is None else found.text

    def _known(self, model: Model, text: str, source: list[int], written: list[int]) -> str:
        """The translation with words of the source in place of the unknown ones."""
        looks = looked_at(model, source, [self.begin], written)
        return replaced(self.text, written, pieces(self.text, text), looks)


def _groups(lengths: list[int], longest: list[int], budget: int) -> list[list[int]]:
    """Neighbours of a sorted list that may become equally long, as many as the budget takes when padded."""
    groups: list[list[int]] = []
    for number, length in enumerate(lengths):
        full = not groups or (len(groups[-1]) + 1) * length > budget
        if full or longest[groups[-1][0]] != longest[number]:
            groups.append([])
        groups[-1].append(number)
    return groups
