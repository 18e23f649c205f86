"""How good an answer is: metrics over lists of strings, their signatures, and how far chance moves them.

bleu_13a              corpus BLEU (Papineni et al. 2002) as sacrebleu computes it: cased, tokenised by 13a (Post 2018)
bleu_tokenised_lower  as older papers did with multi-bleu: lower-cased, then tokenised by Moses, no smoothing
chrf                  character n-grams, chrF2 (Popovic 2015)
exact_match           the share of answers that are the reference, letter by letter
length_ratio          tokens (of 13a) for each one of the references; below 1, BLEU is multiplied by e^(1 - 1 / ratio)

The intervals are Koehn's bootstrap (2004).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from saccade.error import SaccadeError, nearest

DRAWS, SEED = 1000, 0  # of the bootstrap
CELLS = 1 << 24  # numbers of draws x sentences that are held at a time


class Metric(Protocol):
    """A score of a whole corpus that depends on the sum of what was counted in each sentence."""

    better: int  # 1: more of it is; 0: neither more nor less

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        """What was counted, (sentences, counts)."""

    def score(self, total: NDArray[np.float64]) -> float:
        """The score of counts that were summed, (counts,)."""

    def signature(self, language: str) -> str:
        """What somebody else needs to compute the same number."""


class exact:
    """The share of hypotheses that equal their reference."""

    better = 1

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        right = [[hypothesis == reference, 1] for hypothesis, reference in zip(hypotheses, references, strict=True)]
        return np.array(right, dtype=np.float64)

    def score(self, total: NDArray[np.float64]) -> float:
        return float(total[0] / total[1])

    def signature(self, language: str) -> str:
        return "equal strings"


class length:
    """How long the hypotheses are beside their references, as BLEU's brevity penalty counts it."""

    better = 0

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        return METRICS["bleu_13a"].counts(hypotheses, references, language)[:, :2]

    def score(self, total: NDArray[np.float64]) -> float:
        return float(total[0] / total[1]) if total[1] else math.inf

    def signature(self, language: str) -> str:
        return METRICS["bleu_13a"].signature(language)


class sacre:
    """A metric of sacrebleu, whose sums over sentences are the corpus's; with `moses`, of text that Moses tokenised."""

    better = 1

    def __init__(self, name: str, *, moses: bool = False, **options: Any) -> None:
        self.name, self.moses, self.options = name, moses, options

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        if self.moses:
            hypotheses, references = moses_lower(hypotheses, language), moses_lower(references, language)
        return np.array(self._made()._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)

    def score(self, total: NDArray[np.float64]) -> float:
        return float(self._made()._compute_score_from_stats(total.tolist()).score)

    def signature(self, language: str) -> str:
        made = self._made()
        made.corpus_score(["a"], [["a"]])  # only now does it know the number of references
        version = f"|moses:{language}.lower.{_library('sacremoses').__version__}" if self.moses else ""
        return str(made.get_signature()) + version

    def _made(self) -> Any:
        return getattr(_library("sacrebleu.metrics"), self.name)(**self.options)


def measure(
    names: Iterable[str], hypotheses: Sequence[str], references: Sequence[str], *, language: str = "en"
) -> dict[str, float]:
    """The metrics by name: BLEU and chrF from 0 to 100, exact_match from 0 to 1, length_ratio about 1.

    language: Moses' rules.
    """
    pair = _pair(hypotheses, references)
    return {name: _whole(_metric(name), pair, language) for name in names}


def signatures(names: Iterable[str], *, language: str = "en") -> dict[str, str]:
    """What to print beside each metric, so that somebody else can compute the same."""
    return {name: _metric(name).signature(language) for name in names}


def accuracy(predictions: Sequence[Any], labels: Sequence[Any]) -> float:
    """The share of predictions that are right, from 0 to 1."""
    guesses, truth = _pair(predictions, labels)
    return sum(bool(guess == label) for guess, label in zip(guesses, truth, strict=True)) / len(truth)


