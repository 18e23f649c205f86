"""`generate`: prompts in, sequences out; the door to every search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, overload

import torch
from torch import nn

from saccade.decode.beam import search
from saccade.decode.greedy import greedy
from saccade.decode.sequence import Limits, Sequence
from saccade.decode.step import ModelStepper, Stepper, as_lists
from saccade.error import SaccadeError
from saccade.model.model import Model

Tokens = Iterable[Iterable[int]]


@overload
def generate(
    model: Model | Stepper,
    prompts: Tokens | None = ...,
    *,
    sources: Iterable[Any] | None = ...,
    max_tokens: int,
    min_tokens: int = ...,
    begin: int | None = ...,
    end: int | None = ...,
    beam: int = ...,
    n: None = ...,
    length_penalty: float = ...,
) -> list[Sequence]:
    """One sequence a prompt."""


@overload
def generate(
    model: Model | Stepper,
    prompts: Tokens | None = ...,
    *,
    sources: Iterable[Any] | None = ...,
    max_tokens: int,
    min_tokens: int = ...,
    begin: int | None = ...,
    end: int | None = ...,
    beam: int = ...,
    n: int,
    length_penalty: float = ...,
) -> list[list[Sequence]]:
    """The n best a prompt."""


def generate(
    model: Model | Stepper,
    prompts: Tokens | None = None,
    *,
    sources: Iterable[Any] | None = None,
    max_tokens: int,
    min_tokens: int = 0,
    begin: int | None = None,
    end: int | None = None,
    beam: int = 1,
    n: int | None = None,
    length_penalty: float = 1.0,
) -> list[Sequence] | list[list[Sequence]]:
    """One sequence a prompt, the best; with `n`, a list of the n best a prompt (fewer where there are no more).

        saccade.generate(model, [[5, 3], [7]], max_tokens=20, end=2)
        saccade.generate(model, sources=[[5, 3], [7]], begin=1, end=2, max_tokens=20, beam=5, n=3)

    prompts: lists of tokens; with sources (an encoder-decoder's inputs) they are [begin] each unless given.
    max_tokens counts the end, min_tokens does not; without `end`, every sequence has max_tokens tokens.
    beam = 1 is greedy search; else the hypotheses are ranked by logprob / length ** length_penalty.
    """
    stepper = model if isinstance(model, Stepper) else ModelStepper(model)
    limits = _limits(stepper, max_tokens, min_tokens, end)
    _check(beam, n, length_penalty)
    sources = None if sources is None else list(sources)
    read = _prompts(stepper, prompts, sources, begin)
    _fits(stepper, read, max_tokens)
    if not read:
        return []
    with torch.inference_mode(), at_rest(model):
        state, logits = stepper.start(read, sources)
        if beam == 1:
            found = [[each] for each in greedy(stepper, state, logits, limits)]
        else:
            found = search(stepper, state, logits, limits, beam=beam, n=n or 1, alpha=length_penalty)
    return found if n is not None else [best for best, *_ in found]


@contextmanager
def at_rest(model: object) -> Iterator[None]:
    """No dropout while the context lasts; afterwards each module trains or rests as it did."""
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    trained = [module for module in modules if module.training]
    for module in trained:
        module.training = False
    try:
        yield
    finally:
        for module in trained:
            module.training = True


def _prompts(stepper: Stepper, prompts: Tokens | None, sources: list[Any] | None, begin: int | None) -> list[list[int]]:
    if prompts is not None:
        if begin is not None:
            raise SaccadeError("begin stands in place of prompts: give one of the two")
        return as_lists(prompts, "prompt", stepper.vocab, stepper.limit)
    if sources is None or begin is None:
        raise SaccadeError("generate goes on from prompts: give them, or sources and the token that begins (begin=)")
    _token("begin", begin, stepper.vocab)
    return [[begin]] * len(sources)


def _limits(stepper: Stepper, max_tokens: int, min_tokens: int, end: int | None) -> Limits:
    _whole("max_tokens", max_tokens, 1)
    _whole("min_tokens", min_tokens, 0)
    if min_tokens > max_tokens:
        raise SaccadeError(f"min_tokens = {min_tokens} is more than max_tokens = {max_tokens}")
    if end is not None:
        _token("end", end, stepper.vocab)
    return Limits(max_tokens, min_tokens, end)


def _fits(stepper: Stepper, prompts: list[list[int]], max_tokens: int) -> None:
    """The last token that is written takes no position any more: nobody reads it."""
    longest = max(map(len, prompts), default=0)
    if stepper.limit is not None and longest + max_tokens - 1 > stepper.limit:
        raise SaccadeError(
            f"a prompt of {longest} tokens and max_tokens = {max_tokens} do not fit into {stepper.limit} positions: "
            f"give max_tokens = {stepper.limit - longest + 1} at most"
        )


def _check(beam: int, n: int | None, length_penalty: float) -> None:
    _whole("beam", beam, 1)
    if n is not None:
        _whole("n", n, 1)
        if n > beam:
            raise SaccadeError(f"a beam of {beam} cannot give the n = {n} best: make the beam {n} or more")
    if not isinstance(length_penalty, int | float) or not 0 <= length_penalty <= 10:
        raise SaccadeError(f"length_penalty is a number from 0 to 10; got {length_penalty!r}")


def _whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SaccadeError(f"{name} is a whole number from {least}; got {value!r}")


def _token(name: str, token: Any, vocab: int) -> None:
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < vocab:
        raise SaccadeError(f"{name} is a token of the vocabulary, 0 ... {vocab - 1}; got {token!r}")
