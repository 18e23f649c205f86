"""`Sequence`: what a search writes. `LengthLimits`: when a sequence may end, and when it must."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeGuard

import torch
from torch import Tensor

from saccade.error import SaccadeError

End = int | Collection[int] | None  # the token that ends a sequence, or several, each of which does


def ends_of(end: End) -> list[int]:
    """The tokens that end a sequence, as a list."""
    if end is None:
        return []
    return list(end) if isinstance(end, Collection) else [end]


@dataclass(frozen=True)
class Sequence:
    """Tokens that a model wrote: without the prompt, and without the end."""

    tokens: list[int]
    logprob: float  # the sum over the tokens, and over the end where there is one
    finished: bool  # the model wrote the end, or a stop string; else the search stopped at max_tokens
    logprobs: list[float] = field(default_factory=list)  # of each token, and of the end; a beam search keeps none
    top: list[list[tuple[int, float]]] = field(default_factory=list)  # the likeliest tokens of each step, where asked
    text: str | None = None  # where the search was given the text that the tokens are of; without the stop string


@dataclass(frozen=True)
class LengthLimits:
    """When a sequence may end, and when it must. `max_tokens` counts the end, `min_tokens` does not."""

    max_tokens: int
    min_tokens: int = 0
    ends: tuple[int, ...] = ()  # each of these tokens ends a sequence

    def __post_init__(self) -> None:
        whole("max_tokens", self.max_tokens, 1)
        whole("min_tokens", self.min_tokens, 0)
        if self.min_tokens > self.max_tokens:
            raise SaccadeError(f"min_tokens = {self.min_tokens} is more than max_tokens = {self.max_tokens}")

    def forbidden(self, written: int) -> tuple[int, ...]:
        """The tokens that may not come after so many written ones: the ends, before min_tokens."""
        return () if written >= self.min_tokens else self.ends

    def is_end(self, tokens: Tensor) -> Tensor:
        """Which of the tokens are an end."""
        found = torch.zeros_like(tokens, dtype=torch.bool)
        for end in self.ends:
            found |= tokens == end
        return found

    def sequences(self, tokens: Tensor, lengths: Tensor, logprobs: Tensor) -> list[Sequence]:
        """tokens (N,max_tokens), of each row the first `lengths`, with the end where there is one."""
        finished = self.is_end(tokens.gather(1, lengths.unsqueeze(1) - 1)).squeeze(1)
        rows = zip(tokens.tolist(), lengths.tolist(), logprobs.tolist(), finished.tolist(), strict=True)
        return [Sequence(row[: length - over], logprob, over) for row, length, logprob, over in rows]


def whole(name: str, value: object, least: int) -> None:
    """Refuses all but whole numbers from `least` on."""
    if not is_whole(value) or value < least:
        raise SaccadeError(f"{name} is a whole number from {least}; got {value!r}")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is an int; a bool does not count as one."""
    return isinstance(value, int) and not isinstance(value, bool)


def possible(logprobs: Tensor) -> None:
    """Refuses to go on where even the likeliest token has no probability, or NaN."""
    if not logprobs.isfinite().all():
        what = "NaN for the next token: its weights are broken" if logprobs.isnan().any() else "no token a probability"
        raise SaccadeError(f"the search cannot go on: the model gives {what}")
