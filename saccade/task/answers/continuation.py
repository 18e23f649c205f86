"""A text without an X: how it continues, token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from saccade.decode.generate import generate, stream
from saccade.decode.sequence import Sequence as Found
from saccade.field.field import StreamTarget
from saccade.field.result import Result
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answer import Ask, Judgement, answerable, with_notes
from saccade.task.decode_options import generate_options, within, without_beam
from saccade.task.example import Example
from saccade.task.inputs import Task, unfit

PROMPTS = 32  # texts that are continued at a time
SAMPLE = 60  # tokens of the samples that are shown while training
BEGINNING = 20  # characters of their prompts


class Continuation:
    """A prompt is continued by a search; two runs are compared by their losses."""

    writes, compared = True, "losses"

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(StreamTarget, task.target)
        self.text = self.y.text

    def predict(self, model: Model, inputs: Sequence[str], decode: DecodeConfig) -> list[Result]:
        """How each text goes on."""
        asks = self.asks(model, inputs, decode)
        results: dict[int, Result] = {}
        left = [number for number, each in enumerate(asks) if each.note is None]
        for most in sorted({asks[number].most for number in left}):  # a search has one bound for all its texts
            numbers = [number for number in left if asks[number].most == most]
            for group in (numbers[at : at + PROMPTS] for at in range(0, len(numbers), PROMPTS)):
                found = self._write(model, [asks[number].prompt for number in group], within(decode, most))
                for number, each in zip(group, found, strict=True):
                    text = self.text.decode(each.tokens) if each.text is None else each.text
                    results[number] = Result(text, text, each.logprob)
        return with_notes([each.note for each in asks], results)

    def stream(self, model: Model, raw: str, decode: DecodeConfig) -> Iterator[str]:
        """How a text goes on, piece by piece."""
        asked = answerable(self.task, *self.asks(model, [raw], without_beam(decode)))
        decode = within(without_beam(decode), asked.most)
        options = generate_options(decode, self.text, model)
        yield from stream(model, asked.prompt, end=self.text.ends, max_tokens=decode.max_tokens, **options)

    def asks(self, model: Model, inputs: Sequence[str], decode: DecodeConfig) -> list[Ask]:
        prompts = [self.y.prompt(each) for each in self.text.encode(list(inputs))]
        return [self._ask(prompt, model.room, decode) for prompt in prompts]

    def example(
        self, model: Model, raw: str, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The text and, with `adds`, its continuation."""
        prompt = answerable(self.task, *self.asks(model, [raw], decode)).prompt
        if target is not None:
            return Example({}, prompt, self.text.encode([target])[0], True)
        if not adds:
            return Example({}, prompt, [], False)
        (found,) = self._write(model, [prompt], decode)
        return Example({}, prompt, found.tokens, found.finished)

    def judge(self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig) -> Judgement:
        """No metrics: the loss says it all."""
        return Judgement({}, {}, [])

    def quick(
        self, model: Model, rows: Sequence[Sequence[Any]], decode: DecodeConfig
    ) -> tuple[dict[str, float], list[tuple[Any, str]]]:
        """No metrics; as a sample, how the first words of the validation text go on."""
        start = rows[0][0][:BEGINNING]
        return {}, [(start, self.predict(model, [start], within(decode, SAMPLE))[0].text)]

    def _write(self, model: Model, prompts: list[list[int]], decode: DecodeConfig) -> list[Found]:
        options = generate_options(decode, self.text, model)
        return generate(model, prompts, max_tokens=decode.max_tokens, end=self.text.ends, **options)

    def _ask(self, prompt: list[int], room: int | None, decode: DecodeConfig) -> Ask:
        most = decode.max_tokens if room is None else min(decode.max_tokens, room - len(prompt) + 1)
        return Ask(prompt, None, most, unfit(self.task, self.task.name, len(prompt), room))
