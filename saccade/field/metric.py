"""How good an answer is: metrics over lists of strings, their signatures, and how far chance moves them.

bleu_13a              corpus BLEU (Papineni et al. 2002) as sacrebleu computes it: cased, tokenised by 13a (Post 2018)
bleu_tokenised_lower  as older papers did with multi-bleu: lower-cased, then tokenised by Moses, no smoothing
chrf                  character n-grams, chrF2 (Popovic 2015)
exact_match           the share of answers that are the reference, letter by letter
wer, cer              words, or characters, that were left out, put in or taken for others, for each one of the
                      references (jiwer)
length_ratio          tokens (of 13a) for each one of the references; below 1, BLEU is multiplied by e^(1 - 1 / ratio)

The intervals are Koehn's bootstrap (2004).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
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

    better: int  # 1: a higher score is better; -1: a lower one; 0: neither

    @property
    def needs(self) -> tuple[str, ...]:
        """The libraries that compute it."""

    @property
    def extra(self) -> str:
        """What brings them: pip install 'saccade[extra]'."""

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        """What was counted, (sentences, counts)."""

    def score(self, total: NDArray[np.float64]) -> float:
        """The score of counts that were summed, (counts,)."""

    def signature(self, language: str) -> str:
        """What somebody else needs to compute the same number."""


class exact:
    """The share of hypotheses that equal their reference."""

    better = 1
    needs, extra = (), ""

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
    needs, extra = ("sacrebleu", "sacremoses"), "translate"

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        return METRICS["bleu_13a"].counts(hypotheses, references, language)[:, :2]

    def score(self, total: NDArray[np.float64]) -> float:
        return float(total[0] / total[1]) if total[1] else math.inf

    def signature(self, language: str) -> str:
        return METRICS["bleu_13a"].signature(language)


class sacre:
    """A metric of sacrebleu, whose sums over sentences are the corpus's; with `moses`, of text that Moses tokenised."""

    better = 1
    needs, extra = ("sacrebleu", "sacremoses"), "translate"

    def __init__(self, name: str, *, moses: bool = False, **options: Any) -> None:
        self.name, self.moses, self.options = name, moses, options

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        if self.moses:
            hypotheses, references = moses_lower(hypotheses, language), moses_lower(references, language)
        return np.array(self._sacrebleu()._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)

    def score(self, total: NDArray[np.float64]) -> float:
        return float(self._sacrebleu()._compute_score_from_stats(total.tolist()).score)

    def signature(self, language: str) -> str:
        made = self._sacrebleu()
        made.corpus_score(["a"], [["a"]])  # the signature names the number of references, which is known only now
        version = f"|moses:{language}.lower.{_library('sacremoses').__version__}" if self.moses else ""
        return str(made.get_signature()) + version

    def _sacrebleu(self) -> Any:
        return getattr(_library("sacrebleu.metrics"), self.name)(**self.options)


class edits:
    """The fewest changes that make hypotheses of references, for each word, or each character, of the references."""

    better = -1
    needs, extra = ("jiwer",), "sound"

    def __init__(self, way: str) -> None:
        self.way = way

    def counts(self, hypotheses: list[str], references: list[str], language: str) -> NDArray[np.float64]:
        process = getattr(_library("jiwer"), f"process_{self.way}")
        each = [process(*pair) for pair in zip(references, hypotheses, strict=True)]
        kept = [one.substitutions + one.deletions for one in each]
        rows = [[n + one.insertions, n + one.hits] for n, one in zip(kept, each, strict=True)]
        return np.array(rows, dtype=np.float64)

    def score(self, total: NDArray[np.float64]) -> float:
        return float(total[0] / total[1]) if total[1] else math.inf

    def signature(self, language: str) -> str:
        return f"jiwer {version('jiwer')}|process_{self.way}"


def measure(
    names: Iterable[str], hypotheses: Sequence[str], references: Sequence[str], *, language: str = "en"
) -> dict[str, float]:
    """The metrics by name: BLEU and chrF from 0 to 100, exact_match from 0 to 1, length_ratio about 1.

    language: the one whose rules the Moses tokenizer follows.
    """
    pair = _checked_pair(hypotheses, references)
    return {name: _corpus_score(_metric(name), pair, language) for name in names}


