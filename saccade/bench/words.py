"""`saccade bench words`: word2vec beside gensim on wikitext-2: words a second, and Spearman's rho with people's scores.

Both sides get the same words, settings and seeds, one thread each, and take turns. Speed is the words of the text times
the epochs over the CPU time of the training alone, so that what else runs on the machine disturbs neither.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch

from saccade.bench.race import row
from saccade.config import read as checked
from saccade.data import named, source
from saccade.words.fit import fit
from saccade.words.judge import SIMILARITY, found, pairs
from saccade.words.setting import Settings
from saccade.words.vectors import Vectors
from saccade.words.word_corpus import read

PEER = "gensim"
SEEDS = (0, 1, 2)
Text = list[str]


class Outcome(NamedTuple):
    """What one training gives: words a second, and rho on each similarity set."""

    speed: float
    rho: dict[str, float]


def rows(seconds: float = 0.0, seeds: tuple[int, ...] = SEEDS, epochs: int = 5) -> Iterator[dict[str, Any]]:
    """Speed and rho of skipgram and cbow, the means over the seeds. Some minutes.

    It lasts as long as the epochs last; `seconds` is there because every bench takes it.
    """
    texts, there = wikitext(), find_spec(PEER) is not None
    for kind in ("skipgram", "cbow"):
        turns = [_turn(kind, texts, seed, epochs, there) for seed in seeds]
        ours, theirs = [each for each, _ in turns], [each for _, each in turns if each is not None]
        yield from _lines(f"{kind}, width 100, {epochs} epochs, {len(seeds)} seeds", ours, theirs)


def wikitext() -> list[Text]:
    """The training text of wikitext-2 as words in lower case."""
    (path,) = named.files("wikitext-2")
    return [words for line in source.lines(path) if (words := line.lower().split())]


def ours(kind: str, texts: list[Text], seed: int, epochs: int) -> Outcome:
    """What saccade makes of texts."""
    corpus = read(texts)
    settings = checked(Settings, {"kind": kind, "seed": seed, "epochs": epochs})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds, made = timed(lambda: fit(corpus, settings))
    finally:
        torch.set_num_threads(threads)
    return Outcome(corpus.total * epochs / seconds, agreement(made))


def theirs(kind: str, texts: list[Text], seed: int, epochs: int) -> Outcome:
    """What gensim makes of the same texts with the same settings."""
    from gensim.models import Word2Vec

    made = Word2Vec(
        vector_size=100,
        window=5,
        min_count=5,
        sg=int(kind == "skipgram"),
        negative=5,
        sample=1e-3,
        seed=seed,
        workers=1,
    )
    made.build_vocab(texts)
    seconds, _ = timed(lambda: made.train(texts, total_examples=made.corpus_count, epochs=epochs))
    vectors = Vectors(made.wv.index_to_key, np.array(made.wv.vectors))
    return Outcome(sum(map(len, texts)) * epochs / seconds, agreement(vectors))


def agreement(vectors: Vectors) -> dict[str, float]:
    """Spearman's rho on each similarity set."""
    return {name: vectors.evaluate(pairs(found(*file))).rho for name, file in SIMILARITY.items()}


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it gives."""
    begin = time.process_time()
    made = run()
    return time.process_time() - begin, made


def _turn(kind: str, texts: list[Text], seed: int, epochs: int, there: bool) -> tuple[Outcome, Outcome | None]:
    return ours(kind, texts, seed, epochs), theirs(kind, texts, seed, epochs) if there else None


def _lines(case: str, ours: list[Outcome], theirs: list[Outcome]) -> Iterator[dict[str, Any]]:
    """The means; where both were measured, the ratio of ours to theirs, since more is better."""
    mean = statistics.fmean
    measures: dict[str, Callable[[Outcome], float]] = {"words/s": lambda each: each.speed}
    measures |= {f"rho, {name}": lambda each, name=name: each.rho[name] for name in SIMILARITY}  # type: ignore[misc]
    for name, measure in measures.items():
        own = mean(map(measure, ours))
        other = mean(map(measure, theirs)) if theirs else None
        unit, _, what = name.partition(", ")
        yield row(f"{case}{what and f', {what}'}", PEER, own, other, other and own / other, unit=unit)
