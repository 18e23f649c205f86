"""How good word vectors are: similarity beside people's (WordSim-353, SimLex-999) and analogies (questions-words).

Finkelstein et al. 2002, Hill et al. 2015, Mikolov et al. 2013. The files are looked for where named data sets are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saccade.data import source
from saccade.data.named import folders
from saccade.error import SaccadeError
from saccade.words.vectors import Vectors

FOLDER = "word-similarity"
SIMILARITY = {
    "wordsim353": ("wordsim353.tsv", "f92a022fc2537793a15bc3a8c162ebcd74990e033a228bb6388cb71e4c0b1e1d"),
    "simlex999": ("simlex999.txt", "d5e0501971478a511430ee880bd0121e94ac701ba86d90544d83e6d2ba3db05d"),
}
QUESTIONS = ("questions-words.txt.gz", "a21b3277dd63dfb4422a994b7801e2b439d50b73cdaa0b838b27b1e43cee8a8c")


def judge(vectors: Vectors) -> dict[str, Any]:
    """Spearman's rho on each similarity set, and the share of analogies that are solved, each with how many were asked
    and how many have only words that have vectors.
    """
    agreed = {name: vectors.evaluate(pairs(found(*file)))._asdict() for name, file in SIMILARITY.items()}
    sections = analogies(found(*QUESTIONS))
    solved = {name: vectors.solve(asked) for name, asked in sections.items()}
    right, known = (sum(each) for each in zip(*solved.values(), strict=True))
    asked = sum(map(len, sections.values()))
    total = {"right": right, "known": known, "asked": asked, "accuracy": right / known if known else 0.0}
    by_section = {name: {"right": one, "known": of} for name, (one, of) in solved.items()}
    return {"similarity": agreed, "analogy": total | {"sections": by_section}}


def pairs(path: str | Path) -> list[tuple[str, str, float]]:
    """Lines of two words and a number with tabs between them; lines that begin with # are comments."""
    read = []
    for number, line in enumerate(source.lines(path), 1):
        if line.startswith("#") or not line.strip():
            continue
        try:
            a, b, score = line.split("\t")
            read.append((a.strip(), b.strip(), float(score)))
        except ValueError:
            raise SaccadeError(f"{path}, line {number}: word, word and number were expected, tabs between") from None
    return read


def analogies(path: str | Path) -> dict[str, list[tuple[str, str, str, str]]]:
    """Lines of four words, under lines `: name` of sections."""
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    for name, words in _sectioned(path):
        sections.setdefault(name, []).append(words)
    return sections


def found(file: str, sha256: str) -> Path:
    """A file of the word similarity sets, checked."""
    for folder in folders():
        path = folder / FOLDER / file
        if path.is_file():
            if source.digest(path) != sha256:
                raise SaccadeError(f"{path} is another file: its sha256 should be {sha256}; replace it")
            return path
    raise SaccadeError(
        f"the judgement needs {folders()[0] / FOLDER / file} (sha256 {sha256}): put the file there, or set "
        "SACCADE_DATA to a folder that has it; it is in gensim 4.4.0, gensim/test/test_data (the questions gzipped)"
    )


def _sectioned(path: str | Path) -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    section = ""
    for number, line in enumerate(source.lines(path), 1):
        words = line.split()
        if line.startswith(":"):
            section = line[1:].strip()
        elif len(words) == 4:
            yield section, (words[0], words[1], words[2], words[3])
        elif words:
            raise SaccadeError(f"{path}, line {number}: four words were expected, here are {len(words)}")
