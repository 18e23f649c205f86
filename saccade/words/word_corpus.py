"""`WordCorpus`: texts as numbered words. Rare words are left out, as if their neighbours stood side by side."""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from saccade.data import named, source
from saccade.error import SaccadeError, nearest

Texts = Iterable[str | Sequence[str]]


@dataclass(frozen=True)
class WordCorpus:
    """The words that were kept, the commonest first, and the texts made of them, one after another."""

    names: list[str]
    counts: np.ndarray  # (V,) how often each word occurs
    tokens: np.ndarray  # (N,) the number of each word
    texts: np.ndarray  # (N,) the number of the text that each stands in, ascending
    total: int  # words read, including those left out


def read(texts: Texts, *, least: int = 5, cut: str = "words", lower: bool = True) -> WordCorpus:
    """Counts and numbers the words of texts, read once; a text is a string or a list of words."""
    numbers: dict[str, int] = {}
    tokens, lengths = array("q"), array("q")
    for words in map(cutter(cut, lower), several(texts)):
        tokens.extend(numbers.setdefault(word, len(numbers)) for word in words)
        lengths.append(len(words))
    found = np.array(tokens, dtype=np.int64)
    place = np.repeat(np.arange(len(lengths)), np.array(lengths, dtype=np.int64))
    return _without_rare(list(numbers), found, place, least)


def several(texts: Texts) -> Texts:
    """The texts; refuses a single string, which would be taken for a list of letters."""
    if isinstance(texts, str):
        raise SaccadeError("texts are a list, with one text or more: put this one between brackets")
    return texts


def lines(sources: Iterable[str]) -> Iterator[str]:
    """The texts of files, one a line, or of named data sets (`wikitext-2`)."""
    return (line for each in sources for path in _files(each) for line in source.lines(path))


def cutter(cut: str = "words", lower: bool = True) -> Callable[[str | Sequence[str]], Sequence[str]]:
    """The function that makes words of a text; a list of words passes as it is."""
    if cut not in CUTS:
        raise SaccadeError(f"there is no way to cut {cut!r}; {nearest(cut, CUTS)}")

    def words(text: str | Sequence[str]) -> Sequence[str]:
        if not isinstance(text, str):
            if not isinstance(text, Sequence) or not all(isinstance(word, str) for word in text):
                raise SaccadeError(f"a text is a string, or a list of words; got {text!r:.60}")
            return text
        return CUTS[cut](text.lower() if lower else text)

    return words


def _files(name: str) -> list[Path]:
    if name in named.DATA and not Path(name).exists():
        return named.files(name)
    return [source.check(name)]


def _without_rare(names: list[str], tokens: np.ndarray, place: np.ndarray, least: int) -> WordCorpus:
    """The corpus without the words that occur fewer than `least` times, numbered from the commonest on."""
    counts = np.bincount(tokens, minlength=len(names))
    ranked = sorted(np.flatnonzero(counts >= least).tolist(), key=lambda each: (-counts[each], names[each]))
    if not ranked:
        raise SaccadeError(
            f"only 0 of {len(names):,} words occur {least} times or more: give more text, or a lower `least`"
        )
    new = np.full(len(names), -1)
    new[ranked] = np.arange(len(ranked))
    numbered = new[tokens]
    there = numbered >= 0
    return WordCorpus([names[each] for each in ranked], counts[ranked], numbered[there], place[there], len(tokens))


def _words(text: str) -> list[str]:
    """Words and punctuation. A letter and its marks stay together: in Hindi, Thai and Arabic vowels are marks, which
    \\w does not match, and an accent may be one.
    """
    return _pattern().findall(unicodedata.normalize("NFC", text))


@cache
def _pattern() -> re.Pattern[str]:
    marks = "".join(each for each in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(each)[0] == "M")
    return re.compile(rf"\w+(?:[{marks}]+\w*)*|[^\w\s]+")


# `words` parts punctuation from words; `split` is for texts that somebody has tokenised already.
CUTS: dict[str, Callable[[str], list[str]]] = {"words": _words, "split": str.split}
