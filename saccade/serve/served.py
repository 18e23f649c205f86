"""`Served`: a run that is served: what it can do, and the threads that work for it. `InputReader`: what comes in over
the network as the run reads it, within the limits of the server.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, cast
from weakref import WeakValueDictionary

from saccade.decode.constraint import Constraint, matching
from saccade.decode.draft import Lookup
from saccade.decode.scheduler import Scheduler
from saccade.decode.step import row_bytes
from saccade.error import SaccadeError, nearest
from saccade.field.field import StreamTarget
from saccade.field.text.text import Text
from saccade.look.watch import twin
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.serve.engine import Engine
from saccade.serve.limit import Limits
from saccade.serve.refusal import Refusal
from saccade.serve.template import Template, template_of
from saccade.serve.transcript import Transcript, beam_options, drawn_options
from saccade.serve.worker import Worker
from saccade.store.run import Run
from saccade.task.answer import Ask, answerable
from saccade.task.example import Example
from saccade.task.inputs import Inputs
from saccade.task.task import Task

CHARACTERS = 64  # of a token, at most
SPELLED = 1 << 16  # tokens whose text is remembered


class Served:
    """A run under its name. What it can do follows from its task: whether its answer is written by a search, whether
    it has an X, and which vocabularies there are.

    engine: the thread that computes its answers; looking: the one that looks into it; reading: the one that tokenises.
    """

    def __init__(self, name: str, run: Run, limits: Limits) -> None:
        self.name, self.run, self.limits, self.created = name, run, limits, int(time.time())
        self.model, self.task, self.decode = run.model, run.task, run.decode()
        self.inputs = InputReader(self.task, self.model, limits)
        self.engine = _engine(name, run, limits)
        self.looking = Worker(f"look-{name}", limits.look_waiting)
        self.reading = Worker(f"texts-{name}", limits.requests, computes=False)
        self.template, self.template_problem = _template(run, limits.template)
        self.spell = lru_cache(maxsize=SPELLED)(self._spell)
        self._constraint = _constraint(run)
        self._snapshots: WeakValueDictionary[int, Model] = WeakValueDictionary()  # as long as a look holds them

    @property
    def text(self) -> Text:
        """The vocabulary of its texts; only for runs that read or write tokens."""
        assert self.task.text is not None
        return self.task.text

    @property
    def writes(self) -> bool:
        """Whether its answers are written token by token, by a search."""
        return self.task.answer.writes

    @property
    def continues(self) -> bool:
        """Whether it goes on from texts."""
        return self.writes and not self.task.x and self.task.target.text is not None

    @property
    def translates(self) -> bool:
        """Whether it writes something of one text."""
        return self.writes and len(self.task.x) == 1 and next(iter(self.task.x.values())).text is not None

    @property
    def route(self) -> str:
        """The route that is made for it."""
        if self.task.y is None:
            return "/v1/inspect"
        if self.continues:
            return "/v1/completions"
        return "/v1/translate" if self.translates else "/v1/predict"

    @property
    def body_bytes(self) -> int:
        """Of the largest request that its inputs need: more where one of them is no text."""
        texts = all(each.text is not None for each in self.task.x.values())
        return self.limits.body if texts else max(self.limits.body, self.limits.media)

    @cached_property
    def turn_ends(self) -> list[int]:
        """The tokens that end a turn of a chat: the one that the checkpoint's template names, and what ends a text."""
        name = None if self.template is None else self.template.end
        found = None if name is None else self.text.tokenizer.token_to_id(name)
        return [*([] if found is None or found in self.text.ends else [found]), *self.text.ends]

    def weights(self, step: int | None) -> Model:
        """The model to look into, of its own over the run's weights, or that of a snapshot; called by `looking`."""
        if step is None or step == self.run.step:
            return self._twin
        found = self._snapshots.get(step)
        if found is None:
            found = self._snapshots[step] = self.run.at(step).model
        return found

    def decoding(self, options: Mapping[str, Any]) -> DecodeConfig:
        """The run's own decoding options with those that a request changes; None changes nothing."""
        return self.run.search(**{name: value for name, value in options.items() if value is not None})

    def transcript(
        self,
        ask: Ask,
        decode: DecodeConfig,
        *,
        top: int | None = None,
        number: int = 0,
        end: list[int] | None = None,
        start: int = 0,
    ) -> Transcript:
        """What one search is to write. top: how many of the likeliest tokens are given beside each; number: which of
        several samples; end: the tokens that end it, if not those of a text; start: where its text begins.
        """
        most = min(ask.most, self.limits.max_tokens)
        bounds = {"max_tokens": most, "min_tokens": min(decode.min_tokens, most)}
        if decode.beam > 1:
            options = beam_options(decode, self.limits)
        else:
            likeliest = min(top or 0, self.model.config.vocab)
            options = {**drawn_options(decode, number), "constraint": self._constraint, "top": likeliest}
        return Transcript(self.text, ask, {**options, **bounds, "end": self.text.ends if end is None else end}, start)

    def example(self, transcript: Transcript) -> Example:
        """What a search has read and written, to be looked into."""
        x = self.inputs.sources(transcript.ask)
        return Example(x, [] if x else transcript.ask.prompt, transcript.ids, transcript.ended)

    def close(self) -> None:
        """Ends its threads."""
        self.engine.stop()
        self.looking.close()
        self.reading.close()

    @cached_property
    def _twin(self) -> Model:
        return twin(self.model)

    def _spell(self, token: int) -> tuple[str, bytes]:
        """A token as in OpenAI's logprobs: its text and its bytes; a special one by its name."""
        try:
            written = self.text.spell(token)
        except SaccadeError:
            written = (self.text.tokenizer.id_to_token(token) or "").encode()
        name = written or (self.text.tokenizer.id_to_token(token) or f"<{token}>").encode()
        try:
            return name.decode(), name
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{each:02x}" for each in name), name


