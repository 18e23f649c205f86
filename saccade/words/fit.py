"""Word vectors from texts: skipgram, cbow or glove."""

from __future__ import annotations

from typing import Any

import numpy as np

from saccade.config import read as checked
from saccade.error import SaccadeError
from saccade.words import glove, word2vec
from saccade.words.setting import Settings
from saccade.words.vectors import Vectors
from saccade.words.word2vec import Progress
from saccade.words.word_corpus import Texts, WordCorpus, read

ASTRAY = 1e3  # longer than any useful vector: with only a few words the steps of a block can be too long, and diverge


def train(texts: Texts, *, progress: Progress | None = None, **settings: Any) -> Vectors:
    """Vectors of the words of texts, the same for the same seed; settings: see `Settings` (kind, width, window, ...).

    A text is a string or a list of words; no window reaches from one into another. progress gets the share done.
    """
    made = checked(Settings, settings)
    return fit(read(texts, least=made.least, cut=made.cut, lower=made.lower), made, progress)


def fit(corpus: WordCorpus, settings: Settings, progress: Progress | None = None) -> Vectors:
    """Vectors of the words of a corpus."""
    if len(corpus.names) < 2:
        raise SaccadeError(
            f"only 1 word occurs {settings.least} times or more, and a vector needs others: give more text, or a lower "
            "`least`"
        )
    if len(set(corpus.texts.tolist())) == len(corpus.texts):
        raise SaccadeError("no text has two words that are kept: there is no context to learn from")
    tell = progress or (lambda share: None)
    matrix = KINDS[settings.kind](corpus, settings, tell)
    tell(1.0)
    if not np.linalg.norm(matrix, axis=1).max() < ASTRAY:  # also true of NaN
        raise SaccadeError(
            "the vectors grow without bound: the training went astray; lower its rate, or read more text"
        )
    return Vectors(corpus.names, matrix, about={**settings.model_dump(exclude_none=True), "words": corpus.total})


KINDS = {"skipgram": word2vec.learn, "cbow": word2vec.learn, "glove": glove.learn}