def signatures(names: Iterable[str], *, language: str = "en") -> dict[str, str]:
    """What to print beside each metric, so that somebody else can compute the same."""
    return {name: _metric(name).signature(language) for name in names}


def accuracy(predictions: Sequence[Any], labels: Sequence[Any]) -> float:
    """The share of predictions that are right, from 0 to 1."""
    guesses, truth = _checked_pair(predictions, labels)
    return sum(bool(guess == label) for guess, label in zip(guesses, truth, strict=True)) / len(truth)


def perplexity(loss: float) -> float:
    """e ** loss, for a mean loss in nats a token."""
    return math.exp(loss) if loss < 709 else math.inf  # e ** 710 overflows


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
    scores = _bootstrap_scores(found, _checked_pair(hypotheses, references), language, samples, seed)
    if against is not None:
        scores = scores - _bootstrap_scores(found, _checked_pair(against, references), language, samples, seed)
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)


def moses_lower(texts: Iterable[str], language: str) -> list[str]:
    """Texts as Moses tokenises them, with spaces between the tokens. They are lower-cased before that, as Multi30k is
    prepared: Moses takes "Bart." for an abbreviation, but not "bart.".
    """
    tokenizer = _library("sacremoses").MosesTokenizer(language)
    tokens = (tokenizer.tokenize(text.lower(), aggressive_dash_splits=False, escape=False) for text in texts)
    return [" ".join(each) for each in tokens]


def _bootstrap_scores(metric: Metric, pair: tuple[list[str], list[str]], language: str, samples: int, seed: int) -> Any:
    """The scores of drawn corpora, (samples,)."""
    return np.array([metric.score(total) for total in totals(metric.counts(*pair, language), samples, seed)])


def totals(counts: NDArray[np.float64], draws: int = DRAWS, seed: int = SEED) -> NDArray[np.float64]:
    """The sums (draws, K) of counts (N, K) over N sentences drawn with replacement.

    A sum is how often each sentence was drawn, times its counts: one matrix product, for some draws at a time.
    """
    if draws < 1:
        raise SaccadeError(f"a bootstrap needs draws; got {draws}")
    random, N = np.random.default_rng(seed), len(counts)
    chance, step = np.full(N, 1 / N), max(1, CELLS // N)
    sizes = [min(step, draws - begin) for begin in range(0, draws, step)]
    return np.concatenate([random.multinomial(N, chance, size=size) @ counts for size in sizes])


def _corpus_score(metric: Metric, pair: tuple[list[str], list[str]], language: str) -> float:
    return metric.score(metric.counts(*pair, language).sum(0))


def _checked_pair(hypotheses: Sequence[Any], references: Sequence[Any]) -> tuple[list[Any], list[Any]]:
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


def installed(name: str) -> bool:
    """Whether the libraries that compute a metric are installed."""
    return all(find_spec(each) is not None for each in _metric(name).needs)


def missing(names: Iterable[str]) -> str:
    """What to install for these metrics, in words; empty where there are none."""
    extras: dict[str, list[str]] = {}
    for name in names:
        extras.setdefault(_metric(name).extra, []).append(name)
    told = (f"{' and '.join(each)} need pip install 'saccade[{extra}]'" for extra, each in extras.items())
    return "; ".join(told)


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        wanted = name.partition(".")[0]
        extra = next((each.extra for each in METRICS.values() if wanted in each.needs), "translate")
        raise SaccadeError(f"this metric needs {wanted}: pip install 'saccade[{extra}]'") from None


METRICS: dict[str, Metric] = {
    "exact_match": exact(),
    "bleu_13a": sacre("BLEU", tokenize="13a"),
    "bleu_tokenised_lower": sacre("BLEU", moses=True, tokenize="none", smooth_method="none", force=True),
    "chrf": sacre("CHRF"),
    "length_ratio": length(),
    "wer": edits("words"),
    "cer": edits("characters"),
}
