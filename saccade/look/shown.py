"""`Shown`: what a model is shown for a look, in four kinds, and `Reply`: what it says to it.

ShownEncoder       an encoder alone: it reads and says something at once, or nothing
ShownContinuation  a decoder alone: one text, of which the model wrote the end
ShownTranslation   an encoder and a decoder: what was read, and what was written of it
ShownQueries       an encoder and a decoder of a set: what was read, and the queries that found something in it
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.error import SaccadeError
from saccade.field.elements.criterion import Told
from saccade.field.elements.target import ElementsTarget
from saccade.field.field import PlacesTarget, PooledTarget, WrittenTarget
from saccade.field.result import Result
from saccade.field.unit import Side, joined
from saccade.model.dropout import evaluating
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.task.batch import run
from saccade.task.example import Example
from saccade.task.task import Task

TOP = 5  # likeliest tokens that are kept for each place
CACHED = 1 << 24  # logits that are made at a time
QUERIES = "queries"  # the side of a decoder of a set
DECODED = ("target", "written", QUERIES)  # the sides of a decoder that has a source
FIRST, LAST = 0, -1  # of the sides of inputs
ENCODER_SIDES = {  # whose vectors look, and at which, by the stack and the kind of a layer
    ("context", "self"): (FIRST, FIRST),
    ("encoder", "self"): (LAST, LAST),
    ("decoder", "self"): (LAST, LAST),  # of a decoder alone that writes nothing: GPT-2 as a classifier
    ("encoder", "cross"): (LAST, FIRST),
    ("pooling", "self"): (LAST, LAST),
}


class Reply(NamedTuple):
    """The answer of a pooled head (`said`), or of each wanted token its log-probability and the likeliest tokens."""

    said: Result | None
    logprobs: list[float]
    top: list[list[tuple[int, float]]]


class Shown(ABC):
    """example: what was read and written. target: the tokens that a decoder is shown, None where there is none;
    wanted: the token that each of its places should predict.
    """

    target: list[int] | None
    wanted: list[int]

    def __init__(self, task: Task, example: Example, join: str = "one") -> None:
        """join: how the model reads several inputs."""
        self.task, self.example, self.join = task, example, join

    @cached_property
    def sides(self) -> dict[str, Side]:
        """The sequences by name."""
        return self._sides()

    @abstractmethod
    def _sides(self) -> dict[str, Side]: ...

    @property
    @abstractmethod
    def written(self) -> list[int]:
        """The tokens that the model wrote."""

    @property
    @abstractmethod
    def text_tokens(self) -> list[int]:
        """The tokens of the one text that was read, where there is no other side."""

    @property
    @abstractmethod
    def begun(self) -> int:
        """The number of the first token of the first side that the model wrote."""

    @property
    @abstractmethod
    def counted(self) -> range:
        """Which of the wanted tokens an ablation measures: those that the model wrote or, where it wrote none, all."""

    @property
    def counted_as(self) -> str:
        """What the counted tokens are, in words."""
        return "written"

    @property
    def given(self) -> int:
        """How many tokens of the predicted side nothing predicts: the first of a text."""
        return 0

    @property
    def size(self) -> int:
        """The positions of all that is shown."""
        return sum(map(len, self.sides.values()))

    @abstractmethod
    def sides_of(self, stack: str, kind: str) -> tuple[str, str]:
        """The names of the sides that a layer's rows and columns are of; kind: self or cross."""

    def fits(self, model: Model) -> None:
        """Refuses tokens that the model has no place or no vector for."""
        sequences = [
            (each.values["tokens"][0].tolist(), model.room_of(name))
            for name, each in self.example.x.items()
            if "tokens" in each.values
        ]
        if self.target is not None:
            sequences += [(self.target, model.room), (self.wanted, model.room)]
        for tokens, room in sequences:
            if room is not None and len(tokens) > room:
                raise SaccadeError(f"{len(tokens)} tokens are too long: the model has {room} positions")
        most = max((token for tokens, _ in sequences for token in tokens), default=-1)
        if most >= 0 and most >= model.config.vocab:
            raise SaccadeError(f"there is no token {most}: the model knows {model.config.vocab}")

    def states(self, model: Model, copies: int = 1) -> States:
        """What the head is shown, `copies` times."""
        x = {name: _repeated(each, copies).to(model.device) for name, each in self.example.x.items()}
        return run(model, x, self._decoder_input(model, copies))

    def answer(self, model: Model, states: States) -> Reply:
        """What the head makes of the states of one example."""
        if model.head is None or (model.decoder is None and not model.head.pooled):
            return Reply(None, [], [])
        if model.head.pooled:
            return Reply(_result_of(self.task, model.say(states)), [], [])
        logprobs: list[float] = []
        top: list[list[tuple[int, float]]] = []
        for some, tokens in self._parts(states.last[0], range(len(self.wanted)), model):
            found = F.log_softmax(model.answer(some[None])[0].float(), -1)
            logprobs += found.gather(1, tokens[:, None])[:, 0].tolist()
            best = found.topk(min(TOP, found.shape[1]), -1)
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                top.append(list(zip(ids, values, strict=True)))
        return Reply(None, logprobs, top)

    def told(self, model: Model, states: States) -> Result | None:
        """What the head says of all places, or pairs of them, at once; None where it says nothing of them."""
        if model.head is None or self.task.y is None or self.task.y.answer != PlacesTarget.answer:
            return None
        scores = model.say(states)
        y = cast(PlacesTarget, self.task.y)
        (found,) = y.results(y.placed(scores, self.example.x), [scores.shape[1]])
        return found

    def marked(self, sides: dict[str, Side], told: Result | None) -> dict[str, Side]:
        """The sides with what is said of their places."""
        if told is None:
            return sides
        y = cast(PlacesTarget, self.task.y)
        return {name: y.marked(side, told) for name, side in sides.items()}

    def likely(self, model: Model, copies: int, said: Result | None) -> Tensor:
        """The log-probability (copies,) of the answer `said` or, without one, of the counted tokens."""
        states = self.states(model, copies)
        if said is not None:
            scores = model.say(states).double()
            if self.task.y is None:
                return F.log_softmax(scores, -1)[:, said.value]
            return cast(PooledTarget, self.task.y).likely(scores, said)
        total = torch.zeros(copies, dtype=torch.double, device=model.device)
        for copy in range(copies):
            for some, tokens in self._parts(states.last[copy], self.counted, model):
                found = F.log_softmax(model.answer(some[None])[0].double(), -1)
                total[copy] += found.gather(1, tokens[:, None]).sum()
        return total

    def _decoder_input(self, model: Model, copies: int) -> Input | None:
        if self.target is None:
            return None
        return Input({"tokens": torch.tensor([self.target] * copies, device=model.device)})

    def _input_sides(self) -> dict[str, Side]:
        """The inputs by name, as the model reads them: one sequence, or the last and what it looks at."""
        inputs = {name: self.task.x[name].side(each) for name, each in self.example.x.items()}
        if len(inputs) < 2:
            return inputs
        return JOINED[self.join](inputs)

    def _encoder_sides(self, stack: str, kind: str) -> tuple[str, str]:
        """The sides of a layer before the decoder: it reads the last input, or what that one looks at, the first."""
        read = [each for each in self.sides if each not in DECODED]
        rows, columns = ENCODER_SIDES[stack, kind]
        return read[rows], read[columns]

    def _parts(self, states: Tensor, places: range, model: Model) -> Iterator[tuple[Tensor, Tensor]]:
        """The states of these places and the tokens wanted there, a few at a time."""
        chosen = torch.tensor(places, dtype=torch.long, device=states.device)
        wanted = torch.tensor(self.wanted, device=states.device)
        for some in chosen.split(max(1, CACHED // model.config.vocab)):
            yield states[some], wanted[some]


class ShownEncoder(Shown):
    """An input and nothing that is written. A single input bears the noun of its field."""

    target = None

    def __init__(self, task: Task, example: Example, join: str = "one") -> None:
        super().__init__(task, example, join)
        if example.written:
            raise SaccadeError("an encoder alone writes nothing: give an input without a target")
        self.wanted = []

    def _sides(self) -> dict[str, Side]:
        sides = self._input_sides()
        if len(self.example.x) > 1:
            return sides
        return {self.task.x[name].noun: side for name, side in sides.items()}

    @property
    def written(self) -> list[int]:
        return []

    @property
    def text_tokens(self) -> list[int]:
        (x, *_) = self.example.x.values()
        return x.values["tokens"][0].tolist() if "tokens" in x.values else []

    @property
    def begun(self) -> int:
        return max(map(len, self.sides.values()))

    @property
    def counted(self) -> range:
        return range(0)

    def sides_of(self, stack: str, kind: str) -> tuple[str, str]:
        return self._encoder_sides(stack, kind)


class ShownContinuation(Shown):
    """A text that a decoder goes on from, and what it wrote: one side. Each place predicts the next token."""

    target: list[int]

    def __init__(self, task: Task, example: Example, join: str = "one") -> None:
        super().__init__(task, example, join)
        self.target = example.read + example.written
        self.wanted = self.target[1:]

    def _sides(self) -> dict[str, Side]:
        y = cast(WrittenTarget, self.task.target)
        return {y.noun: y.side(self.target)}

    @property
    def written(self) -> list[int]:
        return self.target[self.begun :]

    @property
    def text_tokens(self) -> list[int]:
        return self.target

    @property
    def begun(self) -> int:
        return len(self.example.read)

    @property
    def counted(self) -> range:
        first = self.begun - 1 if self.written else 0
        return range(max(first, 0), len(self.wanted))

    @property
    def counted_as(self) -> str:
        return "written" if self.written else "of the text after its first"

    @property
    def given(self) -> int:
        return 1

    def sides_of(self, stack: str, kind: str) -> tuple[str, str]:
        (name,) = self.sides
        return name, name


class ShownTranslation(Shown):
    """An X and what was written of it. Three sides: X, target (what the decoder read: <begin> and all but the last
    token), and written (what each of these places wrote).
    """

    target: list[int]

    def __init__(self, task: Task, example: Example, join: str = "one") -> None:
        super().__init__(task, example, join)
        y = cast(WrittenTarget, task.y)
        self.wanted = [*example.written, y.end] if example.ended else list(example.written)
        if not self.wanted:
            raise SaccadeError("there is nothing to look at: the model wrote nothing")
        self.target = [y.begin, *example.written][: len(self.wanted)]

    def _sides(self) -> dict[str, Side]:
        y = cast(WrittenTarget, self.task.target)
        return {**self._input_sides(), "target": y.side(self.target), "written": y.side(self.wanted)}

    @property
    def written(self) -> list[int]:
        return self.wanted

    @property
    def text_tokens(self) -> list[int]:
        return []

    @property
    def begun(self) -> int:
        return 0

    @property
    def counted(self) -> range:
        return range(len(self.wanted))

    @property
    def size(self) -> int:
        return super().size - len(self.wanted)  # written is target moved by one: no positions of its own

    def sides_of(self, stack: str, kind: str) -> tuple[str, str]:
        if stack != "decoder":
            return self._encoder_sides(stack, kind)
        _, read = self._encoder_sides("encoder", "self")
        return ("written", read) if kind == "cross" else ("target", "target")


class ShownQueries(ShownEncoder):
    """An X and the queries of a decoder, which are named by what they found."""

    def __init__(self, task: Task, example: Example, join: str = "one") -> None:
        super().__init__(task, example, join)
        self.y = cast(ElementsTarget, task.target)
        self.heard: Told | None = None

    def states(self, model: Model, copies: int = 1) -> States:
        found = super().states(model, copies)
        if self.heard is None:
            self.heard = self.y.told_of(model, found)
            self.__dict__.pop("sides", None)  # they are named by what was told
        return found

    def _sides(self) -> dict[str, Side]:
        read = super()._sides()
        if self.heard is None:
            return read
        return {**read, QUERIES: over(self.y.side(self.heard), [*read.values()][LAST])}

    def answer(self, model: Model, states: States) -> Reply:
        """What the queries found, in shares of the example."""
        told = self.y.told_of(model, states)
        frame = np.repeat([0.0, 1.0], self.y.axes)
        (found,) = self.y.results(told, [frame], self.y.config.threshold)
        return Reply(found, [], [])

    def told(self, model: Model, states: States) -> Result | None:
        return None

    def likely(self, model: Model, copies: int, said: Result | None) -> Tensor:
        """The log-probability of the labels that were found, (copies,)."""
        assert self.heard is not None
        return self.y.likely(self.y.told_of(model, self.states(model, copies)), self.heard)

    def sides_of(self, stack: str, kind: str) -> tuple[str, str]:
        if stack != "decoder":
            return self._encoder_sides(stack, kind)
        _, read = self._encoder_sides("encoder", "self")
        return (QUERIES, read) if kind == "cross" else (QUERIES, QUERIES)


def over(queries: Side, read: Side) -> Side:
    """Queries with what they lie over: the picture of what was read, or the places of its points."""
    ground = {name: each for name, each in read.shown.items() if name in ("picture", "seconds")}
    places = [list(each.place) for each in read.tokens if each.place is not None]
    points = {} if "picture" in ground else {"places": places}
    return replace(queries, shown={**queries.shown, **ground, **points, "over": read.kind})


def shown(task: Task, example: Example, join: str = "one") -> Shown:
    """What a model is shown that read and wrote this; join: how it reads several inputs."""
    if not example.x and not example.read:
        raise SaccadeError("there is nothing to look at: the text has no tokens")
    needs = "pooled" if task.y is None else task.y.needs
    if needs != "decoder":
        return (ShownQueries if needs == QUERIES else ShownEncoder)(task, example, join)
    return ShownTranslation(task, example, join) if example.x else ShownContinuation(task, example)


def _result_of(task: Task, scores: Tensor) -> Result:
    """What the field makes of the head's scores; without a field, the number of a class."""
    if task.y is not None:
        return cast(PooledTarget, task.y).results(scores)[0]
    number = int(scores[0].argmax())
    return Result(number, str(number), float(scores[0].float().log_softmax(-1)[number]))


def _repeated(x: Input, copies: int) -> Input:
    """An example as many times; alone it has no padding."""

    def repeat(each: Tensor) -> Tensor:
        return each.repeat(copies, *[1] * (each.dim() - 1))

    values: Mapping[str, Tensor] = {name: repeat(each) for name, each in x.values.items()}
    return Input(values, places=x.places)


def _as_one(inputs: Mapping[str, Side]) -> dict[str, Side]:
    return {"input": joined(inputs)}


def _beside_context(inputs: Mapping[str, Side]) -> dict[str, Side]:
    """The last, behind what it looks at: one other, or several as one."""
    *others, last = inputs
    context = {name: inputs[name] for name in others}
    return {**(context if len(others) == 1 else {"context": joined(context)}), last: inputs[last]}


JOINED = {"one": _as_one, "context": _beside_context}  # the sides of several inputs, by how a model reads them


@contextmanager
def resting(model: Model) -> Iterator[None]:
    """Without gradients and without dropout."""
    with torch.no_grad(), evaluating(model):
        yield
