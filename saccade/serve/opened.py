"""`Opened`: a run that is served: what it can do, and the threads that work for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakValueDictionary

from saccade.decode.draft import Lookup
from saccade.decode.scheduler import Scheduler
from saccade.error import SaccadeError
from saccade.field.text.text import Text
from saccade.look.watch import twin
from saccade.model.model import Model
from saccade.recipe import DecodeConfig
from saccade.serve.desk import Desk
from saccade.serve.engine import Engine
from saccade.serve.intake import Intake
from saccade.serve.job import Jobs
from saccade.serve.limit import Limits
from saccade.serve.template import Template, template_of
from saccade.store.run import Run


class Opened:
    """A run under its name. What it can do is asked of its task: whether its answer is written by a search, whether it
    has an X, and which vocabularies there are.
    """

    def __init__(self, name: str, run: Run, limits: Limits) -> None:
        self.name, self.run, self.limits, self.created = name, run, limits, int(time.time())
        self.model, self.task, self.decode = run.model, run.task, run.decode()
        self.intake, self.jobs = Intake(run, limits), Jobs(run, self.task.text, limits)
        self._snapshots: WeakValueDictionary[int, Model] = WeakValueDictionary()  # as long as a look holds them
        self.engine = Engine(name, self._scheduler if self.writes else None, most=self._rows() + limits.waiting)
        self.desk = Desk(f"look-{name}", limits.look_waiting)
        self.clerk = Desk(f"texts-{name}", limits.requests, computes=False)
        self.template, self.unreadable = _template(run, limits.template)
        self.spell = lru_cache(maxsize=1 << 16)(self._spell)

    @property
    def text(self) -> Text:
        """The vocabulary of its texts; asked for only where there is one, by what reads or writes tokens."""
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
    def body(self) -> int:
        """Bytes of the largest request that its inputs need: more where one of them is no text."""
        texts = all(each.text is not None for each in self.task.x.values())
        return self.limits.body if texts else max(self.limits.body, self.limits.media)

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

    def _scheduler(self) -> Scheduler:
        draft = Lookup() if self.decode.draft == "lookup" else None
        kept = 0 if self.task.x else self.limits.prefixes // self._bytes()
        return Scheduler(self.model, text=self.task.text, rows=self._rows(), prefixes=kept, draft=draft)

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


def _template(run: Run, seconds: float) -> tuple[Template | None, str | None]:
    """The chat template of a run, or why it has none; a broken one hinders chats alone."""
    try:
        return template_of(run.files, seconds), None
    except SaccadeError as problem:
        return None, str(problem)
