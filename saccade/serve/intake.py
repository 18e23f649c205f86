"""`Intake`: what comes in over the network as a run reads it, within the limits of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.model.input import Input
from saccade.recipe import DecodeConfig
from saccade.serve.limit import Limits
from saccade.serve.refusal import Refusal
from saccade.store.run import Run
from saccade.task.answer import Ask
from saccade.task.example import Example
from saccade.task.inputs import Inputs, unfit

CHARACTERS = 64  # of a token, at most


class Intake:
    """The inputs of one run. What belongs to a kind of input is asked of its field; a text that is gone on from has
    tokens alone.
    """

    def __init__(self, run: Run, limits: Limits) -> None:
        self.task, self.model, self.limits = run.task, run.model, limits

    def received(self, value: Any, name: str = "input") -> Any:
        """An input as its fields read it from what JSON tells, never from a path; name: where the request has it."""
        if not self.task.x and not isinstance(value, str):
            raise Refusal(400, "this run goes on from texts: give a string", name)
        try:
            return self.task.received(value)
        except SaccadeError as problem:
            raise Refusal(400, str(problem), name) from None

    def asked(self, raw: Any, decode: DecodeConfig) -> Ask:
        """What a search is asked to write for an input; refuses one that is empty, over-long or more than is read."""
        ask = self.task.answer.ask(self.model, raw, decode)
        self._begun(ask.prompt)
        self._bounded(raw)
        self._few(len(ask.prompt))
        for name, x in self._x(ask).items():
            field = self.task.x[name]
            self._few(0 if field.text is None else length(x) - field.around)
        return ask

    def unfit(self, raw: Any) -> str | None:
        """Why an input gets no answer, if it gets none: it is empty, or longer than the model was made for."""
        if self.task.x:
            return Inputs(self.task, self.model, [raw]).notes[0]
        (tokens,) = self._text.encode([raw])
        return unfit(self.task, self.task.name, len(tokens), self.task.limit(self.model))

    def shown(self, raw: Any, decode: DecodeConfig, target: str | None) -> Example:
        """What a model is shown of an input, to be looked into; target: what it is said to have written."""
        example = self.task.answer.example(self.model, raw, decode, target=target)
        self._begun(example.read)
        return example

    def example(self, ask: Ask, written: list[int], ended: bool) -> Example:
        """What a search has read and written, to be looked into."""
        return Example(self._x(ask), [] if self.task.x else ask.prompt, written, ended)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, no more than a prompt may have."""
        self._bounded(text)
        (tokens,) = self._text.encode([text])
        return self.checked(tokens)

    def prompt(self, text: str) -> list[int]:
        """The tokens of a text that is gone on from, with what stands around it."""
        return self.checked(self._around(self.encode(text)))

    def checked(self, tokens: list[int]) -> list[int]:
        """Tokens that are not too many, and not none."""
        if not tokens:
            raise Refusal(400, "a text is empty: there is nothing to go on from")
        self._few(len(tokens))
        return tokens

    def onward(self, prompt: list[int], decode: DecodeConfig, *, cut: bool) -> Ask:
        """A text that goes on. cut: where positions do not suffice for max_tokens, there are fewer."""
        most = min(decode.max_tokens, self.limits.max_tokens)
        if cut and self.model.room is not None:
            most = max(min(most, self.model.room - len(prompt) + 1), 1)
        return Ask(prompt, None, most)

    @property
    def _text(self) -> Text:
        assert self.task.text is not None  # who goes on from a text has a vocabulary
        return self.task.text

    def _around(self, tokens: list[int]) -> list[int]:
        """Tokens with what stands around a text that is gone on from."""
        stream: Any = self.task.target
        prompt: list[int] = stream.prompt(tokens)
        return prompt

    def _x(self, ask: Ask) -> Mapping[str, Input]:
        """What a search reads, by the names of X."""
        if not self.task.x:
            return {}
        found: Mapping[str, Input] = ask.source if len(self.task.x) > 1 else {next(iter(self.task.x)): ask.source}
        return found

    def _begun(self, prompt: list[int]) -> None:
        """Refuses a text to go on from that is nothing but what stands around it."""
        if not self.task.x and len(prompt) <= len(self._around([])):
            raise SaccadeError(f"this text is empty: there is nothing to {self.task.asks}")

    def _bounded(self, raw: Any) -> None:
        most = CHARACTERS * self.limits.tokens
        if isinstance(raw, str) and len(raw) > most:
            raise Refusal(400, f"a text of {len(raw)} characters is too long: {most} are read")

    def _few(self, count: int) -> None:
        if count > self.limits.tokens:
            raise Refusal(400, f"a text has {count} tokens; {self.limits.tokens} are read at most")


def length(x: Input) -> int:
    """The positions of an input of one row."""
    return next(iter(x.values.values())).shape[1]
