"""What word2vec sees of a text: common words thinned out, windows of random width, and words drawn by chance.

Mikolov et al. 2013, "Distributed Representations of Words and Phrases and their Compositionality".
"""

from __future__ import annotations

import numpy as np

from saccade.words.word_corpus import WordCorpus

POWER = 0.75  # flattens the frequencies that negative words are drawn by


def chances(counts: np.ndarray, sample: float) -> np.ndarray:
    """The probability that an occurrence of each word is kept: (sqrt(f/s) + 1) s/f, as the paper's program has it."""
    if sample == 0:
        return np.ones(len(counts))
    ratio = sample * counts.sum() / counts
    return np.minimum(1.0, np.sqrt(ratio) + ratio)


def thinned(corpus: WordCorpus, keep: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that are kept in this epoch, and the text of each; windows reach over the gaps."""
    chosen = random.random(len(corpus.tokens)) < keep[corpus.tokens]
    return corpus.tokens[chosen], corpus.texts[chosen]


def windows(texts: np.ndarray, window: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """How many words each word sees to its left and right: up to `window`, by chance, and never into another text."""
    here = np.arange(len(texts))
    edge = texts[1:] != texts[:-1]
    first = np.maximum.accumulate(np.where(np.append(True, edge), here, 0))
    last = np.minimum.accumulate(np.where(np.append(edge, True), here, len(texts))[::-1])[::-1]
    reach = random.integers(1, window + 1, len(texts))
    return np.minimum(reach, here - first), np.minimum(reach, last - here)


class Negatives:
    """Draws words by their frequency to the power of 3/4."""

    def __init__(self, counts: np.ndarray) -> None:
        self.edges = np.cumsum(counts**POWER)
        self.edges /= self.edges[-1]

    def draw(self, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
        """Numbers of words, drawn independently."""
        found = np.searchsorted(self.edges, random.random(shape), side="right")
        return np.minimum(found, len(self.edges) - 1)
