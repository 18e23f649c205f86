"""A text as Y after an X: written token by token by a decoder (Sutskever et al. 2014, Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field import metric
from saccade.field.field import Column, Taken, Term, Written
from saccade.field.loss import place_loss
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.config import WrittenConfig
from saccade.field.text.side import side_of
from saccade.field.text.spelling import Unmerging
from saccade.field.text.text import Text
from saccade.field.text.tokens import Tokens, of_files, padded
from saccade.field.unit import Side
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model


class Writing(Tokens, Written):
    """A target begins with <begin> and is ended by <end>; it shares the vocabulary of X, where that is a text."""

    keys: ClassVar[type[WrittenConfig]] = WrittenConfig
    held: ClassVar[str | None] = "targets"
    head, answer = "vocabulary", "search"
    metrics = ("exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower", "length_ratio")

    def __init__(self, text: Text, config: WrittenConfig) -> None:
        if text.begin is None or text.end is None or text.pad is None:
            raise SaccadeError(
                "this tokenizer lacks a token for begin, end or padding: a text that is written needs them"
            )
        self.text, self.config, self.language = text, config, config.language or "en"
        self.pad, self.begin, self.end = text.pad, text.begin, text.end
        self.limit, self.around = config.limit, max(1, sum(map(len, text.frame)))
        self.passes = 2 if config.agree else 1
        self.unmerging = Unmerging(text, config.unmerge) if config.unmerge else None
        self.known = self.metrics if metric.installed() else self.metrics[:1]
        cased = "bleu_tokenised_lower" if text.lower else "bleu_13a"
        self.main = cased if metric.installed() else "exact_match"

    @classmethod
    def load(cls, config: WrittenConfig, files: Mapping[str, bytes], column: str) -> Writing:
        """The field with the vocabulary among a run's files."""
        return cls(of_files(files), config)

    @property
    def published(self) -> dict[str, Any]:
        """What config.json at Hugging Face says of it: where a decoder begins."""
        return {"decoder_start_token_id": self.begin}

    def fits(self, config: ModelConfig) -> None:
        """Refuses two passes that cannot differ."""
        differs(config, self.config.agree)

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """tokens: what a decoder is shown (B,T); wanted: what it should say there, -1 behind the end."""
        tokens, lengths = padded(taken["tokens"], self.pad, before=[self.begin])
        wanted, _ = padded(taken["tokens"], -1, behind=[self.end])
        return Input({"tokens": tokens, "wanted": wanted}, lengths)

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input:
        """The target behind its <begin>."""
        return Input({"tokens": y.values["tokens"]}, y.lengths)

    def counts(self, y: Input) -> dict[str, int]:
        """Tokens, each end among them."""
        return {"tokens": int((y.values["wanted"] >= 0).sum())}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Cross-entropy, summed over the target's tokens, the end among them."""
        smoothing, agree = (self.config.smoothing, self.config.agree) if learning else (0.0, 0.0)
        total = place_loss(model, states.last, y.values["wanted"], smoothing, agree)
        return {"tokens": Term(total)}

    def side(self, tokens: Sequence[int]) -> Side:
        """Tokens in words."""
        return side_of(self.text, tokens)

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        """The loss, and as perplexity."""
        return {"loss": loss, "perplexity": metric.perplexity(loss)}

    def score(self, results: Sequence[Result], raws: Sequence[str]) -> tuple[dict[str, float], dict[str, Any]]:
        """Exact match, BLEU and chrF with their signatures and, for BLEU on Moses' tokens, a 95 % interval; without
        sacrebleu the first alone.
        """
        hypotheses, references = [each.text for each in results], list(raws)
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

    def asked(self, name: str, texts: list[str]) -> list[str]:
        """The texts as a metric compares them: whoever writes no capitals is not asked for equal ones. BLEU and chrF
        are what their signatures say, whoever writes.
        """
        return [each.lower() for each in texts] if name == "exact_match" and self.text.lower else texts

    def quick(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, float]:
        """Exact match and, where it is installed, BLEU."""
        references = self.asked("exact_match", list(raws))
        names = ["exact_match", self.main] if metric.installed() else ["exact_match"]
        return metric.measure(names, [each.text for each in results], references, language=self.language)

    def tallies(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Tally]:
        """The metrics as counts of each sentence; answers of other systems may have capitals."""
        answers, references, found = [each.text for each in results], list(raws), {}
        for name in self.known:
            kind = metric.METRICS[name]
            counts = kind.counts(self.asked(name, answers), self.asked(name, references), self.language)
            found[name] = Tally(counts, kind.score, kind.better)
        return found

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The source itself as the answer, where it is a text."""
        given = [row[0] for row in rows]
        if not all(isinstance(each, str) for each in given):
            return {}
        copied = [Result(each, each, 0.0) for each in given]
        return {"what": "the source itself", **self.quick(copied, [row[-1] for row in rows])}


def differs(config: ModelConfig, agree: float) -> None:
    """Refuses two passes that should agree and cannot differ, or go on from one memory."""
    if agree and not (config.dropout or config.attention_dropout):
        raise SaccadeError("y.agree compares passes that differ by their dropout: set model.dropout, or leave it out")
    if agree and config.memory:
        raise SaccadeError("y.agree makes two passes, and a memory goes on from one: leave out one of them")
