"""`Stepper`: the one interface between a model that writes tokens and a search. `ModelStepper`: the steps of a `Model`.

A search never looks into the state. It starts prompts, steps, says which rows go on, which join them and how much they
forget; the state itself (caches, contexts, recurrent states) belongs to the stepper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from saccade.attend.mask import padding
from saccade.decode.plan import Plan
from saccade.decode.sequence import End, LengthLimits, ends_of, is_whole
from saccade.error import SaccadeError
from saccade.heap import keep_heap
from saccade.model.dropout import evaluating
from saccade.model.input import Input, stack
from saccade.model.model import Model, State
from saccade.zoo.capacity import available, gigabytes

CACHED = 1 << 24  # logits that are made at a time where only the best of them are wanted


@runtime_checkable
class Stepper(Protocol):
    """A model that writes tokens, one step after another, for N rows at once."""

    vocab: int
    limit: int | None  # positions that a row may take; None: any number

    def start(self, prompts: list[list[int]], sources: list[Any] | None = None) -> tuple[Any, Tensor]:
        """A state that holds the prompts, a row each, and the logits (N,V) of the token after each."""

    def check(self, source: Any, number: int = 0) -> Any:
        """The source of prompt `number`, in the form that `start` takes; refuses anything else."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """The logits (N,T,V) of the token after each of tokens (N,T), which the state then holds too."""

    def parts(self, tokens: Tensor, state: Any) -> Iterator[Tensor]:
        """As `step`, but after the last token alone, as logits (n,V) of a few rows at a time, so that those of all rows
        need not exist at once. The caller may overwrite them.
        """

    def reorder(self, state: Any, rows: Tensor) -> None:
        """Row b goes on from what row rows[b] has seen; rows may be repeated, moved and left out."""

    def join(self, state: Any, other: Any) -> None:
        """The rows of another state follow behind those of this one."""

    def take(self, state: Any, rows: Tensor) -> Any:
        """A state of its own with these rows; this one stays as it is."""

    def forget(self, state: Any, tokens: Tensor) -> None:
        """Each row takes back its last tokens, as many as tokens (N,) says."""


class ModelStepper:
    """The steps of a `Model`: a decoder alone, or an encoder-decoder with a source for each prompt: a list of
    tokens, an Input of one row, or several of those by name.

    Rows of different lengths are padded on the right; each counts its positions from its own first token.
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
        self._source_limit = model.source_room
        self._device = model.device
        self._plan: Plan | None = None

    def start(self, prompts: list[list[int]], sources: list[Any] | None = None) -> tuple[State, Tensor]:
        """The sources are encoded and the prompts read, all at once."""
        # Made anew at every start: hooks, weights or modules may have changed since the last one.
        self._plan = Plan(self.model) if Plan.pays(self.model) else None
        self._device = self.model.device
        keep_heap()
        state = self.model.start(self._encoder_input(prompts, sources))
        tokens, lengths = self._padded(prompts)
        padded = padding(lengths) if lengths.min() < tokens.shape[1] else None
        states = self.model.advance(tokens, state, padding=padded)
        last = states[torch.arange(len(prompts), device=states.device), lengths - 1]
        return state, self.model.answer(last.unsqueeze(1))[:, 0]

    def check(self, source: Any, number: int = 0) -> Any:
        """Tokens are checked, an Input is taken as it is; without an encoder, nothing but None."""
        if self.model.encoder is None:
            if source is not None:
                raise SaccadeError("this model has no encoder: it takes prompts alone, without sources")
            return None
        if source is None:
            raise SaccadeError("an encoder-decoder writes from a source: give sources, a list of tokens a prompt")
        if isinstance(source, Input | Mapping):
            return source
        vocab = self.model.config.stack(decoder=False).vocab
        return as_lists([source], "source", vocab, self._source_limit, number)[0]

    def step(self, tokens: Tensor, state: State) -> Tensor:
        return self.model.answer(self._states(tokens, state))

    def parts(self, tokens: Tensor, state: State) -> Iterator[Tensor]:
        """The head answers for a few rows at a time."""
        for states in self._states(tokens, state)[:, -1:].split(max(1, CACHED // self.vocab)):
            yield self.model.answer(states)[:, -1]

    def _states(self, tokens: Tensor, state: State) -> Tensor:
        """The states that the head reads, (N,T,C). The plan knows steps of one token without gradients."""
        tokens = tokens.to(self._device)
        if self._plan is None or tokens.shape[1] != 1 or torch.is_grad_enabled():
            return self.model.advance(tokens, state)
        return self._plan.step(tokens[:, 0], state).unsqueeze(1)

    def reorder(self, state: State, rows: Tensor) -> None:
        """Caches and context; the context only where a row changes its source."""
        state.reorder(rows.to(self._device))

    def join(self, state: State, other: State) -> None:
        state.join(other)

    def take(self, state: State, rows: Tensor) -> State:
        return state.take(rows.to(self._device))

    def forget(self, state: State, tokens: Tensor) -> None:
        state.rewind(state.start - tokens.to(self._device))

    def _encoder_input(self, prompts: list[list[int]], sources: list[Any] | None) -> Input | dict[str, Input] | None:
        """What `model.start` is called with."""
        if self.model.encoder is None:
            if sources is not None:
                raise SaccadeError("this model has no encoder: it takes prompts alone, without sources")
            return None
        if sources is None:
            raise SaccadeError("an encoder-decoder writes from a source: give sources, a list of tokens a prompt")
        if len(sources) != len(prompts):
            raise SaccadeError(f"there are {len(prompts)} prompts and {len(sources)} sources: give one source a prompt")
        read = [self.check(each, number) for number, each in enumerate(sources)]
        if all(isinstance(each, Input) for each in read):
            return stack(read).to(self._device)
        if all(isinstance(each, Mapping) for each in read):
            return {name: stack([each[name] for each in read]).to(self._device) for name in read[0]}
        tokens, lengths = self._padded(read)
        return Input({"tokens": tokens}, lengths if lengths.min() < tokens.shape[1] else None)

    def _padded(self, lists: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Lists as one tensor (N,T), padded on the right, and their lengths (N,). Masks hide the padding, so that any
        token can fill it.
        """
        T = max(map(len, lists))
        rows = [each + [0] * (T - len(each)) for each in lists]
        lengths = [len(each) for each in lists]
        return torch.tensor(rows, device=self._device), torch.tensor(lengths, device=self._device)


def as_stepper(model: Model | Stepper) -> Stepper:
    """The steps of a model, or a stepper as it is."""
    return model if isinstance(model, Stepper) else ModelStepper(model)


@contextmanager
def at_work(stepper: Stepper | None) -> Iterator[None]:
    """Without gradients and dropout while the context lasts."""
    with torch.inference_mode(), evaluating(*_models(stepper)):
        yield


def _models(stepper: Any) -> list[Model]:
    """The models behind a stepper: its own, and those of the steppers of an ensemble."""
    own = getattr(stepper, "model", None)
    parts = [model for each in getattr(stepper, "steppers", ()) for model in _models(each)]
    return parts if own is None else [own, *parts]


def row_bytes(model: Model, positions: int) -> int:
    """Bytes of the keys and values of a row of so many positions; a layer with a window keeps no more than that."""
    config = model.config
    width = (config.head_width or config.width // config.heads) * (config.kv_heads or config.heads)
    size = next((each.element_size() for each in model.parameters()), 4)  # int8 weights compute in float32
    windows = [None] if model.decoder is None else model.decoder.windows
    return 2 * width * size * sum(positions if each is None else min(each, positions) for each in windows)


def refuse_rows(stepper: Stepper, rows: int, positions: int, each: int, what: str, device: str) -> None:
    """Refuses rows that hold more than the device has: keys and values of so many positions each, and `each` bytes
    beside them. what: what asks for the rows, in words.
    """
    needed = rows * (each + sum(row_bytes(model, positions) for model in _models(stepper)))
    there = available(device)
    if needed > there:
        where = "this machine" if device == "cpu" else device
        raise SaccadeError(
            f"{what} and texts of {positions:,} tokens take {gigabytes(needed)}, and {where} has {gigabytes(there)}: "
            f"lower one of the two (beam, max_tokens)"
        )


def fits(stepper: Stepper, prompt: list[int], max_tokens: int) -> None:
    """Refuses a prompt and max_tokens that need more positions than there are. The last token needs none: the model
    never reads it.
    """
    if stepper.limit is not None and len(prompt) + max_tokens - 1 > stepper.limit:
        raise SaccadeError(
            f"a prompt of {len(prompt)} tokens and max_tokens = {max_tokens} do not fit into {stepper.limit} "
            f"positions: give max_tokens = {stepper.limit - len(prompt) + 1} at most"
        )


def limited(stepper: Stepper, max_tokens: int, min_tokens: int, end: End) -> LengthLimits:
    """The limits of a sequence, checked; every end is a token of the vocabulary."""
    return LengthLimits(max_tokens, min_tokens, tuple(as_token("end", each, stepper.vocab) for each in ends_of(end)))


def as_token(name: str, token: Any, vocab: int) -> int:
    """A token of the vocabulary, checked."""
    if not is_whole(token) or not 0 <= token < vocab:
        raise SaccadeError(f"{name} is a token of the vocabulary, 0 ... {vocab - 1}; got {token!r}")
    return token


def as_lists(
    given: Iterable[Iterable[int]], name: str, vocab: int, limit: int | None, first: int = 0
) -> list[list[int]]:
    """Token lists, checked: whole numbers of the vocabulary, none empty, none longer than the positions there are.

    first: the number of the first list, for the messages.
    """
    try:
        lists = [[int(token) for token in each] for each in given]
    except (TypeError, ValueError):
        raise SaccadeError(f"{name}s are lists of tokens, one list a {name}: [[5, 3], [7]]") from None
    for number, each in enumerate(lists, first):
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
