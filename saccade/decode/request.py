"""`Request`: one order to a scheduler, with what has been written for it so far; `BeamRequest`: a beam search."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.decode.constraint import Constraint
from saccade.decode.sequence import LengthLimits, Sequence
from saccade.decode.stream import Stream
from saccade.decode.writer import Writer
from saccade.error import SaccadeError


class Request:
    """One sequence while it is written. `reason` says why it ended: "end", "stop", "length", "cancelled", or
    "stuck" (no token is allowed any more), "failed" (`problem` says why); None: it goes on.
    """

    def __init__(
        self,
        writer: Writer,
        limits: LengthLimits,
        *,
        source: Any = None,
        stream: Stream | None = None,
        constraint: Constraint | None = None,
        top: int = 0,
    ) -> None:
        self.writer, self.limits, self.source, self.stream, self.top = writer, limits, source, stream, top
        self.constraint, self.state = constraint, None if constraint is None else constraint.start()
        self.reason: str | None = None
        self.problem: SaccadeError | None = None
        self.piece = ""  # the text that became certain with the last step; the scheduler empties it before the next
        self.logprobs: list[float] = []
        self.likeliest: list[list[tuple[int, float]]] = []

    @property
    def tokens(self) -> list[int]:
        """What was written, without the end."""
        return self.writer.written

    @property
    def held(self) -> list[int]:
        """The tokens that the model's row has read: all but the one that was chosen last, even if it is the end. Empty
        for a request that failed, so that its state is not kept as a prefix.
        """
        if self.reason == "failed":
            return []
        known = self.writer.prompt + self.writer.written
        return known if self.reason in ("end", "stuck") else known[:-1]

    @property
    def text(self) -> str:
        """What was written, as far as it is certain; all of it once the request has ended."""
        return "" if self.stream is None else self.stream.text

    def allowed(self) -> Tensor | None:
        """Which tokens may come next (V,), None: all. Where none may, the request ends here ("stuck")."""
        if self.constraint is None:
            return None
        mask = self.constraint.allowed(self.state)
        banned = self.limits.forbidden(len(self.tokens))
        if int(mask.sum()) == sum(bool(mask[token]) for token in banned):
            self.close("stuck")
            return None
        return mask

    def add(self, token: int, logprob: float) -> None:
        """Appends the next token; ends the request where the token, a stop string or a limit does."""
        self.logprobs.append(logprob)
        if token in self.limits.ends:
            self.close("end")
            return
        self.writer.write(token)
        if self.constraint is not None:
            self.state = self.constraint.advance(self.state, token)
        if self.stream is not None:
            self.piece += self.stream.push(token)
        if self.stream is not None and self.stream.stopped:
            self.reason = "stop"
        elif len(self.logprobs) == self.limits.max_tokens:
            self.close("length")

    def fail(self, problem: SaccadeError) -> None:
        """Ends with an error of its own; the other requests go on."""
        self.reason, self.problem = "failed", problem

    def close(self, reason: str) -> None:
        """Ends the request, and gives out the text that was held back."""
        self.reason = reason
        if self.stream is not None:
            self.piece += self.stream.finish()
            if self.stream.stopped and reason == "length":
                self.reason = "stop"  # the stop string was complete only in what was held back

    def sequence(self) -> Sequence:
        """What was written, as one result."""
        finished = self.reason in ("end", "stop")
        text = None if self.stream is None else self.text
        return Sequence(list(self.tokens), sum(self.logprobs), finished, list(self.logprobs), self.likeliest, text)


class BeamRequest:
    """One beam search while it runs; afterwards `found` holds its hypotheses, best first."""

    def __init__(self, prompt: list[int], limits: LengthLimits, source: Any, options: dict[str, Any]) -> None:
        self.prompt, self.limits, self.source, self.options = prompt, limits, source, options
        self.reason: str | None = None
        self.problem: SaccadeError | None = None
        self.found: list[Sequence] = []

    def fail(self, problem: SaccadeError) -> None:
        """Ends with an error of its own; the other requests go on."""
        self.reason, self.problem = "failed", problem

    def sequence(self) -> Sequence:
        if self.problem is not None:
            raise self.problem
        if not self.found:
            raise SaccadeError(f"this search has found nothing: {self.reason or 'it goes on'}")
        return self.found[0]