class InputReader:
    """Reads the inputs of one run, by its fields. A text that the run goes on from is a list of tokens, without a field
    of X.
    """

    def __init__(self, task: Task, model: Model, limits: Limits) -> None:
        self.task, self.model, self.limits = task, model, limits

    def received(self, value: Any, name: str = "input") -> Any:
        """An input as its fields read it from JSON, never from a path; name: the request's field, for the message."""
        if not self.task.x and not isinstance(value, str):
            raise Refusal(400, "this run goes on from texts: give a string", name)
        try:
            return self.task.received(value)
        except SaccadeError as problem:
            raise Refusal(400, str(problem), name) from None

    def encoded(self, raws: Sequence[Any]) -> Inputs:
        """Inputs for a model that answers in one call."""
        return Inputs(self.task, self.model, raws)

    def asks(self, raws: Sequence[Any], decode: DecodeConfig) -> list[Ask]:
        """What a search is asked to write for each input; refuses what exceeds the limits."""
        asks = self.task.answer.asks(self.model, raws, decode)
        return [self._within_limits(raw, ask) for raw, ask in zip(raws, asks, strict=True)]

    def answerable(self, raws: Sequence[Any], decode: DecodeConfig) -> list[Ask]:
        """As `asks`; also refuses an input that is empty or over-long for the model."""
        return [answerable(self.task, each) for each in self.asks(raws, decode)]

    def example(self, raw: Any, decode: DecodeConfig, target: str | None) -> Example:
        """What a model reads of an input, to be looked into; target: what it wrote, if not what it would write."""
        example = self.task.answer.example(self.model, raw, decode, target=target)
        answerable(self.task, self._noted_if_empty(Ask(example.read, None, 0)))
        return example

    def sources(self, ask: Ask) -> Mapping[str, Input]:
        """What a search reads, by the names of X."""
        if len(self.task.x) > 1:
            return cast(Mapping[str, Input], ask.source)
        return dict.fromkeys(self.task.x, ask.source)

    def prompt(self, text: str) -> list[int]:
        """The tokens of a text to go on from, with those that the run puts around it."""
        return self.checked(self._framed(self.tokens(text)))

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text; refuses more than a prompt may have."""
        self._check_characters(text)
        assert self.task.text is not None  # a run that goes on from texts has a vocabulary
        (tokens,) = self.task.text.encode([text])
        return self.checked(tokens)

    def checked(self, tokens: list[int]) -> list[int]:
        """The tokens; refuses none, and too many."""
        if not tokens:
            raise Refusal(400, "a text is empty: there is nothing to go on from")
        self._check_tokens(len(tokens))
        return tokens

    def continuation(self, prompt: list[int], decode: DecodeConfig, *, cut: bool) -> Ask:
        """What a search is asked to write after a text. cut: fewer than max_tokens where the positions end before."""
        most = min(decode.max_tokens, self.limits.max_tokens)
        if cut and self.model.room is not None:
            most = max(min(most, self.model.room - len(prompt) + 1), 1)
        return Ask(prompt, None, most)

    def _framed(self, tokens: list[int]) -> list[int]:
        """Tokens with those that the run puts around a text to go on from (such as <begin>)."""
        return cast(StreamTarget, self.task.target).prompt(tokens)

    def _within_limits(self, raw: Any, ask: Ask) -> Ask:
        """The ask of one input; refuses a text that exceeds the limits."""
        ask = self._noted_if_empty(ask)
        if ask.note is not None:
            return ask
        self._check_characters(raw)
        self._check_tokens(len(ask.prompt))
        for name, x in self.sources(ask).items():
            field = self.task.x[name]
            self._check_tokens(0 if field.text is None else length(x) - field.around)
        return ask

    def _noted_if_empty(self, ask: Ask) -> Ask:
        """Adds a note where a text to go on from is empty, but for the tokens around it."""
        if self.task.x or ask.note is not None or len(ask.prompt) > len(self._framed([])):
            return ask
        return ask._replace(note=f"empty: there is nothing to {self.task.asks}")

    def _check_characters(self, raw: Any) -> None:
        most = CHARACTERS * self.limits.tokens
        if isinstance(raw, str) and len(raw) > most:
            raise Refusal(400, f"a text of {len(raw)} characters is too long: {most} are read")

    def _check_tokens(self, count: int) -> None:
        if count > self.limits.tokens:
            raise Refusal(400, f"a text has {count} tokens; {self.limits.tokens} are read at most")


def find_run(runs: Mapping[str, Served], name: str | None) -> Served:
    """A run by its name; the only one needs none."""
    if name is None and len(runs) == 1:
        return next(iter(runs.values()))
    if name is None:
        raise Refusal(400, f"several runs are served: give model, one of {', '.join(runs)}", "model")
    if name not in runs:
        raise Refusal(404, f"no run is called {name[:80]!r}; {nearest(name[:80], runs)}", "model")
    return runs[name]


def length(x: Input) -> int:
    """The positions of an input of one row."""
    return next(iter(x.values.values())).shape[1]


def _engine(name: str, run: Run, limits: Limits) -> Engine:
    """The engine of a run, with a scheduler if it writes. It writes as many rows at a time as the bytes for keys and
    values allow; prefixes are kept where a prompt is all that a run reads.
    """
    model, task = run.model, run.task
    longest = model.room or limits.tokens + limits.max_tokens
    longest += limits.tokens if model.encoder is not None else 0  # the source's, beside the answer's
    rows = max(1, min(limits.rows, limits.cache // (row_bytes(model, 1) * longest)))
    prefixes = 0 if task.x else limits.prefixes // row_bytes(model, 1)

    def scheduler() -> Scheduler:
        draft = Lookup() if run.decode().draft == "lookup" else None
        return Scheduler(model, text=task.text, rows=rows, prefixes=prefixes, draft=draft)

    return Engine(name, scheduler if task.answer.writes else None, most=rows + limits.waiting)


def _constraint(run: Run) -> Constraint | None:
    """The regular expression of the run's own recipe; requests bring none, since it may take long to compile."""
    expression, text = run.decode().matching, run.task.text
    if expression is None or text is None:
        return None
    return matching(expression, text, vocab=run.model.config.vocab)


def _template(run: Run, seconds: float) -> tuple[Template | None, str | None]:
    """The chat template of a run, or why it has none; a broken one hinders chats alone."""
    try:
        return template_of(run.files, seconds), None
    except SaccadeError as problem:
        return None, str(problem)
