"""Answers: how what a model says becomes a result. Y names one of them.

likeliest      what the head says of the pooled state, as the field reads it: the likeliest label
values         the same of numbers
search         a text after an X, token by token: greedily, by a beam, or drawn
continuation   how a text goes on
questions      a text whose answers alone count: the likeliest token at each
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch

from saccade import spec
from saccade.data.rows import texts
from saccade.decode.generate import generate, stream
from saccade.decode.sequence import Sequence as Found
from saccade.decode.unknown import looked_at, pieces, replaced
from saccade.error import SaccadeError
from saccade.field.field import Pooled, Streamed, Written
from saccade.field.result import CUT, Result, unanswered
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.batch import run, states_of
from saccade.task.carry import Carry
from saccade.task.example import Example
from saccade.task.inputs import Inputs, Task, unfit
from saccade.task.search import piecewise, search, within

STEP = 8  # sources that differ by less may become equally long, and are written together
TOKENS = 4096  # that are searched at a time, beams counted
TOGETHER = 64  # inputs that a model reads at a time
ENCODED = 1024  # inputs that are held as arrays at a time
PROMPTS = 32  # texts that are gone on with at a time
SAMPLE = 60  # tokens of the samples that are shown while training
BEGINNING = 20  # characters of what they go on from
SHOWN = 3  # examples that are shown while training
QUESTIONS = 8192  # tokens that are read at a time where questions are judged


class Ask(NamedTuple):
    """What a search is asked to write: after a prompt, from a source where there is one, so many tokens at most."""

    prompt: list[int]
    source: Any
    most: int


class Answer(Protocol):
    """How results come about."""

    @property
    def writes(self) -> bool:
        """Whether tokens are written one after another, by a search."""

    @property
    def compared(self) -> str | None:
        """What two runs are compared by: "answers" or "losses"; None: neither."""

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """A result for each input, in their order."""

    def stream(self, model: Model, raw: Any, decode: DecodeConfig) -> Iterator[str]:
        """The result for one input, piece by piece, as soon as each is certain."""

    def ask(self, model: Model, raw: Any, decode: DecodeConfig) -> Ask:
        """What a search is asked to write for one input; refuses one that has no answer."""

    def example(
        self, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """What a model reads of an input, and writes, to be looked into. target: what was written instead; adds: an
        output that stands alone goes on from the input.
        """

    def judge(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The metrics of the results for rows, and what belongs beside them."""

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """A cheap metric and a few (input, output), to be seen while training."""


