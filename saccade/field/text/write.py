"""A text as Y after an X: written token by token by a decoder (Sutskever et al. 2014, Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field import metric
from saccade.field.field import Array, Column, Encoded, Taken, Term
from saccade.field.loss import place_loss
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.config import TextConfig, WrittenConfig
from saccade.field.text.read import Reading, fault
from saccade.field.text.side import side_of
from saccade.field.text.spelling import Unmerging
from saccade.field.text.text import TOKENIZER, Text
from saccade.field.text.tokens import GLIMPSE, of_files, padded, report, token_array
from saccade.field.unit import Side
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model


class Writing:
    """A target begins with <begin> and is ended by <end>; it shares the vocabulary of X, where that is a text."""

    kind: ClassVar[str] = "text"
    keys: ClassVar[type[WrittenConfig]] = WrittenConfig
    along: ClassVar[bool] = True
    everything: ClassVar[bool] = False
    several: ClassVar[bool] = False
    held: ClassVar[str | None] = "targets"
    unit, noun = "tokens", "text"
    head, needs, answer, rows = "vocabulary", "decoder", "search", "records"
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

    @staticmethod
    def stored(column: str) -> str:
        """All texts of a run share one vocabulary."""
        return TOKENIZER

    @staticmethod
    def made(config: TextConfig, raws: Iterable[Any]) -> bytes:
        """The vocabulary of texts."""
        return Reading.made(config, raws)

    @classmethod
    def load(cls, config: WrittenConfig, files: Mapping[str, bytes], column: str) -> Writing:
        """The field with the vocabulary among a run's files."""
        return cls(of_files(files), config)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Tokens, as many as a text has."""
        return {"tokens": token_array(self.text)}

    @property
    def model(self) -> Mapping[str, Any]:
        """A table of its tokens."""
        return {"embed": "tokens", "vocab": self.text.vocab}

    @property
    def published(self) -> dict[str, Any]:
        """What config.json at Hugging Face says of it: where a decoder begins."""
        return {"decoder_start_token_id": self.begin}

    def fits(self, config: ModelConfig) -> None:
        """Refuses two passes that cannot differ."""
        differs(config, self.config.agree)

    def windowed(self, length: int) -> Any:
        """Not a stream."""
        raise SaccadeError(f"a {self.noun} has no windows")

    def fits_room(self, room: int | None) -> None:
        """Examples that are too long are left out one by one."""

    def encode(self, raws: Sequence[Any]) -> Encoded:
        """Their tokens, without begin and end."""
        return {"tokens": self.text.encode(raws)}

    def sizes(self, column: Column) -> np.ndarray:
        """Tokens, and one for begin or end."""
        return column.lengths() + 1

    def fault(self, length: int, limit: int | None) -> str | None:
        """No tokens, or too many."""
        return fault(length, limit)

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

    @staticmethod
    def cell(text: str, folder: Path) -> str:
        """The text."""
        return text

    @staticmethod
    def identity(raw: str) -> bytes:
        """The text, however it is spaced."""
        return " ".join(raw.split()).encode()

    @staticmethod
    def parts(raws: Iterable[str]) -> Iterable[str]:
        """All of them."""
        return raws

    def report(self, column: Column, *, pieces: bool = False) -> str:
        """Tokens, lengths, vocabulary, share of unknown tokens."""
        return report(self.text, column, pieces=pieces)

    def show(self, raw: str) -> str:
        """The text."""
        return raw

    def sample(self, raw: str) -> str:
        """The text."""
        return raw

    def glimpse(self, raw: str) -> str:
        """Its first letters."""
        return raw[:GLIMPSE]

    def side(self, tokens: Sequence[int]) -> Side:
        """Tokens in words."""
        return side_of(self.text, tokens)

    def extent(self, raws: Iterable[Any], column: Column) -> int:
        """Not told: other systems count other tokens, and BLEU is there."""
        return 0

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

    @property
    def main(self) -> str:
        """The metric to tell first; of lower-cased text the one that knows no case."""
        if not metric.installed():
            return "exact_match"
        return "bleu_tokenised_lower" if self.text.lower else "bleu_13a"

    @property
    def known(self) -> tuple[str, ...]:
        """The metrics that can be told here."""
        return self.metrics if metric.installed() else self.metrics[:1]

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
