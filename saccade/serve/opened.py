"""`Opened`: a run that is served, with its engine; and how requests become asks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakValueDictionary

from saccade.data.field import Text
from saccade.decode.constraint import matching
from saccade.decode.draft import Lookup
from saccade.decode.quantise import parameters_of
from saccade.decode.scheduler import Scheduler
from saccade.error import SaccadeError
from saccade.look.watch import twin
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.serve.desk import Desk
from saccade.serve.engine import Engine
from saccade.serve.limit import Limits
from saccade.serve.order import Ask
from saccade.serve.refusal import Refusal
from saccade.serve.template import Template, template_of
from saccade.store.run import Run
from saccade.task.answer import Answer
from saccade.task.batch import unfit
from saccade.task.classify import Classify
from saccade.task.search import BEAM
from saccade.task.task import LABELS, Task, text_of
from saccade.task.translate import Translate
from saccade.task.write import Write

VERBS = {"translate": "translate", "write": "go on from", "classify": "classify"}
SAMPLE = 200  # characters of an input that is offered as an example
CHOICE = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")


class Opened:
    """A run under its name. `kind` is what it can do: translate, write, classify or, where nobody told what its classes
    are called, read: then it can be looked into alone.
    """

    def __init__(self, name: str, run: Run, limits: Limits) -> None:
        self.name, self.run, self.limits, self.created = name, run, limits, int(time.time())
        self.model, self.decode = run.model, run.decode()
        self.task, self.kind = _task(run)
        self.text: Text = text_of(run.files) if self.task is None else self.task.text
        self.labels = self.task.labels if isinstance(self.task, Classify) else None
        self._snapshots: WeakValueDictionary[int, Model] = WeakValueDictionary()  # as long as a look holds them
        self._constraint = self._matching()
        writes = self.kind in ("translate", "write")
        self.engine = Engine(name, self._scheduler if writes else None, most=self._rows() + limits.waiting)
        self.desk = Desk(f"look-{name}", limits.look_waiting)
        self.clerk = Desk(f"texts-{name}", limits.requests, computes=False)
        self.template, self.unreadable = _template(run, limits.template)
        self.spell = lru_cache(maxsize=1 << 16)(self._spell)

    @cached_property
    def turn(self) -> list[int]:
        """The tokens that end a turn of a chat: the one that the checkpoint's template names, and what ends a text."""
        name = None if self.template is None else self.template.end
        found = None if name is None else self.text.tokenizer.token_to_id(name)
        return [*([] if found is None or found in self.text.ends else [found]), *self.text.ends]

    def weights(self, step: int | None) -> Model:
        """The model to look into, of its own over the run's weights, or that of a snapshot; called at the desk."""
        if step is None or step == self.run.step:
            return self._twin
        found = self._snapshots.get(step)
        if found is None:
            found = self._snapshots[step] = self.run.at(step).model
        return found

    def close(self) -> None:
        """Ends its threads."""
        self.engine.stop()
        self.desk.close()
        self.clerk.close()

    def decoding(self, options: Mapping[str, Any]) -> DecodeConfig:
        """The run's own way with what a request changes; None changes nothing."""
        return self.run.search(**{name: value for name, value in options.items() if value is not None})

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, no more than a prompt may have."""
        if len(text) > 64 * self.limits.tokens:
            raise Refusal(400, f"a text of {len(text)} characters is too long: {64 * self.limits.tokens} are read")
        (tokens,) = self.text.encode([text])
        return self.checked(tokens)

    def prompt(self, text: str) -> list[int]:
        """The tokens of a text that is gone on from, with what stands around it."""
        tokens = self.encode(text)
        return self.checked(self.task.shown(tokens)) if isinstance(self.task, Write) else tokens

    def checked(self, tokens: list[int]) -> list[int]:
        """Tokens that are not too many, and not none."""
        if not tokens:
            raise Refusal(400, "a text is empty: there is nothing to go on from")
        if len(tokens) > self.limits.tokens:
            raise Refusal(400, f"a text has {len(tokens)} tokens; {self.limits.tokens} are read at most")
        return tokens

    def read(self, text: str) -> list[int]:
        """What the model is shown of a text."""
        tokens = self.encode(text)
        if self.task is None:  # its tokenizer knows what stands around a text
            return self.checked(self.text.framed(tokens))
        return self.task.read(text, self.run.limit) if tokens else tokens

    def unfit(self, text: str) -> str | None:
        """Why a text cannot be answered, if it cannot: it is empty, or longer than the model was made for."""
        (tokens,) = self.text.encode([text])
        no = unfit(tokens, self.run.limit, VERBS.get(self.kind, "answer"))
        return None if no is None else no.note

    def ask(
        self,
        prompt: list[int],
        decode: DecodeConfig,
        *,
        cut: bool,
        top: int = 0,
        number: int = 0,
        end: list[int] | None = None,
    ) -> Ask:
        """A text that goes on. cut: where positions do not suffice for max_tokens, there are fewer."""
        room = self.model.room
        most = min(decode.max_tokens, self.limits.max_tokens)
        if cut and room is not None:
            most = max(min(most, room - len(prompt) + 1), 1)
        end = self.text.ends if end is None else end
        return Ask(prompt, None, self._options(decode, most, end, top, number))

    def ask_source(self, text: str, decode: DecodeConfig, *, top: int = 0) -> Ask:
        """A text that is translated."""
        task = self.task
        if not isinstance(task, Translate):
            raise Refusal(409, f"{self.name} does not translate: it is no encoder-decoder", "model")
        source = self.read(text)
        most = min(task.longest(self.model, len(source), decode), self.limits.max_tokens)
        return Ask([task.begin], source, self._options(decode, most, self.text.ends, top))

    def describe(self) -> dict[str, Any]:
        """The run as one of OpenAI's models; `saccade` says what else there is to know."""
        config = self.model.config
        about = {
            "task": self.kind,
            "step": self.run.step,
            "family": self.run.family,
            "parameters": parameters_of(self.model),
            "quantised": self.run.quantised,
            "encoder": config.encoder,
            "decoder": config.decoder,
            "width": config.width,
            "heads": config.heads,
            "vocab": self.text.vocab,
            "room": self.model.room,
            "snapshots": self.run.snapshots,
            "samples": [each[:SAMPLE] for each in self.run.samples],
            "decode": self.decode.model_dump(exclude_none=True),
        }
        return {"id": self.name, "object": "model", "created": self.created, "owned_by": "saccade", "saccade": about}

    def _options(self, decode: DecodeConfig, most: int, end: list[int], top: int, number: int = 0) -> dict[str, Any]:
        """What a scheduler is told: of a beam search, or of tokens that are chosen one by one."""
        bounds = {"max_tokens": most, "min_tokens": min(decode.min_tokens, most), "end": end}
        if decode.beam > 1:
            return self._searched(decode) | bounds
        return self._drawn(decode, number) | bounds | {"top": min(top, self.model.config.vocab)}

    def _drawn(self, decode: DecodeConfig, number: int) -> dict[str, Any]:
        """The options of `Scheduler.submit`; sample number i draws with seed + i."""
        seed = None if decode.seed is None else decode.seed + number
        values = {name: getattr(decode, name) for name in CHOICE}
        return values | {"seed": seed, "stop": decode.stop, "constraint": self._constraint}

    def _searched(self, decode: DecodeConfig) -> dict[str, Any]:
        """The options of `Scheduler.submit_beam`."""
        if decode.beam > self.limits.beam:
            raise Refusal(400, f"beam = {decode.beam} is more than the {self.limits.beam} offered here", "beam")
        usual = DecodeConfig()  # type: ignore[call-arg]
        wrong = [name for name in (*CHOICE, "stop") if getattr(decode, name) != getattr(usual, name)]
        if wrong or decode.matching is not None:
            name = (wrong or ["matching"])[0]
            raise Refusal(400, f"a beam search does not know {name}: leave it out, or give beam = 1", name)
        return {name: getattr(decode, name) for name in BEAM}

    def _scheduler(self) -> Scheduler:
        draft = Lookup() if self.decode.draft == "lookup" else None
        kept = 0 if self.kind == "translate" else self.limits.prefixes // self._bytes()
        return Scheduler(self.model, text=self.text, rows=self._rows(), prefixes=kept, draft=draft)

    def _rows(self) -> int:
        """As many sequences at a time as the memory for their keys and values takes."""
        length = self.model.room or self.limits.tokens + self.limits.max_tokens
        length += self.limits.tokens if self.model.encoder is not None else 0  # the source's, beside the answer's
        return max(1, min(self.limits.rows, self.limits.cache // (self._bytes() * length)))

    def _bytes(self) -> int:
        """Of the keys and values of one token."""
        config = self.model.config
        width = (config.head_width or config.width // config.heads) * (config.kv_heads or config.heads)
        size = next((each.element_size() for each in self.model.parameters()), 4)  # what is int8 computes in float32
        return 2 * max(config.decoder, 1) * width * size

    @cached_property
    def _twin(self) -> Model:
        return twin(self.model)

    def _matching(self) -> Any:
        """The regular expression of the run's own recipe; requests bring none, since it may take long to compile."""
        if self.decode.matching is None:
            return None
        return matching(self.decode.matching, self.text, vocab=self.model.config.vocab)

    def _spell(self, token: int) -> tuple[str, bytes]:
        """A token as OpenAI's logprobs tell it: its text and its bytes; a special one by its name."""
        try:
            written = self.text.spell(token)
        except SaccadeError:
            written = (self.text.tokenizer.id_to_token(token) or "").encode()
        name = written or (self.text.tokenizer.id_to_token(token) or f"<{token}>").encode()
        try:
            return name.decode(), name
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{each:02x}" for each in name), name


def _task(run: Run) -> tuple[Task | None, str]:
    """What a run is for, and what that is called."""
    if run.model.decoder is None and LABELS not in run.files:
        return None, "read"
    task = run.task
    return task, "write" if isinstance(task, Answer) else type(task).__name__.lower()


def _template(run: Run, seconds: float) -> tuple[Template | None, str | None]:
    """The chat template of a run, or why it has none; a broken one hinders chats alone."""
    try:
        return template_of(run.files, seconds), None
    except SaccadeError as problem:
        return None, str(problem)