class Referred:
    """An answer that is judged beside what was wanted, by the metrics of its field."""

    task: Task
    compared = "answers"

    def judge(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The field's metrics."""
        return judged(self.task, model, rows, decode)

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """The field's cheap metrics."""
        return glanced(self.task, model, rows, decode)


class Said(Referred):
    """What the head says at once."""

    writes = False

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(Pooled, task.y)

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """What the field makes of the head's words for each input."""
        self.task.target  # noqa: B018  refuses where there is none
        with torch.inference_mode(), at_rest(model):
            portions = (inputs[begin : begin + ENCODED] for begin in range(0, len(inputs), ENCODED))
            return [result for portion in portions for result in self._said(model, portion)]

    def _said(self, model: Model, inputs: Sequence[Any]) -> list[Result]:
        read = Inputs(self.task, model, inputs)
        results: list[Result | None] = [None if note is None else Result(None, "", 0.0, note) for note in read.notes]
        for begin in range(0, len(read.fit), TOGETHER):
            numbers = read.fit[begin : begin + TOGETHER]
            x = {name: each.to(model.device) for name, each in read.collated(numbers).items()}
            said = self.y.results(model.say(run(model, x, None)))
            for number, result in zip(numbers, said, strict=True):
                results[number] = result
        return [each for each in results if each is not None]

    def stream(self, model: Model, raw: Any, decode: DecodeConfig) -> Iterator[str]:
        """The result, which comes all at once."""
        (result,) = self.predict(model, [raw], decode)
        if result.note is not None:
            raise _refused(self.task, result.note)
        yield result.text

    def ask(self, model: Model, raw: Any, decode: DecodeConfig) -> Ask:
        """Nothing is written."""
        raise SaccadeError(f"{self.task.verb} writes no text")

    def example(
        self, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The input alone."""
        if target is not None or adds:
            raise SaccadeError("an encoder alone writes nothing: give an input without a target")
        return Example(_fit(self.task, model, raw).collated([0]), [], [], False)


class Searched(Referred):
    """A text that is written after an X."""

    writes = True

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(Written, task.target)
        self.text, self.begin = self.y.text, self.y.begin

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """A text for each input, in their order."""
        read = Inputs(self.task, model, inputs)
        results: list[Result | None] = [None if note is None else Result(None, "", 0.0, note) for note in read.notes]
        left = sorted(read.fit, key=lambda n: read.lengths[n])
        most = [self.longest(model, read.lengths[number] + 1, decode) for number in left]
        for group in _groups([read.lengths[number] for number in left], most, TOKENS // decode.beam):
            numbers = [left[each] for each in group]
            sources = [read.one(number) for number in numbers]
            found = self._write(model, sources, most[group[0]], decode)
            for number, source, each in zip(numbers, sources, found, strict=True):
                text = self._text(model, inputs[number], source, each, decode)
                cut = None if each.finished else f"{CUT}no end within {most[group[0]]} tokens (max_tokens, ratio)"
                results[number] = Result(text, text, each.logprob, cut)
        return [each for each in results if each is not None]

    def stream(self, model: Model, raw: Any, decode: DecodeConfig) -> Iterator[str]:
        """A text, piece by piece."""
        decode = piecewise(decode)
        asked, options = self.ask(model, raw, decode), search(decode, self.text, model)
        yield from stream(
            model, asked.prompt, source=asked.source, end=self.text.ends, max_tokens=asked.most, **options
        )

    def ask(self, model: Model, raw: Any, decode: DecodeConfig) -> Ask:
        """From the source, behind <begin>."""
        read = _fit(self.task, model, raw)
        return Ask([self.begin], read.one(0), self.longest(model, read.lengths[0] + 1, decode))

    def example(
        self, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The input, and what is written of it."""
        read = _fit(self.task, model, raw)
        if target is not None:
            return Example(read.collated([0]), [], self.text.encode([target])[0], True)
        most = self.longest(model, read.lengths[0] + 1, decode)
        (found,) = self._write(model, [read.one(0)], most, decode)
        return Example(read.collated([0]), [], found.tokens, found.finished)

    def longest(self, model: Model, source: int, decode: DecodeConfig) -> int:
        """Tokens that what is written of so many may have, by its own length alone, and as the model has positions."""
        most = min(decode.max_tokens, model.room or decode.max_tokens)
        if decode.ratio is None:
            return most
        steps = -(-source // STEP) * STEP
        return min(most, max(math.ceil(decode.ratio * steps) + 10, decode.min_tokens))

    def _write(self, model: Model, sources: list[Any], most: int, decode: DecodeConfig) -> list[Found]:
        options = search(decode, self.text, model)
        return generate(model, sources=sources, begin=self.begin, end=self.text.ends, max_tokens=most, **options)

    def _text(self, model: Model, raw: Any, source: Any, found: Found, decode: DecodeConfig) -> str:
        """What was written; where it is asked for, with words of the source in place of unknown ones."""
        if not decode.replace_unknown or self.text.unknown not in found.tokens:
            return self.text.decode(found.tokens) if found.text is None else found.text
        return known(self.text, model, raw, source, [self.begin], found.tokens)


class Continued:
    """How a text goes on."""

    writes, compared = True, "losses"

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(Streamed, task.target)
        self.text = self.y.text

    def predict(self, model: Model, inputs: Sequence[str], decode: DecodeConfig) -> list[Result]:
        """How each text goes on."""
        read, limit = [self.y.prompt(each) for each in self.text.encode(list(inputs))], model.room
        notes = [self._unfit(each, limit) for each in read]
        results: list[Result | None] = [None if note is None else Result(None, "", 0.0, note) for note in notes]
        rooms = [decode.max_tokens if limit is None else min(decode.max_tokens, limit - len(each) + 1) for each in read]
        left = [number for number, note in enumerate(notes) if note is None]
        for room in sorted({rooms[number] for number in left}):  # the same room: written together
            numbers = [number for number in left if rooms[number] == room]
            for group in (numbers[at : at + PROMPTS] for at in range(0, len(numbers), PROMPTS)):
                found = self._write(model, [read[number] for number in group], within(decode, room))
                for number, each in zip(group, found, strict=True):
                    text = self.text.decode(each.tokens) if each.text is None else each.text
                    results[number] = Result(text, text, each.logprob)
        return [each for each in results if each is not None]

    def stream(self, model: Model, raw: str, decode: DecodeConfig) -> Iterator[str]:
        """How a text goes on, piece by piece."""
        asked = self.ask(model, raw, piecewise(decode))
        decode = within(piecewise(decode), asked.most)
        options = search(decode, self.text, model)
        yield from stream(model, asked.prompt, end=self.text.ends, max_tokens=decode.max_tokens, **options)

    def ask(self, model: Model, raw: str, decode: DecodeConfig) -> Ask:
        """After the text."""
        (tokens,) = self.text.encode([raw])
        tokens, limit = self.y.prompt(tokens), model.room
        note = self._unfit(tokens, limit)
        if note is not None:
            raise _refused(self.task, note)
        most = decode.max_tokens if limit is None else min(decode.max_tokens, limit - len(tokens) + 1)
        return Ask(tokens, None, most)

    def example(
        self, model: Model, raw: str, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The text, and how it goes on where that is asked for."""
        prompt = self.ask(model, raw, decode).prompt
        if target is not None:
            return Example({}, prompt, self.text.encode([target])[0], True)
        if not adds:
            return Example({}, prompt, [], False)
        (found,) = self._write(model, [prompt], decode)
        return Example({}, prompt, found.tokens, found.finished)

    def judge(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Nothing beyond what the loss says."""
        return {}, {}

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """How the first words of the validation text go on."""
        start = rows[0][0][:BEGINNING]
        return {}, [(start, self.predict(model, [start], within(decode, SAMPLE))[0].text)]

    def _write(self, model: Model, prompts: list[list[int]], decode: DecodeConfig) -> list[Found]:
        options = search(decode, self.text, model)
        return generate(model, prompts, max_tokens=decode.max_tokens, end=self.text.ends, **options)

    def _unfit(self, tokens: list[int], limit: int | None) -> str | None:
        return unfit(self.task, self.task.name, len(tokens), limit)


class Questions:
    """A text goes on as any other; what is judged are its answers."""

    writes, compared = True, None

    def __init__(self, *, task: Task) -> None:
        self.task, self.y, self.continued = task, task.target, Continued(task=task)

    def predict(self, model: Model, inputs: Sequence[str], decode: DecodeConfig) -> list[Result]:
        """How each text goes on; after a question, with its answer."""
        return self.continued.predict(model, inputs, decode)

    def stream(self, model: Model, raw: str, decode: DecodeConfig) -> Iterator[str]:
        """How a text goes on, piece by piece."""
        return self.continued.stream(model, raw, decode)

    def ask(self, model: Model, raw: str, decode: DecodeConfig) -> Ask:
        """After the text."""
        return self.continued.ask(model, raw, decode)

    def example(
        self, model: Model, raw: str, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The text, and how it goes on where that is asked for."""
        return self.continued.example(model, raw, decode, target=target, adds=adds)

    def judge(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The share of questions to which the likeliest token is the answer."""
        read = [np.array(each) for each in self.y.encode([row[0] for row in rows])["tokens"]]
        sizes = np.array([len(each) - 1 for each in read])
        way = self.task.rows
        assert isinstance(way, texts)
        size, carry, right, count = way.size(sizes), Carry(model), 0, 0
        with torch.inference_mode(), at_rest(model):
            for picked in way.all(np.concatenate(read), size, max(1, QUESTIONS // way.length)):
                batch = carry.along(self.task.batch(picked).to(str(model.device)))
                wanted = batch.y.values["wanted"].flatten()
                places = (wanted >= 0).nonzero().squeeze(1)
                states = states_of(model, batch).last.flatten(0, 1)[places]
                right += int((model.answer(states[None])[0].argmax(-1) == wanted[places]).sum())
                count += batch.count
        return {"accuracy": right / max(count, 1)}, {}

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """Accuracy."""
        return self.judge(model, rows, decode)[0], []


def judged(
    task: Task, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
) -> tuple[dict[str, float], dict[str, Any]]:
    """The metrics of the results for rows, what belongs beside them, and how many have no answer."""
    results = task.predict(model, [task.inputs(row) for row in rows], decode)
    found, beside = task.target.score(results, [row[-1] for row in rows])
    return found, {**beside, **unanswered(results)}


def glanced(
    task: Task, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
) -> tuple[dict[str, float], list[tuple[Any, str]]]:
    """Cheap metrics of the results for rows, and a few (input, output)."""
    inputs = [task.inputs(row) for row in rows]
    results = task.predict(model, inputs, decode)
    shown = [(raw, result.text) for raw, result in zip(inputs[:SHOWN], results, strict=False)]
    return task.target.quick(results, [row[-1] for row in rows]), shown


def known(text: Any, model: Model, raw: Any, source: Any, prompt: list[int], written: list[int]) -> str:
    """What was written with words of the source in place of the unknown ones."""
    if not isinstance(raw, str):
        raise SaccadeError("replace_unknown puts in words of the source, and this source is no text: leave it out")
    looks = looked_at(model, source.values["tokens"][0].tolist(), prompt, written)
    return replaced(text, written, pieces(text, raw), looks)


def answer_of(task: Task) -> Answer:
    """How the results of a task come about, as its Y names it."""
    made: Answer = spec.read("likeliest" if task.y is None else task.y.answer, ANSWERS, "answer", task=task)
    return made


def _fit(task: Task, model: Model, raw: Any) -> Inputs:
    """One input that was read; refuses one that is empty or over-long."""
    read = Inputs(task, model, [raw])
    if read.notes[0] is not None:
        raise _refused(task, read.notes[0])
    return read


def _refused(task: Task, note: str) -> SaccadeError:
    noun = next(iter(task.fields.values())).noun
    return SaccadeError(f"this {noun} is {note}")


def _groups(lengths: list[int], longest: list[int], budget: int) -> list[list[int]]:
    """Neighbours of a sorted list that may become equally long, as many as the budget takes when padded."""
    groups: list[list[int]] = []
    for number, length in enumerate(lengths):
        full = not groups or (len(groups[-1]) + 1) * length > budget
        if full or longest[groups[-1][0]] != longest[number]:
            groups.append([])
        groups[-1].append(number)
    return groups


ANSWERS: dict[str, Callable[..., Answer]] = {
    "likeliest": Said,
    "values": Said,
    "search": Searched,
    "continuation": Continued,
    "questions": Questions,
}
