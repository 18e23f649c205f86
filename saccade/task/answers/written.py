"""A text after an X, written token by token: greedily, by a beam, or drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from saccade.decode.generate import generate, stream
from saccade.decode.sequence import Sequence as Found
from saccade.decode.unknown import looked_at, pieces, replaced
from saccade.error import SaccadeError
from saccade.field.field import WrittenTarget
from saccade.field.result import CUT, Result
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.task.answer import Ask, FieldScored, answerable, read_one, with_notes
from saccade.task.decode_options import generate_options, without_beam
from saccade.task.example import Example
from saccade.task.inputs import Inputs, Task

STEP = 8  # lengths of sources are rounded up to it, so that similar ones have one bound and are written together
TOKENS = 4096  # that are searched at a time, beams counted


class WrittenAnswer(FieldScored):
    """A text that a decoder writes after an X, between <begin> and <end>."""

    writes = True

    def __init__(self, *, task: Task) -> None:
        self.task, self.y = task, cast(WrittenTarget, task.target)
        self.text, self.begin = self.y.text, self.y.begin

    def predict(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Result]:
        """A text for each input, in their order."""
        read = Inputs(self.task, model, inputs)
        results: dict[int, Result] = {}
        left = sorted(read.fit, key=lambda n: read.lengths[n])
        most = [self.longest(model, read.lengths[number] + 1, decode) for number in left]
        for group in _equally_long([read.lengths[number] for number in left], most, TOKENS // decode.beam):
            numbers = [left[each] for each in group]
            sources = [read.one(number) for number in numbers]
            found = self._write(model, sources, most[group[0]], decode)
            for number, source, each in zip(numbers, sources, found, strict=True):
                text = self._text(model, inputs[number], source, each, decode)
                cut = None if each.finished else f"{CUT}no end within {most[group[0]]} tokens (max_tokens, ratio)"
                results[number] = Result(text, text, each.logprob, cut)
        return with_notes(read.notes, results)

    def stream(self, model: Model, raw: Any, decode: DecodeConfig) -> Iterator[str]:
        """A text, piece by piece."""
        decode = without_beam(decode)
        asked = answerable(self.task, *self.asks(model, [raw], decode))
        options = generate_options(decode, self.text, model)
        yield from stream(
            model, asked.prompt, source=asked.source, end=self.text.ends, max_tokens=asked.most, **options
        )

    def asks(self, model: Model, inputs: Sequence[Any], decode: DecodeConfig) -> list[Ask]:
        read = Inputs(self.task, model, inputs)
        asks = [Ask([self.begin], None, 0, note) for note in read.notes]
        for number in read.fit:
            most = self.longest(model, read.lengths[number] + 1, decode)
            asks[number] = Ask([self.begin], read.one(number), most)
        return asks

    def example(
        self, model: Model, raw: Any, decode: DecodeConfig, *, target: str | None = None, adds: bool = False
    ) -> Example:
        """The input, and what the model writes of it."""
        read = read_one(self.task, model, raw)
        if target is not None:
            return Example(read.collated([0]), [], self.text.encode([target])[0], True)
        most = self.longest(model, read.lengths[0] + 1, decode)
        (found,) = self._write(model, [read.one(0)], most, decode)
        return Example(read.collated([0]), [], found.tokens, found.finished)

    def longest(self, model: Model, source: int, decode: DecodeConfig) -> int:
        """The most tokens to write of a source with so many: by max_tokens, ratio and the model's positions. It depends
        on this source alone, so that a result is the same in any batch.
        """
        most = min(decode.max_tokens, model.room or decode.max_tokens)
        if decode.ratio is None:
            return most
        steps = -(-source // STEP) * STEP
        return min(most, max(math.ceil(decode.ratio * steps) + 10, decode.min_tokens))

    def _write(self, model: Model, sources: list[Any], most: int, decode: DecodeConfig) -> list[Found]:
        options = generate_options(decode, self.text, model)
        return generate(model, sources=sources, begin=self.begin, end=self.text.ends, max_tokens=most, **options)

    def _text(self, model: Model, raw: Any, source: Any, found: Found, decode: DecodeConfig) -> str:
        """What was written; with `replace_unknown`, words of the source stand in place of unknown ones."""
        if not decode.replace_unknown or self.text.unknown not in found.tokens:
            return self.text.decode(found.tokens) if found.text is None else found.text
        return with_source_words(self.text, model, raw, source, [self.begin], found.tokens)


def with_source_words(text: Any, model: Model, raw: Any, source: Any, prompt: list[int], written: list[int]) -> str:
    """What was written, with words of the source in place of the unknown ones."""
    if not isinstance(raw, str):
        raise SaccadeError("replace_unknown puts in words of the source, and this source is no text: leave it out")
    looks = looked_at(model, source.values["tokens"][0].tolist(), prompt, written)
    return replaced(text, written, pieces(text, raw), looks)


def _equally_long(lengths: list[int], longest: list[int], budget: int) -> list[list[int]]:
    """Groups of neighbours of a sorted list that have the same bound (`longest`), as many as the budget takes when
    padded.
    """
    groups: list[list[int]] = []
    for number, length in enumerate(lengths):
        full = not groups or (len(groups[-1]) + 1) * length > budget
        if full or longest[groups[-1][0]] != longest[number]:
            groups.append([])
        groups[-1].append(number)
    return groups
