"""`Writer`: one row of a batch while it is written: how it chooses (`Choice`), its tokens, and its own random numbers.

Token number t is drawn with `uniform(t)`, a function of the row's own seed, of what it reads, and of t (Philox, Salmon
et al. 2011): neighbours change nothing, what was rewound can be drawn again, and a thousand texts with one seed are not
all drawn with the same numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from saccade.decode.sequence import is_whole
from saccade.error import SaccadeError
from saccade.model.input import Input

AHEAD = 64  # uniform numbers that a row draws at once, and room for new tokens among the counts
RANGES = {
    "temperature": (0, 100),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0.01, 100),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}


@dataclass(frozen=True)
class Choice:
    """How one request chooses its tokens; by default the likeliest."""

    temperature: float = 0.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None  # None: from the system's entropy

    def __post_init__(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
                raise SaccadeError(f"{name} is a number from {least} to {most}; got {value!r}")
        if not is_whole(self.top_k) or not 0 <= self.top_k < 1 << 31:
            raise SaccadeError(f"top_k is a whole number from 0 (all tokens) to 2^31 - 1; got {self.top_k!r:.40}")
        if self.seed is not None and not (is_whole(self.seed) and -(2**63) <= self.seed < 2**63):
            raise SaccadeError(f"seed is a whole number of 64 bits, or None; got {self.seed!r}")

    @property
    def samples(self) -> bool:
        """Whether tokens are drawn; otherwise the likeliest is taken."""
        return self.temperature > 0

    @property
    def penalises(self) -> bool:
        """Whether there is a penalty, so that read and written tokens must be counted."""
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1, 0, 0)


class Writer:
    """One row: its choice, its prompt, what it has written, and its own uniform numbers.

    source: the tokens of one, an Input of one row, or None.
    """

    def __init__(self, choice: Choice, prompt: Iterable[int], vocab: int, source: object = None) -> None:
        self.choice, self.prompt, self.vocab = choice, list(prompt), vocab
        wrong = [token for token in self.prompt if not 0 <= token < vocab]
        if wrong:
            raise SaccadeError(f"the prompt has the token {wrong[0]}: tokens are 0 ... {vocab - 1}")
        self.written: list[int] = []
        self.token_counts = TokenCounts(self.prompt) if choice.penalises else None
        self.seed = secrets.randbits(63) if choice.seed is None else choice.seed
        self._source = source_key(source)
        self._block, self._uniforms = -1, [0.0]

    def write(self, token: int) -> None:
        """Appends a token."""
        self.written.append(token)
        if self.token_counts is not None:
            self.token_counts.add(token)

    def rewind(self, length: int) -> None:
        """Forgets what was written after the first `length` tokens."""
        if not 0 <= length <= len(self.written):
            raise SaccadeError(f"{len(self.written)} tokens are written: they cannot be rewound to {length}")
        while len(self.written) > length:
            token = self.written.pop()
            if self.token_counts is not None:
                self.token_counts.drop(token)

    @cached_property
    def key(self) -> np.ndarray:
        """Philox' key: the seed, and a digest of what the row reads."""
        read = blake2b(repr((self.prompt, self._source)).encode(), digest_size=8).digest()
        return np.array([self.seed % 2**64, int.from_bytes(read)], np.uint64)

    def uniform(self, t: int) -> float:
        """The number in [0, 1) that token t is drawn with: number t of Philox with this key."""
        block, place = divmod(t, AHEAD)
        if block != self._block:
            first = block * AHEAD // 4  # Philox gives four numbers for each value of its counter
            bits = np.random.Philox(key=self.key, counter=first).random_raw(AHEAD)
            self._block, self._uniforms = block, ((bits >> 11) * 2.0**-53).tolist()  # the 53 bits of a float64
        return self._uniforms[place]


class TokenCounts:
    """The different tokens that a row has read or written, and how often it wrote each."""

    def __init__(self, prompt: list[int]) -> None:
        self._place = {token: place for place, token in enumerate(dict.fromkeys(prompt))}
        self._read = len(self._place)
        self._tokens, self._counts = np.zeros(self._read + AHEAD, np.int64), np.zeros(self._read + AHEAD)
        self._tokens[: self._read] = list(self._place)

    @property
    def tokens(self) -> np.ndarray:
        """(M,), those of the prompt first."""
        return self._tokens[: len(self._place)]

    @property
    def counts(self) -> np.ndarray:
        """(M,), 0 for what was read alone."""
        return self._counts[: len(self._place)]

    def add(self, token: int) -> None:
        """The token was written."""
        place = self._place.setdefault(token, len(self._place))
        if place == len(self._tokens):
            self._tokens = np.concatenate((self._tokens, np.zeros_like(self._tokens)))
            self._counts = np.concatenate((self._counts, np.zeros_like(self._counts)))
        self._tokens[place] = token
        self._counts[place] += 1

    def drop(self, token: int) -> None:
        """The token, the last that was added, was not written. Where it was new it has the last place."""
        place = self._place[token]
        self._counts[place] -= 1
        if place >= self._read and not self._counts[place]:
            del self._place[token]


def source_key(source: object) -> object:
    """What a source is, so that what is drawn depends on it: its tokens, or the bytes of its values."""
    if isinstance(source, Mapping):
        return [source_key(each) for each in source.values()]
    if not isinstance(source, Input):
        return source if isinstance(source, list | tuple) else None
    if source.values.keys() == {"tokens"}:
        return source.values["tokens"][0].tolist()
    return [blake2b(each.cpu().numpy().tobytes(), digest_size=8).hexdigest() for each in source.values.values()]
