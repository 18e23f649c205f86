"""`Vectors`: words with a vector each, to ask for neighbours, similarities and analogies, and to keep in a folder.

The folder holds `vectors.safetensors`, `words.json` and a manifest with their hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import saccade
from saccade import disk
from saccade.error import SaccadeError, nearest
from saccade.words.rank import spearman

TENSORS, WORDS, KIND = "vectors.safetensors", "words.json", "word vectors"
ANY = "surrogatepass"  # a word of a broken text may hold an unpaired surrogate


class Agreement(NamedTuple):
    """How similarities agree with people's: Spearman's rho over the pairs whose words both have vectors (`known`)."""

    rho: float
    known: int
    pairs: int


class Vectors:
    """names[n] has the vector matrix[n]; the names are as the text had them, mostly in lower case."""

    def __init__(self, names: Sequence[str], matrix: np.ndarray, about: dict[str, Any] | None = None) -> None:
        if matrix.ndim != 2 or len(names) != len(matrix) or not len(names):
            raise SaccadeError(f"{len(names)} words need a matrix of as many rows; this one is {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise SaccadeError("a vector is not finite: the training went astray; lower its rate")
        self.names, self.matrix, self.about = list(names), matrix, about or {}
        self._numbers = {name: number for number, name in enumerate(self.names)}
        if len(self._numbers) < len(self.names):
            raise SaccadeError("a word stands twice among the names")

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.find(word) is not None

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return int(self.matrix.shape[1])

    def find(self, word: str) -> int | None:
        """The number of a word as it is written or, failing that, in lower case."""
        return self._numbers.get(word, self._numbers.get(word.lower()))

    def vector(self, word: str) -> np.ndarray:
        return self.matrix[self._number(word)]

    def similarity(self, a: str, b: str) -> float:
        """The cosine of two words' vectors, -1 to 1."""
        return float(self._unit[self._number(a)] @ self._unit[self._number(b)])

    def nearest(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The words most similar to a word, with their similarities."""
        number = self._number(word)
        return self._best(self._unit[number], [number], n)

    def analogy(self, a: str, b: str, c: str, n: int = 1) -> list[tuple[str, float]]:
        """What is to c as b is to a: the words nearest to b - a + c, those three left out."""
        numbers = [self._number(each) for each in (a, b, c)]
        return self._best(_normalised(self._aims(np.array([numbers])))[0], numbers, n)

    def evaluate(self, pairs: Iterable[tuple[str, str, float]]) -> Agreement:
        """How the similarities of pairs (word, word, people's score) agree with the scores."""
        given = list(pairs)
        known = [(self.similarity(a, b), score) for a, b, score in given if a in self and b in self]
        if len(known) < 2:
            raise SaccadeError(f"{len(known)} of {len(given)} pairs are known: a correlation needs two at least")
        ours, theirs = np.array(known).T
        return Agreement(spearman(ours, theirs), len(known), len(given))

    def solve(self, questions: Iterable[tuple[str, str, str, str]]) -> tuple[int, int]:
        """How many analogies "a is to b as c is to d" are answered with d, and of how many all four words are known."""
        numbers = [[self.find(each) for each in question] for question in questions]
        known = np.array([each for each in numbers if None not in each], dtype=np.int64).reshape(-1, 4)
        right = 0
        for some in np.array_split(known, max(1, len(known) // 500)):  # scores are (questions, V): keep them small
            scores = self._aims(some[:, :3]) @ self._unit.T
            np.put_along_axis(scores, some[:, :3], -np.inf, axis=1)
            right += int((scores.argmax(1) == some[:, 3]).sum())
        return right, len(known)

    def save(self, path: str | Path) -> Path:
        """Writes the folder; refuses one that holds anything."""
        path = disk.vacant(Path(path))
        with disk.aside(path) as folder:
            disk.save_tensors(folder / TENSORS, {"vectors": torch.from_numpy(self.matrix)})
            (folder / WORDS).write_text(json.dumps(self.names, ensure_ascii=False), encoding="utf-8", errors=ANY)
            disk.seal(folder, {"kind": KIND, "saccade": saccade.__version__, "settings": self.about})
        return path

    @cached_property
    def _unit(self) -> np.ndarray:
        """All vectors at length 1, so that products are cosines."""
        return _normalised(self.matrix)

    def _aims(self, numbers: np.ndarray) -> np.ndarray:
        """b - a + c of words (N,3), as vectors (N,C)."""
        a, b, c = (self._unit[each] for each in numbers.T)
        return np.asarray(b - a + c)

    def _best(self, aim: np.ndarray, without: list[int], n: int) -> list[tuple[str, float]]:
        """The n words most similar to a vector, some words left out."""
        if n < 1:
            raise SaccadeError(f"{n} words were asked for: ask for one at least")
        scores = self._unit @ aim
        scores[without] = -np.inf
        ranked = np.argsort(-scores, kind="stable")[: min(n, len(self) - len(set(without)))]
        return [(self.names[each], float(scores[each])) for each in ranked]

    def _number(self, word: str) -> int:
        number = self.find(word)
        if number is None:
            raise SaccadeError(f"{word!r} is not among the {len(self):,} words; {_hint(word, self.names)}")
        return number


def load(path: str | Path) -> Vectors:
    """Vectors from the folder that `save` wrote, once its hashes are right."""
    path = Path(path)
    if not (path / disk.MANIFEST).is_file():
        raise SaccadeError(f"{path} is no folder of word vectors: make one with `saccade words FILE --out {path}`")
    about = disk.verify(path)
    if about.get("kind") != KIND:
        raise SaccadeError(f"{path} holds no word vectors: `saccade words FILE --out FOLDER` makes them")
    names = json.loads((path / WORDS).read_text(encoding="utf-8", errors=ANY))
    return Vectors(names, disk.load_tensors(path / TENSORS)["vectors"].numpy(), about["settings"])


def _normalised(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length == 0, 1, length))


def _hint(word: str, names: list[str]) -> str:
    """The nearest spellings; where there are none, no list of all words, as `nearest` would give."""
    found = nearest(word, names)
    return found if found.startswith("did") else "it did not occur often enough in the text"
