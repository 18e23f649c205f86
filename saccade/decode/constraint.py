"""Which tokens may come next: `only` a list of them, or those with which the text can still come to be `matching`.

A pattern becomes an automaton over bytes, so that a token may be half a character, and tokens are read through it
(Willard and Louf 2023). What a state allows is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from saccade.decode.pattern import DEAD, DONE, FIRST, Automaton
from saccade.error import SaccadeError
from saccade.field.text.text import Text


class Constraint(Protocol):
    """Which tokens may be written. A state is a value that never changes, such as a number, so that a search can go on
    from the same state several times.
    """

    def start(self) -> Any:
        """The state before the first token."""

    def allowed(self, state: Any) -> Tensor:
        """The tokens that may come next, bool (V,): the same tensor each time, to be read and not written."""

    def advance(self, state: Any, token: int) -> Any:
        """The state after an allowed token."""


class only:
    """These tokens alone, always; `vocab` counts those of the model. Sequences end where the end is among them."""

    def __init__(self, tokens: Iterable[int], vocab: int) -> None:
        found = sorted({int(token) for token in tokens})
        if not found:
            raise SaccadeError("only these tokens: none are given, so nothing could be written")
        if found[0] < 0 or found[-1] >= vocab:
            wrong = found[0] if found[0] < 0 else found[-1]
            raise SaccadeError(f"only these tokens: {wrong} is outside the vocabulary, 0 ... {vocab - 1}")
        self._mask = torch.zeros(vocab, dtype=torch.bool)
        self._mask[found] = True

    def start(self) -> None:
        """There is one state."""

    def allowed(self, state: None) -> Tensor:
        return self._mask

    def advance(self, state: None, token: int) -> None:
        """The state stays the same; refuses a token that is not allowed."""
        _check_allowed(self._mask, token)


class matching:
    """A regular expression, in Python's syntax, that the whole of the written text must match.

        matching(r"\\d{4}-\\d\\d-\\d\\d", text)

    A token is allowed where tokens can follow that complete a match; the end exactly where the text matches; other
    special tokens never. The text is what `Text.spell` says, token by token: of words, with one space between any two.
    `vocab` counts the model's tokens where they are more than the text's.
    """

    def __init__(self, pattern: str, text: Text, vocab: int | None = None) -> None:
        if text.end is None:
            raise SaccadeError("a pattern must be able to end, and this vocabulary has no token for the end")
        self.end, self._V = text.end, text.vocab if vocab is None else vocab
        if text.vocab > self._V:
            raise SaccadeError(f"the text has {text.vocab} tokens and the model {self._V}: they do not belong together")
        self._first, self._later = _token_bytes(text, True), _token_bytes(text, False)
        self._automaton = Automaton(pattern)
        self._bytewise = self._automaton.codes <= self._later.alone()
        self._masks: dict[int, Tensor] = {}
        self._distinct: dict[bytes, Tensor] = {}
        self._next: dict[int, list[int]] = {}
        self._completes: dict[int, bool] = {DEAD: False}
        if not self._can_complete(FIRST):
            raise SaccadeError(f"the pattern {pattern!r} matches nothing that this vocabulary can write")

    def start(self) -> int:
        """The state before the first token."""
        return FIRST

    def allowed(self, state: int) -> Tensor:
        """What may follow, bool (V,)."""
        if state not in self._masks:
            mask = np.zeros(self._V, dtype=bool)
            if state != DONE:
                reached = self._reached(state)
                goes_on = np.bincount(reached) > 0
                goes_on[goes_on] = [self._can_complete(each) for each in np.flatnonzero(goes_on).tolist()]
                mask[: len(reached)] = goes_on[reached]
            mask[self.end] = state == DONE or self._matches(state)
            self._masks[state] = self._distinct.setdefault(mask.tobytes(), torch.from_numpy(mask))
        return self._masks[state]

    def advance(self, state: int, token: int) -> int:
        """The state after a token that `allowed` allows."""
        _check_allowed(self.allowed(state), token)
        if token == self.end:
            return DONE
        codes = self._first if state == FIRST else self._later
        here = self._automaton_state(state)
        for code in codes.of(token):
            here = int(self._automaton.row(here)[code])
        return here

    def _automaton_state(self, state: int) -> int:
        """The state of the automaton. FIRST is a state of its own here because the first token may be spelled
        differently (without its space).
        """
        return self._automaton.start if state == FIRST else state

    def _matches(self, state: int) -> bool:
        return self._automaton.ends[self._automaton_state(state)]

    def _reached(self, state: int) -> np.ndarray:
        """The state after each token of the text, (V,)."""
        if state == FIRST:
            return self._first.read(self._automaton, self._automaton_state(state))
        reached = self._later.read(self._automaton, state)
        reached[self._later.lengths == 0] = DEAD  # tokens without a byte could be written for ever
        return reached

    def _can_complete(self, state: int) -> bool:
        """Whether some tokens lead from a state to a match: a depth-first search that remembers what it found out."""
        came, stack = {state: DEAD}, [state]
        while stack:
            here = stack.pop()
            # Where each byte is a token, every state can be completed: an automaton of a pattern has no dead ends.
            if self._completes.get(here, self._matches(here) or (self._bytewise and here > FIRST)):
                while here != DEAD:
                    self._completes[here], here = True, came[here]
                return True
            for each in self._followers(here):
                if each not in came and self._completes.get(each, True):
                    came[each] = here
                    stack.append(each)
        self._completes |= dict.fromkeys(came, False)
        return False

    def _followers(self, state: int) -> list[int]:
        if state not in self._next:
            self._next[state] = [] if state == DEAD else np.flatnonzero(np.bincount(self._reached(state))).tolist()
        return self._next[state]


class Codes:
    """What every token of a vocabulary writes, as one table of bytes; one that must not be written has length -1."""

    def __init__(self, spelled: list[bytes | None]) -> None:
        self.lengths = np.array([-1 if each is None else len(each) for each in spelled])
        self._bytes = np.zeros((max(self.lengths.max(), 1), len(spelled)), dtype=np.uint8)
        for token, each in enumerate(spelled):
            self._bytes[: len(each or b""), token] = list(each or b"")

    def of(self, token: int) -> list[int]:
        """The bytes of one token."""
        return self._bytes[: self.lengths[token], token].tolist()

    def alone(self) -> set[int]:
        """The bytes that are a token each."""
        return set(self._bytes[0, self.lengths == 1].tolist())

    def read(self, automaton: Automaton, state: int) -> np.ndarray:
        """The state to which each token leads, (V,): all tokens at once, byte by byte, while they are alive."""
        reached = np.where(self.lengths < 0, DEAD, state)
        alive = np.flatnonzero(reached)
        for place, codes in enumerate(self._bytes):
            alive = alive[(self.lengths[alive] > place) & (reached[alive] != DEAD)]
            if not alive.size:
                break
            reached[alive] = automaton.step(reached[alive], codes[alive])
        return reached


@lru_cache(maxsize=16)
def _token_bytes(text: Text, first: bool) -> Codes:
    never = text.silent | {text.pad, text.begin, text.end, text.unknown}
    return Codes([None if each in never else text.spell(each, first=first) for each in range(text.vocab)])


def _check_allowed(mask: Tensor, token: int) -> None:
    if not 0 <= token < len(mask) or not mask[token]:
        raise SaccadeError(f"the token {token} is not allowed here")