def perplexity(loss: float) -> float:
    """e ** loss, for a mean loss in nats a token."""
    return math.exp(loss) if loss < 709 else math.inf


def bits_per_character(loss: float, characters: int) -> float:
    """A text's loss, summed in nats over its tokens, in bits for each of its characters."""
    if characters < 1:
        raise SaccadeError(f"bits per character need a text of one character at least; got {characters}")
    return loss / math.log(2) / characters


def interval(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    against: Sequence[str] | None = None,
    language: str = "en",
    samples: int = DRAWS,
    seed: int = SEED,
) -> tuple[float, float]:
    """Where 95 % of the scores lie when the sentences are drawn again, as many, with replacement.

    With `against`, other hypotheses for the same references, the interval of the gain over them: both are scored on the
    same draws, so what makes a sentence hard does not blur the difference.
    """
    found = _metric(metric)
    scores = _drawn(found, _pair(hypotheses, references), language, samples, seed)
    if against is not None:
        scores = scores - _drawn(found, _pair(against, references), language, samples, seed)
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def moses_lower(texts: Iterable[str], language: str) -> list[str]:
    """Lower-cased first, so that "Bart." is no abbreviation, as Multi30k is prepared; then Moses' tokens and spaces."""
    tokenizer = _library("sacremoses").MosesTokenizer(language)
    tokens = (tokenizer.tokenize(text.lower(), aggressive_dash_splits=False, escape=False) for text in texts)
    return [" ".join(each) for each in tokens]


def _drawn(metric: Metric, pair: tuple[list[str], list[str]], language: str, samples: int, seed: int) -> Any:
    """The scores of drawn corpora, (samples,)."""
    return np.array([metric.score(total) for total in totals(metric.counts(*pair, language), samples, seed)])


def totals(counts: NDArray[np.float64], draws: int = DRAWS, seed: int = SEED) -> NDArray[np.float64]:
    """The sums (draws, K) of counts (N, K) over N sentences drawn with replacement: how often each was drawn, times
    what was counted in it, for some draws at a time.
    """
    if draws < 1:
        raise SaccadeError(f"a bootstrap needs draws; got {draws}")
    random, N = np.random.default_rng(seed), len(counts)
    chance, step = np.full(N, 1 / N), max(1, CELLS // N)
    sizes = [min(step, draws - begin) for begin in range(0, draws, step)]
    return np.concatenate([random.multinomial(N, chance, size=size) @ counts for size in sizes])


def _whole(metric: Metric, pair: tuple[list[str], list[str]], language: str) -> float:
    return metric.score(metric.counts(*pair, language).sum(0))


def _pair(hypotheses: Sequence[Any], references: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise SaccadeError(
            "a metric takes lists, one hypothesis and one reference an example; this call brings a string"
        )
    if len(hypotheses) != len(references):
        raise SaccadeError(f"there are {len(hypotheses)} hypotheses for {len(references)} references: give one each")
    if not len(references):
        raise SaccadeError("a metric needs one example at least; there is none")
    return list(hypotheses), list(references)


def _metric(name: str) -> Metric:
    if name not in METRICS:
        raise SaccadeError(f"no metric is called {name!r}; {nearest(name, METRICS)}")
    return METRICS[name]


def installed() -> bool:
    """Whether the libraries of BLEU and chrF are there."""
    return all(find_spec(name) is not None for name in ("sacrebleu", "sacremoses"))


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        wanted = name.partition(".")[0]
        raise SaccadeError(f"this metric needs {wanted}: pip install 'saccade[translate]'") from None


METRICS: dict[str, Metric] = {
    "exact_match": exact(),
    "bleu_13a": sacre("BLEU", tokenize="13a"),
    "bleu_tokenised_lower": sacre("BLEU", moses=True, tokenize="none", smooth_method="none", force=True),
    "chrf": sacre("CHRF"),
    "length_ratio": length(),
}
