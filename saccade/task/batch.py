"""A batch: what the model is shown, and what it should say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.model.stack import Memory


@dataclass(frozen=True)
class Batch:
    """source (B,S) with its lengths (B,), or None where all are as long; target (B,T), what a decoder is shown.

    wanted (N,): the tokens or labels to predict, at the places (N,) of the flattened (B*T); None: at all of them.
    lane: where the batch goes on from another, which of the memories is its own; fresh: that is empty. `Carry` puts
    the memory in.
    """

    source: Tensor
    lengths: Tensor | None
    target: Tensor | None
    wanted: Tensor
    places: Tensor | None
    lane: int | None = None
    fresh: bool = False
    memory: Memory | None = None

    @property
    def count(self) -> int:
        """How many predictions the loss is a mean of."""
        return self.wanted.numel()

    @property
    def sizes(self) -> Tensor:
        """How many predictions each row of a target asks for, (B,)."""
        assert self.target is not None
        B, T = self.target.shape
        if self.places is None:
            return torch.full((B,), T, device=self.target.device)
        return (self.places // T).bincount(minlength=B)

    def twice(self) -> Batch:
        """The same examples again behind themselves; what is wanted of them stays."""
        source, lengths, target = (
            None if each is None else each.repeat(2, *[1] * (each.dim() - 1))
            for each in (self.source, self.lengths, self.target)
        )
        assert source is not None
        size = (self.source if self.target is None else self.target).numel()
        places = None if self.places is None else torch.cat([self.places, self.places + size])
        return replace(self, source=source, lengths=lengths, target=target, places=places)

    def to(self, device: str) -> Batch:
        """The same on a device."""
        if device == "cpu":
            return self
        lengths, target, places = (
            None if each is None else each.to(device) for each in (self.lengths, self.target, self.places)
        )
        there = replace(self, lengths=lengths, target=target, places=places)
        return replace(there, source=self.source.to(device), wanted=self.wanted.to(device))


CUT = "cut: "  # how a note begins that is not of the input


class Result(NamedTuple):
    """What a model answers: a text or a label, how sure it is of it (a log-probability), and why it is none, or cut."""

    text: str
    score: float
    note: str | None = None


def unanswered(results: Sequence[Result]) -> dict[str, int]:
    """How many inputs got no answer (empty or too long) and how many answers were cut, where there are any."""
    notes = [each.note for each in results if each.note is not None]
    cut = sum(each.startswith(CUT) for each in notes)
    return {name: count for name, count in (("unfit", len(notes) - cut), ("cut", cut)) if count}


def unfit(tokens: list[int], limit: int | None, verb: str) -> Result | None:
    """The answer to an input that is empty or over-long, or None."""
    if not tokens:
        return Result("", 0.0, f"empty: there is nothing to {verb}")
    if limit is not None and len(tokens) > limit:
        return Result("", 0.0, f"too long: {len(tokens)} tokens, and the model was made for {limit}")
    return None


def fit(tokens: list[int], limit: int | None, verb: str) -> list[int]:
    """The tokens of an input; refuses one that is empty or over-long."""
    no = unfit(tokens, limit, verb)
    if no is not None:
        raise SaccadeError(f"this text is {no.note}")
    return tokens
