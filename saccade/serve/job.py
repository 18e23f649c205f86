"""`Job`: one sequence for a scheduler to write, and `Jobs`: how a run's searches become jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from saccade.decode.constraint import matching
from saccade.decode.request import BeamRequest, Request
from saccade.decode.scheduler import Scheduler
from saccade.field.text.text import Text
from saccade.recipe import DecodeConfig
from saccade.serve.limit import Limits
from saccade.serve.refusal import Refusal
from saccade.store.run import Run
from saccade.task.answer import Ask
from saccade.task.search import BEAM

CHOICE = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")


@dataclass(frozen=True)
class Job:
    """A prompt, perhaps a source, and the options of `Scheduler.submit`; with a beam, those of `submit_beam`."""

    prompt: list[int]
    source: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def submit(self, scheduler: Scheduler) -> Request | BeamRequest:
        """Hands it to a scheduler, which may refuse it."""
        submit = scheduler.submit_beam if "beam" in self.options else scheduler.submit
        return submit(self.prompt, source=self.source, **self.options)


class Jobs:
    """The jobs of one run: what it is asked to write, within the limits of the server."""

    def __init__(self, run: Run, text: Text | None, limits: Limits) -> None:
        self.limits, self.vocab, self.ends = limits, run.model.config.vocab, [] if text is None else text.ends
        self._constraint = _matching(run, text)

    def make(
        self, ask: Ask, decode: DecodeConfig, *, top: int = 0, number: int = 0, end: list[int] | None = None
    ) -> Job:
        """The job of one search. top: likeliest tokens that are told beside each; number: which of several drawn ones;
        end: what ends it, if not what ends a text.
        """
        most = min(ask.most, self.limits.max_tokens)
        end = self.ends if end is None else end
        bounds = {"max_tokens": most, "min_tokens": min(decode.min_tokens, most), "end": end}
        if decode.beam > 1:
            return Job(ask.prompt, ask.source, self._searched(decode) | bounds)
        return Job(ask.prompt, ask.source, self._drawn(decode, number) | bounds | {"top": min(top, self.vocab)})

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


def _matching(run: Run, text: Text | None) -> Any:
    """The regular expression of the run's own recipe; requests bring none, since it may take long to compile."""
    expression = run.decode().matching
    if expression is None or text is None:
        return None
    return matching(expression, text, vocab=run.model.config.vocab)
