"""The one interface between a model that writes tokens and whoever searches: `Stepper`, and the one of `Model`.

A search never looks into the state. It starts prompts, steps, and says which rows go on; what a row has seen (caches,
contexts, recurrent states) is the stepper's affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from saccade.attend.mask import padding
from saccade.error import SaccadeError
from saccade.model.model import Model, State


@runtime_checkable
class Stepper(Protocol):
    """A model that writes tokens, one step after another, for N rows at once."""

    vocab: int
    limit: int | None  # positions that a row may take; None: as many as one likes

    def start(self, prompts: list[list[int]], sources: list[Any] | None = None) -> tuple[Any, Tensor]:
        """A state that holds the prompts, a row each, and the logits (N,V) of the token after each."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """The logits (N,T,V) of the token after each of tokens (N,T), which the state then holds too."""

    def reorder(self, state: Any, rows: Tensor) -> None:
        """Row b goes on from what row rows[b] has seen; rows may be repeated, moved and left out."""


class ModelStepper:
    """The steps of a `Model`: a decoder alone, or an encoder-decoder with a source (a list of tokens) a prompt.

    Prompts of different lengths are padded on the left, sources on the right.
    """

    def __init__(self, model: Model) -> None:
        if not hasattr(model, "decode_step"):
            raise SaccadeError(f"a Model or a Stepper writes tokens; {type(model).__name__} is neither")
        if model.decoder is None:
            raise SaccadeError("this model has no decoder, so it cannot write tokens")
        if not hasattr(model.head, "weight"):
            raise SaccadeError(f"this model has the head {model.config.head!r}: to write, it needs head = 'vocabulary'")
        self.model, self.vocab = model, model.config.vocab
        self.limit = model.room

    def start(self, prompts: list[list[int]], sources: list[Any] | None = None) -> tuple[State, Tensor]:
        """The sources are encoded and the prompts read, all at once."""
        state = self.model.start(**self._encoded(prompts, sources))
        tokens, lengths = self._table(prompts, "left")
        padded = padding(lengths, "left") if lengths.min() < tokens.shape[1] else None
        logits = self.model.decode_step(tokens, state, padding=padded)
        return state, logits[:, -1].clone()  # the prompt's own logits are large, and nobody asks for them

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """One step of the decoder."""
        return self.model.decode_step(tokens, state)

    def reorder(self, state: State, rows: Tensor) -> None:
        """Caches, padding and context; the context only where a row changes its source."""
        state.reorder(rows)

    def _encoded(self, prompts: list[list[int]], sources: list[Any] | None) -> dict[str, Any]:
        """What `model.start` is called with."""
        if self.model.encoder is None:
            if sources is not None:
                raise SaccadeError("this model has no encoder: it takes prompts alone, without sources")
            return {}
        if sources is None:
            raise SaccadeError("an encoder-decoder writes from a source: give sources, a list of tokens a prompt")
        read = as_lists(sources, "source", self.vocab, self.limit)
        if len(read) != len(prompts):
            raise SaccadeError(f"there are {len(prompts)} prompts and {len(read)} sources: give one source a prompt")
        source, lengths = self._table(read, "right")
        return {"source": source, "padding": padding(lengths) if lengths.min() < source.shape[1] else None}

    def _table(self, lists: list[list[int]], side: str) -> tuple[Tensor, Tensor]:
        """Lists as one tensor (N,T), and their lengths (N,). What fills the gaps is any token: nobody looks there."""
        T = max(map(len, lists))
        gaps = [[0] * (T - len(each)) for each in lists]
        rows = [gap + each if side == "left" else each + gap for gap, each in zip(gaps, lists, strict=True)]
        device = self.model.embed.tokens.weight.device
        return torch.tensor(rows, device=device), torch.tensor([len(each) for each in lists], device=device)


def as_lists(given: Iterable[Iterable[int]], name: str, vocab: int, limit: int | None) -> list[list[int]]:
    """Token lists, checked: whole numbers of the vocabulary, none empty, none longer than the positions there are."""
    try:
        lists = [[int(token) for token in each] for each in given]
    except (TypeError, ValueError):
        raise SaccadeError(f"{name}s are lists of tokens, one list a {name}: [[5, 3], [7]]") from None
    for number, each in enumerate(lists):
        if not each:
            raise SaccadeError(f"{name} {number} is empty: give it one token at least, such as the one that begins")
        wrong = [token for token in each if not 0 <= token < vocab]
        if wrong:
            raise SaccadeError(
                f"{name} {number} has the token {wrong[0]}, outside the vocabulary: tokens are 0 ... {vocab - 1}"
            )
        if limit is not None and len(each) > limit:
            raise SaccadeError(f"{name} {number} has {len(each)} tokens, the position table {limit}: shorten it")
    return lists
