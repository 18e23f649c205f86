"""Words as vectors: trained on a text (word2vec, GloVe), asked, judged, and used as the embedding of any model."""

from saccade.words.bag import Bag
from saccade.words.fit import train
from saccade.words.vectors import Vectors, load

__all__ = ["Bag", "Vectors", "load", "train"]
