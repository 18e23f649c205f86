"""`Shown`: what a model is shown for a look, and `Reply`: what it says to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.field import Pooled, Written
from saccade.field.result import Result
from saccade.field.unit import Side, joined
from saccade.model.dropout import at_rest
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.task.batch import run
from saccade.task.example import Example
from saccade.task.task import Task

TOP = 5  # likeliest tokens that are kept for each place
CACHED = 1 << 24  # logits that are made at a time


class Reply(NamedTuple):
    """What the head says at once, or of each wanted token how likely it was and what was likeliest there."""

    said: Result | None
    logprobs: list[float]
    top: list[list[tuple[int, float]]]


class Shown(NamedTuple):
    """example: what was read and written. target: the tokens that a decoder is shown, None where there is none.

    wanted: what is said at each place of the decoder. begun: from which token of a text on the model wrote it.
    """

    task: Task
    example: Example
    target: list[int] | None
    wanted: list[int]
    begun: int

    @property
    def alone(self) -> bool:
        """Whether a decoder goes on from its own text, without an X."""
        return not self.example.x

    @property
    def wrote(self) -> bool:
        """Whether anything of it was written by the model."""
        return self.target is not None and (not self.alone or self.begun < len(self.target))

    @property
    def written(self) -> list[int]:
        """What the model wrote."""
        return (self.target or [])[self.begun :] if self.alone else self.wanted

    @property
    def counted(self) -> range:
        """Which of the wanted tokens matter: those that the model wrote or, where it wrote none, all."""
        given = self.begun - 1 if self.alone and self.wrote else 0
        return range(max(given, 0), len(self.wanted))

    @property
    def size(self) -> int:
        """The positions of all that is shown."""
        return sum(map(len, self.sides.values())) - len(self.wanted if not self.alone else ())

    @property
    def sides(self) -> dict[str, Side]:
        """The sequences by name. Of an X and a decoder: X, target (what the decoder read) and written (what each of
        these places wrote: the same moved by one); else one, by its noun. Several X are read as one.
        """
        fields, example = self.task.x, self.example
        inputs = {name: fields[name].side(each) for name, each in example.x.items()}
        inputs = {"input": joined(inputs)} if len(inputs) > 1 else inputs
        if self.target is None:
            return {fields[name].noun if name in fields else name: side for name, side in inputs.items()}
        y = cast(Written, self.task.target)
        if self.alone:
            return {y.noun: y.side(self.target)}
        return {**inputs, "target": y.side(self.target), "written": y.side(self.wanted)}

    def fits(self, model: Model) -> None:
        """Refuses tokens that the model has no place or no vector for."""
        x = {
            name: each.values["tokens"][0].tolist() for name, each in self.example.x.items() if "tokens" in each.values
        }
        lists = [*x.values(), *([] if self.target is None else [self.target, self.wanted])]
        rooms = [*map(model.room_of, x), *[model.room] * (len(lists) - len(x))]
        for each, room in zip(lists, rooms, strict=True):
            if room is not None and len(each) > room:
                raise SaccadeError(f"{len(each)} tokens are too long: the model has {room} positions")
        most = max((token for each in lists for token in each), default=-1)
        if most >= 0 and most >= model.config.vocab:
            raise SaccadeError(f"there is no token {most}: the model knows {model.config.vocab}")

    def states(self, model: Model, copies: int = 1) -> States:
        """What the head is shown, `copies` times."""
        x = {name: _copied(each, copies).to(model.device) for name, each in self.example.x.items()}
        given = (
            None
            if self.target is None
            else Input({"tokens": torch.tensor([self.target] * copies, device=model.device)})
        )
        return run(model, x, given)

    def answer(self, model: Model, states: States) -> Reply:
        """What the head says of the states of one example."""
        if model.head is None or (model.decoder is None and not model.head.pooled):
            return Reply(None, [], [])
        if model.head.pooled:
            return Reply(_said(self.task, model.say(states)), [], [])
        logprobs: list[float] = []
        top: list[list[tuple[int, float]]] = []
        for some, tokens in self._parts(states.last[0], range(len(self.wanted)), model):
            found = F.log_softmax(model.answer(some[None])[0].float(), -1)
            logprobs += found.gather(1, tokens[:, None])[:, 0].tolist()
            best = found.topk(min(TOP, found.shape[1]), -1)
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                top.append(list(zip(ids, values, strict=True)))
        return Reply(None, logprobs, top)

    def likely(self, model: Model, copies: int, said: Result | None) -> Tensor:
        """How likely (copies,) what was said is, or the tokens that count: a log-probability."""
        states = self.states(model, copies)
        if said is not None:
            scores = model.say(states).double()
            return _chance(scores, said) if self.task.y is None else cast(Pooled, self.task.y).likely(scores, said)
        total = torch.zeros(copies, dtype=torch.double, device=model.device)
        for copy in range(copies):
            for some, tokens in self._parts(states.last[copy], self.counted, model):
                found = F.log_softmax(model.answer(some[None])[0].double(), -1)
                total[copy] += found.gather(1, tokens[:, None]).sum()
        return total

    def _parts(self, states: Tensor, places: range, model: Model) -> Iterator[tuple[Tensor, Tensor]]:
        """The states of these places and the tokens wanted there, a few at a time."""
        chosen = torch.tensor(places, dtype=torch.long, device=states.device)
        wanted = torch.tensor(self.wanted, device=states.device)
        for some in chosen.split(max(1, CACHED // model.config.vocab)):
            yield states[some], wanted[some]


def shown(task: Task, example: Example) -> Shown:
    """What a model is shown that read and wrote this."""
    if not example.x and not example.read:
        raise SaccadeError("there is nothing to look at: the text has no tokens")
    if task.y is None or task.y.needs != "decoder":
        if example.written:
            raise SaccadeError("an encoder alone writes nothing: give an input without a target")
        return Shown(task, example, None, [], 0)
    if not example.x:
        tokens = example.read + example.written
        return Shown(task, example, tokens, tokens[1:], len(example.read))
    y = cast(Written, task.y)
    said = [*example.written, y.end] if example.ended else list(example.written)
    if not said:
        raise SaccadeError("there is nothing to look at: the model wrote nothing")
    return Shown(task, example, [y.begin, *example.written][: len(said)], said, 0)


def _said(task: Task, scores: Tensor) -> Result:
    """What the field makes of the head's words; without a field, the number of a class."""
    if task.y is not None:
        return cast(Pooled, task.y).results(scores)[0]
    number = int(scores[0].argmax())
    return Result(number, str(number), float(scores[0].float().log_softmax(-1)[number]))


def _chance(scores: Tensor, said: Result) -> Tensor:
    return F.log_softmax(scores, -1)[:, said.value]


def _copied(x: Input, copies: int) -> Input:
    """An example as many times; alone it has no padding."""

    def again(each: Tensor) -> Tensor:
        return each.repeat(copies, *[1] * (each.dim() - 1))

    values: Mapping[str, Tensor] = {name: again(each) for name, each in x.values.items()}
    return Input(values, places=x.places)


@contextmanager
def resting(model: Model) -> Iterator[None]:
    """Without gradients and without dropout."""
    with torch.no_grad(), at_rest(model):
        yield
