"""A text as Y after an X: written token by token by a decoder (Sutskever et al. 2014, Vaswani et al. 2017)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.field import metric
from saccade.field.ctc import HEAD, ctc_loss, needed
from saccade.field.field import Column, Taken, Term, WrittenTarget
from saccade.field.loss import place_loss, text_losses
from saccade.field.result import Result
from saccade.field.tally import Tally
from saccade.field.text.config import TargetTextConfig
from saccade.field.text.text import Text
from saccade.field.text.text_field import TextField, padded, vocabulary_of
from saccade.field.text.units import token_side
from saccade.field.text.unmerge import Unmerging
from saccade.field.unit import Side
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model

PHRASE = 4  # words of the longest phrases that BLEU counts
PHRASED = ("bleu_13a", "bleu_tokenised_lower", "length_ratio")  # metrics of phrases, and of their number


class TargetText(TextField, WrittenTarget):
    """A text between <begin> and <end>; it shares the vocabulary of X, where that is a text."""

    keys: ClassVar[type[TargetTextConfig]] = TargetTextConfig
    held: ClassVar[str | None] = "targets"
    head, answer = "vocabulary", "search"
    metrics = ("exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower", "length_ratio")
    copies = True

    def __init__(self, text: Text, config: TargetTextConfig) -> None:
        if text.begin is None or text.end is None or text.pad is None:
            raise SaccadeError(
                "this tokenizer lacks a token for begin, end or padding: a text that is written needs them"
            )
        self.text, self.config, self.language = text, config, config.language or "en"
        self.pad, self.begin, self.end = text.pad, text.begin, text.end
        self.limit, self.around = config.limit, max(1, sum(map(len, text.frame)))
        self.passes = 2 if config.agree else 1
        self.unmerging = Unmerging(text, config.unmerge) if config.unmerge else None
        named = config.metrics or ()
        asked = [*self.metrics, *(each for each in named if each not in self.metrics)]
        self.known = tuple(each for each in asked if metric.installed(each))
        cased = "bleu_tokenised_lower" if text.lower else "bleu_13a"
        self.main = next((each for each in (*named, cased) if each in self.known), "exact_match")
        self.missing = metric.missing(each for each in named or asked if each not in self.known)

    @classmethod
    def load(cls, config: TargetTextConfig, files: Mapping[str, bytes], column: str) -> TargetText:
        return cls(vocabulary_of(files), config)

    @property
    def published(self) -> dict[str, Any]:
        """What a Hugging Face config.json says of it: the token that a decoder begins with."""
        return {"decoder_start_token_id": self.begin}

    @property
    def model(self) -> Mapping[str, Any]:
        """With CTC, a second head, which reads the encoder."""
        return {**super().model, **({"named_heads": {HEAD: "ctc"}} if self.config.ctc else {})}

    def fits(self, config: ModelConfig) -> None:
        differs(config, self.config.agree)
        if self.config.ctc and (config.class_tokens or config.registers or config.cross == "embedded"):
            raise SaccadeError(
                "y.ctc reads a state for each place of X: leave out class_tokens, registers and cross = 'embedded', "
                "or y.ctc"
            )

    def collate(self, taken: Taken, draw: np.random.Generator | None = None) -> Input:
        """tokens (B,T): what a decoder is shown; wanted (B,T): what it should predict there, -1 behind the end."""
        tokens, lengths = padded(taken["tokens"], self.pad, before=[self.begin])
        wanted, _ = padded(taken["tokens"], -1, behind=[self.end])
        return Input({"tokens": tokens, "wanted": wanted}, lengths)

    def given(self, y: Input, draw: np.random.Generator | None = None) -> Input:
        return Input({"tokens": y.values["tokens"]}, y.lengths)

    def cramped(self, column: Column, vectors: np.ndarray) -> int:
        """The texts that CTC cannot lay along so few states."""
        if not self.config.ctc:
            return 0
        tokens, sizes = padded(column.take(np.arange(len(vectors)))["tokens"], self.pad)
        return int((needed(tokens, sizes).numpy() > vectors).sum())

    def counts(self, y: Input) -> dict[str, int]:
        """Tokens, the end of each text included."""
        return {"text": int((y.values["wanted"] >= 0).sum())}

    def loss(self, model: Model, states: States, y: Input, *, learning: bool) -> dict[str, Term]:
        """Cross-entropy, summed over the tokens of the targets, their ends included."""
        smoothing, agree = (self.config.smoothing, self.config.agree) if learning else (0.0, 0.0)
        total = place_loss(model, states.last, y.values["wanted"], smoothing, agree)
        if not (learning and self.config.ctc):
            return {"text": Term(total)}
        beside = ctc_loss(model, states, y.values["wanted"], self.pad)
        return {"text": Term(total), HEAD: Term(beside, self.config.ctc)}

    def losses(self, model: Model, states: States, y: Input) -> Tensor:
        return text_losses(model, states.last, y.values["wanted"])

    def adds(self) -> list[str]:
        beside = [f"CTC ({self.config.ctc:g})"] if self.config.ctc else []
        return [*added(self.config.smoothing, self.config.agree), *beside]

    def side(self, tokens: Sequence[int]) -> Side:
        return token_side(self.text, tokens)

    def measures(self, loss: float, count: int, extent: int) -> dict[str, float]:
        return {"loss": loss, "perplexity": metric.perplexity(loss)}

    def meaningful(self, raws: Sequence[str]) -> tuple[str, ...]:
        """Those that the recipe names; else all, but BLEU and its ratio of lengths only where half of the references
        have four words: BLEU counts phrases of one to four words, and is 0 where none has four.
        """
        if self.config.metrics is not None:
            return tuple(each for each in self.known if each in self.config.metrics) or self.known[:1]
        phrased = 2 * sum(len(raw.split()) >= PHRASE for raw in raws) >= len(raws)
        return self.known if phrased else tuple(each for each in self.known if each not in PHRASED)

    def beside(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Any]:
        """The signatures of the metrics; whether capitals count as faults."""
        missing = {"missing": self.missing} if self.missing else {}
        shown = self.meaningful(raws)
        lower = self.text.lower and {"bleu_13a", "chrf"} & {*shown}
        return {
            "signatures": metric.signatures(shown, language=self.language),
            **missing,
            **({"lower": True} if lower else {}),
        }

    def cased(self, name: str, texts: list[str]) -> list[str]:
        """The texts as a metric compares them. A model of lower-cased text cannot match capitals, so exact match
        ignores them; BLEU and chrF keep the case that their signatures name, so that they stay comparable.
        """
        return [each.lower() for each in texts] if name == "exact_match" and self.text.lower else texts

    def quick(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, float]:
        """Exact match and the main metric: BLEU, where it is installed and means something."""
        references = self.cased("exact_match", list(raws))
        names = dict.fromkeys(["exact_match", self.main_of(raws)])
        return metric.measure(names, [each.text for each in results], references, language=self.language)

    def tallies(self, results: Sequence[Result], raws: Sequence[str]) -> dict[str, Tally]:
        """The metrics as counts of each sentence; answers of other systems may have capitals."""
        answers, references, found = [each.text for each in results], list(raws), {}
        for name in self.known:
            kind = metric.METRICS[name]
            counts = kind.counts(self.cased(name, answers), self.cased(name, references), self.language)
            found[name] = Tally(counts, kind.score, kind.better)
        return found

    def told(self, taken: Taken) -> list[Result]:
        texts = [self.text.decode(each.tolist()) for each in taken["tokens"]]
        return [Result(text, text, 0.0) for text in texts]

    def baseline(self, rows: Sequence[Sequence[Any]], train: Callable[[], Column], tested: Column) -> dict[str, Any]:
        """The source itself as the answer, where it is a text; else the commonest text of the training rows."""
        given, wanted = [row[0] for row in rows], [row[-1] for row in rows]
        if all(isinstance(each, str) for each in given):
            copied = [Result(each, each, 0.0) for each in given]
            return {"what": "the source itself", **self.quick(copied, wanted)}
        learned = train()
        counts = Counter(each.tobytes() for each in learned.take(np.arange(len(learned.lengths())))["tokens"])
        ((common, _),) = counts.most_common(1)
        text = self.text.decode(np.frombuffer(common, learned.array("tokens").dtype).tolist())
        found = self.tallies([Result(text, text, 0.0)] * len(wanted), wanted)
        return {"what": f"always {text!r:.60}", **{name: found[name].value for name in self.meaningful(wanted)}}

    def copied(self, column: Column, numbers: np.ndarray, wanted: Sequence[Any]) -> list[Result]:
        texts = [self.text.decode(row.tolist()) for row in column.take(numbers)["tokens"]]
        return [Result(each, each, 0.0) for each in texts]


def added(smoothing: float, agree: float) -> list[str]:
    """What a loss has in training alone, in words."""
    parts = {f"label smoothing {smoothing:g}": smoothing, f"the agreement of two passes ({agree:g})": agree}
    return [words for words, share in parts.items() if share]


def differs(config: ModelConfig, agree: float) -> None:
    """Refuses `y.agree` where its two passes could not differ, or would both continue one memory."""
    if agree and not (config.dropout or config.attention_dropout):
        raise SaccadeError("y.agree compares passes that differ by their dropout: set model.dropout, or leave it out")
    if agree and config.memory:
        raise SaccadeError("y.agree makes two passes, and a memory goes on from one: leave out one of them")
