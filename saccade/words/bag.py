"""The bag of words: a text as the counts of its words, whatever their order, and how alike two texts are.

With `rarity` a count is weighted by how few texts have the word (tf-idf, Sparck Jones 1972): log((1 + n) / (1 + d)) + 1
for a word that d of n texts have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from saccade.error import SaccadeError
from saccade.words.word_corpus import Texts, cutter, read, several


class Bag:
    """Words with a weight each; made of texts by `Bag.of`."""

    def __init__(self, names: Sequence[str], weights: np.ndarray, *, cut: str = "words", lower: bool = True) -> None:
        self.names, self.weights = list(names), weights
        self._words = cutter(cut, lower)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def of(cls, texts: Texts, *, least: int = 1, rarity: bool = False, cut: str = "words", lower: bool = True) -> Bag:
        """The bag of the words that occur `least` times in texts, or more; rarity: common words weigh less."""
        given = list(several(texts))
        corpus = read(given, least=least, cut=cut, lower=lower)
        size = len(corpus.names)
        once = np.unique(corpus.texts * size + corpus.tokens)  # each word once a text
        having = np.bincount(once % size, minlength=size)
        weights = np.log((1 + len(given)) / (1 + having)) + 1 if rarity else np.ones(size)
        return cls(corpus.names, weights, cut=cut, lower=lower)

    def vector(self, text: str | Sequence[str]) -> np.ndarray:
        """The weighted counts (V,) of a text's words; words that the bag lacks are ignored."""
        known = [self._numbers[word] for word in self._words(text) if word in self._numbers]
        counts = np.bincount(np.array(known, dtype=np.int64), minlength=len(self.names))
        return np.asarray(counts * self.weights, dtype=np.float32)

    def similarity(self, a: str | Sequence[str], b: str | Sequence[str]) -> float:
        """The cosine of two texts' vectors, 0 to 1; 0 where one has no word that the bag knows."""
        one, other = self.vector(a), self.vector(b)
        length = float(np.sqrt((one @ one) * (other @ other)))
        return float(one @ other) / length if length else 0.0

    def nearest(self, text: str | Sequence[str], texts: Sequence[str], n: int = 10) -> list[tuple[str, float]]:
        """The texts most similar to a text, with their similarities."""
        if n < 1:
            raise SaccadeError(f"{n} texts were asked for: ask for one at least")
        scores = [self.similarity(text, each) for each in texts]
        ranked = np.argsort(-np.array(scores), kind="stable")[:n]
        return [(texts[each], scores[each]) for each in ranked]
