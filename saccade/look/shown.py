"""`Shown`: the tokens that a model is shown for a look, and `Answer`: what it says to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data.field import Text
from saccade.error import SaccadeError
from saccade.model.dropout import at_rest
from saccade.model.model import Model

TOP = 5  # likeliest tokens that are kept for each place
CACHED = 1 << 24  # logits that are made at a time


class Answer(NamedTuple):
    """A label's number, or of each wanted token how likely it was and what was likeliest there."""

    label: int | None
    logprobs: list[float]
    top: list[list[tuple[int, float]]]


class Shown(NamedTuple):
    """read: the text, or the source of an encoder-decoder, whose decoder is shown the target.

    wanted: what is said at each place of the decoder. begun: from which token of the text on the model wrote it.
    """

    read: list[int]
    target: list[int] | None
    wanted: list[int]
    begun: int

    @property
    def wrote(self) -> bool:
        """Whether anything of it was written by the model."""
        return self.target is not None or self.begun < len(self.read)

    @property
    def written(self) -> list[int]:
        """What the model wrote."""
        return self.read[self.begun :] if self.target is None else self.wanted

    @property
    def counted(self) -> range:
        """Which of the wanted tokens matter: those that the model wrote or, where it wrote none, all."""
        given = self.begun - 1 if self.target is None and self.wrote else 0
        return range(max(given, 0), len(self.wanted))

    def fits(self, model: Model) -> None:
        """Refuses tokens that the model has no place or no vector for."""
        longest = max(len(self.read), len(self.target or ()))
        if model.room is not None and longest > model.room:
            raise SaccadeError(f"{longest} tokens are too long: the model has {model.room} positions")
        most = max((*self.read, *(self.target or ()), *self.wanted))
        if most >= model.config.vocab:
            raise SaccadeError(f"there is no token {most}: the model knows {model.config.vocab}")

    def states(self, model: Model, copies: int = 1) -> Tensor:
        """What the head is shown, (copies,T,C)."""
        device = model.embed.tokens.weight.device
        given = [self.read] if self.target is None else [self.read, self.target]
        return model.states(*(torch.tensor([each] * copies, device=device) for each in given))

    def answer(self, model: Model, states: Tensor) -> Answer:
        """What the head says of the states (1,T,C)."""
        if model.head is None or (model.decoder is None and not model.head.pooled):
            return Answer(None, [], [])
        if model.head.pooled:
            return Answer(int(model.answer(states)[0].argmax()), [], [])
        logprobs: list[float] = []
        top: list[list[tuple[int, float]]] = []
        for some, tokens in self._parts(states[0], range(len(self.wanted)), model):
            found = F.log_softmax(model.answer(some[None])[0].float(), -1)
            logprobs += found.gather(1, tokens[:, None])[:, 0].tolist()
            best = found.topk(min(TOP, found.shape[1]), -1)
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                top.append(list(zip(ids, values, strict=True)))
        return Answer(None, logprobs, top)

    def likely(self, model: Model, copies: int, label: int | None) -> Tensor:
        """The log-probability (copies,) of the label, or of the tokens that count."""
        states = self.states(model, copies)
        if label is not None:
            return F.log_softmax(model.answer(states).double(), -1)[:, label]
        total = torch.zeros(copies, dtype=torch.double, device=states.device)
        for copy in range(copies):
            for some, tokens in self._parts(states[copy], self.counted, model):
                found = F.log_softmax(model.answer(some[None])[0].double(), -1)
                total[copy] += found.gather(1, tokens[:, None]).sum()
        return total

    def _parts(self, states: Tensor, places: range, model: Model) -> Iterator[tuple[Tensor, Tensor]]:
        """The states of these places and the tokens wanted there, a few at a time."""
        chosen = torch.tensor(places, dtype=torch.long, device=states.device)
        wanted = torch.tensor(self.wanted, device=states.device)
        for some in chosen.split(max(1, CACHED // model.config.vocab)):
            yield states[some], wanted[some]


def shown(model: Model, text: Text, read: Sequence[int], written: Sequence[int], ended: bool) -> Shown:
    """What a model is shown that read these tokens and wrote those, and the end where it `ended`."""
    read, written = list(read), list(written)
    if not read:
        raise SaccadeError("there is nothing to look at: the text has no tokens")
    if model.decoder is None:
        if written:
            raise SaccadeError("an encoder alone writes nothing: give a text without a target")
        return Shown(read, None, [], len(read))
    if model.encoder is None:
        return Shown(read + written, None, (read + written)[1:], len(read))
    if text.begin is None:
        raise SaccadeError("this tokenizer has no token that a decoder could begin with")
    said = [*written, text.end] if ended and text.end is not None else written
    if not said:
        raise SaccadeError("there is nothing to look at: the model wrote nothing")
    return Shown(read, [text.begin, *written][: len(said)], said, 0)


@contextmanager
def resting(model: Model) -> Iterator[None]:
    """Without gradients and without dropout."""
    with torch.no_grad(), at_rest(model):
        yield
