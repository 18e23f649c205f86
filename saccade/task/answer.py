"""`Answer`: how a model's output becomes a `Result`. Y names its answer by a spec; the answers are in `answers/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from saccade.error import SaccadeError
from saccade.field.result import Result, unanswered
from saccade.field.tally import intervals
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.example import Example
from saccade.task.inputs import Inputs, Task

SHOWN = 3  # examples that are shown while training


class Ask(NamedTuple):
    """What a search is asked to write: after a prompt, from a source where there is one, so many tokens at most.

    note: why this input gets no answer (it is empty or over-long); then nothing is written for it.
    """

    prompt: list[int]
    source: Any
    most: int
    note: str | None = None


class Judgement(NamedTuple):
    """metrics by name; beside: what belongs to them (intervals, signatures, scores of each class); results: one for
    each row, none where only losses are measured.
    """

    metrics: dict[str, float]
    beside: dict[str, Any]
    results: list[Result]


class Answer(Protocol):
    """How results are made, and how they are scored."""

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

    def asks(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Ask]:
        """What a search is asked to write for each input, in their order. The inputs are encoded once, here."""

    def example(
        self, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """What a model reads of an input and writes, to be looked into. target: a text to take instead of what the
        model would write; adds: without an X, whether the model continues the input.
        """

    def judge(self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig) -> Judgement:
        """The metrics of the results for rows, what belongs beside them, and the results."""

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """Cheap metrics and a few (input, output), for a validation while training."""


class FieldScored:
    """An answer that is compared with the wanted output, by the metrics of its field."""

    task: Task
    compared = "answers"

    def judge(self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig) -> Judgement:
        """The field's metrics that mean something for these rows, with their intervals, what else belongs to them, and
        how many inputs have no answer.
        """
        results = self.task.predict(model, [self.task.inputs(row) for row in rows], decode)
        raws = [row[-1] for row in rows]
        target = self.task.target
        every = target.tallies(results, raws)
        tallies = {name: every[name] for name in target.meaningful(raws)}
        beside = {**target.beside(results, raws), "interval": intervals(tallies), **unanswered(results)}
        return Judgement({name: each.value for name, each in tallies.items()}, beside, results)

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """The field's cheap metrics, and a few (input, output)."""
        inputs = [self.task.inputs(row) for row in rows]
        results = self.task.predict(model, inputs, decode)
        samples = [(raw, result.text) for raw, result in zip(inputs[:SHOWN], results, strict=False)]
        return self.task.target.quick(results, [row[-1] for row in rows]), samples


def with_notes(notes: Sequence[str | None], found: Mapping[int, Result]) -> list[Result]:
    """A result for each input, by its number: what was found, or the note that says why it gets none."""
    return [found[number] if note is None else Result(None, "", 0.0, note) for number, note in enumerate(notes)]


def answerable(task: Task, ask: Ask) -> Ask:
    """The ask; refuses one whose input gets a note instead of an answer."""
    if ask.note is not None:
        raise refusal(task, ask.note)
    return ask


def read_one(task: Task, model: Model, raw: Any) -> Inputs:
    """One input as its fields read it; refuses one that is empty or over-long."""
    read = Inputs(task, model, [raw])
    if read.notes[0] is not None:
        raise refusal(task, read.notes[0])
    return read


def refusal(task: Task, note: str) -> SaccadeError:
    """A note as an error, for callers that have one input and nowhere to put the note."""
    noun = next(iter(task.fields.values())).noun
    return SaccadeError(f"this {noun} is {note}")
