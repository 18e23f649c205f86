"""Continuous batching: requests of different lengths join and leave a running batch (Yu et al. 2022).

    scheduler = Scheduler(model, text=text)
    request = scheduler.submit([5, 3], max_tokens=20, temperature=0.8, seed=1)
    while scheduler.busy:
        for each in scheduler.step():
            print(each.piece, end="")

It has no threads of its own: the caller of `step` does the work. What a request writes does not depend on the other
requests. A beam search is a request too, and its beams are a batch of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from saccade.decode.beam import Search, beam_options
from saccade.decode.choose import Allowed, Forbidden, Writers, forbid, top
from saccade.decode.constraint import Constraint
from saccade.decode.draft import Draft, ModelDraft
from saccade.decode.prefix import Prefixes
from saccade.decode.request import BeamRequest, Request
from saccade.decode.sequence import End, ends_of, whole
from saccade.decode.step import Stepper, as_lists, as_stepper, at_work, fits, limited
from saccade.decode.stream import Stream
from saccade.decode.writer import Choice, Writer
from saccade.error import SaccadeError, nearest
from saccade.field.text.text import Text
from saccade.model.model import Model

TOGETHER = 8192  # tokens of prompts, padding counted, that are read in one step; one prompt is always read


class Scheduler:
    """rows: how many sequences are written at a time at most; others wait. prefixes: how many tokens of ended requests
    are kept, whose beginnings new prompts may share. draft: what proposes tokens ahead (`saccade.decode.draft`).
    """

    def __init__(
        self,
        model: Model | Stepper,
        *,
        text: Text | None = None,
        rows: int = 64,
        prefixes: int = 0,
        draft: Draft | None = None,
    ) -> None:
        whole("rows", rows, 1)
        self.stepper, self.text, self.rows, self.draft = as_stepper(model), text, rows, draft
        self.prefixes = Prefixes(self.stepper, prefixes) if prefixes else None
        self._in_vocabulary = self._text_vocabulary()
        if isinstance(draft, ModelDraft) and draft.stepper.vocab != self.stepper.vocab:
            raise SaccadeError(
                f"the draft knows {draft.stepper.vocab} tokens and the model {self.stepper.vocab}: "
                "give a draft with the same vocabulary"
            )
        if draft is not None:
            draft.keep(torch.zeros(0, dtype=torch.long))  # it may hold rows of an earlier scheduler
        self._waiting: list[Request | BeamRequest] = []
        self._running: list[Request] = []  # row b of the state writes running[b]
        self._writers = Writers()
        self._searches: dict[BeamRequest, Search] = {}
        self._state: Any = None

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._waiting or self._running or self._searches)

    def submit(
        self,
        prompt: Iterable[int],
        *,
        source: Any = None,
        max_tokens: int,
        min_tokens: int = 0,
        end: End = None,
        stop: Sequence[str] = (),
        constraint: Constraint | None = None,
        top: int = 0,
        **choice: Any,
    ) -> Request:
        """A new request, which the next step takes up if there is room. choice: the options of `Choice`.

        stop: strings that end it, which takes the scheduler's `text`. top: how many of the likeliest tokens of each
        step are kept. constraint: which tokens may come (`saccade.decode.constraint`).
        """
        unknown = [name for name in choice if name not in Choice.__dataclass_fields__]
        if unknown:
            raise SaccadeError(f"there is no option {unknown[0]!r}; {nearest(unknown[0], Choice.__dataclass_fields__)}")
        end = self._end_of(constraint, end)
        limits = limited(self.stepper, max_tokens, min_tokens, end)
        read, source = self._checked_prompt(prompt, max_tokens), self.stepper.check(source)
        if isinstance(self.draft, ModelDraft):
            fits(self.draft.stepper, read, max_tokens)
        if stop and self.text is None:
            raise SaccadeError("stop strings need a text to be found in: give the scheduler its text")
        whole("top", top, 0)
        if top > self.stepper.vocab:
            raise SaccadeError(f"top = {top} is more than the {self.stepper.vocab} tokens there are")
        writer = Writer(Choice(**choice), read, self.stepper.vocab, source)
        stream = None if self.text is None else Stream(self.text, stop)
        request = Request(writer, limits, source=source, stream=stream, constraint=constraint, top=top)
        self._waiting.append(request)
        return request

    def submit_beam(
        self,
        prompt: Iterable[int],
        *,
        source: Any = None,
        max_tokens: int,
        min_tokens: int = 0,
        end: End = None,
        beam: int,
        n: int = 1,
        length_penalty: float = 1.0,
        length_reward: float = 0.0,
        groups: int = 1,
        diversity: float = 0.0,
    ) -> BeamRequest:
        """A beam search as a request; its rows come beside the others."""
        limits = limited(self.stepper, max_tokens, min_tokens, end)
        options = beam_options(beam, n, length_penalty, length_reward, groups, diversity)
        request = BeamRequest(self._checked_prompt(prompt, max_tokens), limits, self.stepper.check(source), options)
        self._waiting.append(request)
        return request

    def cancel(self, request: Request | BeamRequest) -> None:
        """Ends a request; what it has written stays. Nothing happens to one that has ended."""
        if request.reason is not None:
            return
        if isinstance(request, BeamRequest):
            request.reason = "cancelled"
            self._searches.pop(request, None)
        else:
            request.piece = ""
            request.close("cancelled")
        if request in self._waiting:
            self._waiting.remove(request)
        self._remove_ended()

    def step(self) -> list[Request | BeamRequest]:
        """One token more for every request that goes on, some more with a draft; gives those that went on or ended."""
        with self._at_work():
            return self._step()

    def run(self) -> None:
        """Steps until nothing is left to do."""
        with self._at_work():
            while self.busy:
                self._step()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with at_work(self.stepper), at_work(self.draft.stepper if isinstance(self.draft, ModelDraft) else None):
            yield

    def _step(self) -> list[Request | BeamRequest]:
        return [*self._advance(), *self._search(), *self._admit()]

    def _advance(self) -> list[Request]:
        """One step of the requests that run."""
        requests = self._running
        if not requests:
            return []
        last = torch.tensor([each.tokens[-1:] for each in requests])
        guess = self._guess(requests)
        fed = last if guess is None else torch.cat((last, guess), 1)
        written = self._write(requests, self._writers, self.stepper.step(fed, self._state), guess)
        if guess is not None:
            self.stepper.forget(self._state, fed.shape[1] - written)
        if self.draft is not None:
            self.draft.settle(written)
        self._remove_ended()
        return requests

    def _guess(self, requests: list[Request]) -> Tensor | None:
        """What the draft proposes (N,K), no longer than there are positions for; None: nothing."""
        if self.draft is None:
            return None
        longest = max(len(each.writer.prompt) + len(each.tokens) for each in requests)
        most = self.draft.length if self.stepper.limit is None else max(self.stepper.limit - longest, 0)
        try:
            return self.draft.propose(requests, most)
        except SaccadeError:
            self.draft = None  # the draft is broken, not the requests: they go on without it
            return None

    def _search(self) -> list[BeamRequest]:
        """The beam searches go on; each alone, so that none waits for another's end."""
        went = list(self._searches)
        for request in went:
            search = self._searches[request]
            try:
                if not search.step():
                    (request.found,) = search.sequences()
                    request.reason = "end" if request.found[0].finished else "length"
            except SaccadeError as problem:
                request.fail(problem)
            if request.reason is not None:
                del self._searches[request]
        return went

    def _admit(self) -> list[Request | BeamRequest]:
        """Admits waiting requests in order while there is room: reads their prompts and writes their first tokens."""
        fresh: list[Request] = []
        failed: list[BeamRequest] = []
        longest = 0
        for request in list(self._waiting):
            used = len(self._running) + len(fresh) + self._beams
            if isinstance(request, BeamRequest):
                if used and used + request.options["beam"] > self.rows:
                    break
                self._waiting.remove(request)
                self._begin_search(request)
                if request.reason is not None:
                    failed.append(request)
            else:
                longest = max(longest, len(request.writer.prompt))
                if used >= self.rows or (fresh and longest * (len(fresh) + 1) > TOGETHER):
                    break
                fresh.append(request)
        self._waiting = [each for each in self._waiting if each not in fresh]
        resumed = [each for each in fresh if self._start_from_prefix(each)]
        others = [each for each in fresh if each not in resumed]
        if others:
            state, logits = self._start([each.writer.prompt for each in others], [each.source for each in others])
            self._join(others, state, logits)
        self._remove_ended()
        return [*failed, *fresh]

    def _begin_search(self, request: BeamRequest) -> None:
        """Starts a beam search beside the others; one that cannot begin fails alone."""
        state, logits = self._start([request.prompt], [request.source])
        try:
            self._searches[request] = Search(self.stepper, state, logits, request.limits, **request.options)
        except SaccadeError as problem:
            request.fail(problem)

    @property
    def _beams(self) -> int:
        """The rows of all beam searches."""
        return sum(each.options["beam"] for each in self._searches)

    def _start_from_prefix(self, request: Request) -> bool:
        """Starts a request from a state that has read the beginning of its prompt; False where there is none."""
        if self.prefixes is None or request.source is not None:
            return False
        found = self.prefixes.start(request.writer.prompt, [each.held for each in self._running], self._state)
        if found is not None:
            self._join([request], *found)
        return found is not None

    def _start(self, prompts: list[list[int]], sources: list[Any]) -> tuple[Any, Tensor]:
        given = [each for each in sources if each is not None]
        if given and len(given) < len(sources):
            raise SaccadeError("some of the requests bring a source and some do not: give each one, or none")
        return self.stepper.start(prompts, given or None)

    def _join(self, requests: list[Request], state: Any, logits: Tensor) -> None:
        """Puts new rows behind those that run, and writes their first tokens."""
        if self._running:
            self.stepper.join(self._state, state)
        else:
            self._state = state
        self._running = [*self._running, *requests]
        for each in requests:
            self._writers.add(each.writer)
        self._write(requests, Writers([each.writer for each in requests]), logits.unsqueeze(1), None)
        if self.draft is not None:
            self.draft.join(requests)

    def _remove_ended(self) -> None:
        """Removes the rows whose requests have ended: the last rows take their places and the others stay where they
        are, so that few states move.
        """
        ended = [row for row, each in enumerate(self._running) if each.reason is not None]
        if not ended:
            return
        if self.prefixes is not None:
            for row in ended:
                if self._running[row].source is None:
                    self.prefixes.keep(self._running[row].held, self._state, row)
        count = len(self._running) - len(ended)
        last = [row for row in range(count, len(self._running)) if row not in ended]
        rows = [row if row not in ended else last.pop() for row in range(count)]
        self._running = [self._running[row] for row in rows]
        self._writers.keep(rows)
        kept = torch.tensor(rows, dtype=torch.long)
        if self.draft is not None:
            self.draft.keep(kept)
        if rows:
            self.stepper.reorder(self._state, kept)
        else:
            self._state = None

    def _write(self, requests: list[Request], writers: Writers, logits: Tensor, guess: Tensor | None) -> Tensor:
        """Writes a token for each row by logits (N,T,V), and more while the guess was right; gives how many (N,)."""
        for each in requests:
            each.piece = ""
        written, going = [0] * len(requests), [True] * len(requests)
        for place in range(logits.shape[1]):
            guessed = None if guess is None or place == guess.shape[1] else guess[:, place].tolist()
            chosen = self._choose(requests, writers, logits[:, place], going)
            for row, (request, (token, logprob)) in enumerate(zip(requests, chosen, strict=True)):
                if not going[row]:
                    continue
                if request.reason is None:
                    try:
                        request.add(token, logprob)
                    except SaccadeError as problem:
                        request.fail(problem)
                written[row] += 1
                going[row] = request.reason is None and guessed is not None and guessed[row] == token
            if not any(going):
                break
        return torch.tensor(written)

    def _choose(
        self, requests: list[Request], writers: Writers, logits: Tensor, going: list[bool]
    ) -> list[tuple[int, float]]:
        """The next token of each request and its log probability; for rows that do not go on, any token."""
        live = [each for each, goes in zip(requests, going, strict=True) if goes]
        allowed: list[Tensor | None] | None = None
        forbidden: list[tuple[int, ...]] | None = None
        if any(len(each.tokens) < each.limits.min_tokens for each in live):
            forbidden = [each.limits.forbidden(len(each.tokens)) for each in requests]
        if self._in_vocabulary is not None or any(each.constraint is not None for each in live):
            allowed = [self._allowed(each) if goes else None for each, goes in zip(requests, going, strict=True)]
        try:
            tokens, logprobs = writers.choose(logits, allowed=allowed, forbidden=forbidden)
        except SaccadeError as problem:
            logits = self._fail_broken_rows(requests, logits, allowed or (), forbidden or (), problem)
            tokens, logprobs = writers.choose(logits, allowed=allowed, forbidden=forbidden)
        most = max((each.top for each in live), default=0)
        if most:
            best, values = (each.tolist() for each in top(logits, most))
            for request, goes, names, scores in zip(requests, going, best, values, strict=True):
                if goes and request.top and request.reason is None:
                    request.likeliest.append(list(zip(names, scores, strict=True))[: request.top])
        return list(zip(tokens.tolist(), logprobs.tolist(), strict=True))

    def _allowed(self, request: Request) -> Tensor | None:
        try:
            mask = request.allowed()
        except SaccadeError as problem:
            request.fail(problem)
            mask = None
        return self._in_vocabulary if mask is None else mask

    def _fail_broken_rows(
        self, requests: list[Request], logits: Tensor, allowed: Allowed, forbidden: Forbidden, problem: SaccadeError
    ) -> Tensor:
        """Fails the requests of rows that hold NaN or have no token left to choose. Gives the logits with zeros in
        these rows, so that the others can choose.
        """
        left = logits.clone()
        forbid(left, allowed, forbidden)
        broken = ~(left.amax(-1) - logits.float().logsumexp(-1)).isfinite()
        if not broken.any():
            raise problem
        for row in broken.nonzero().squeeze(1).tolist():
            requests[row].fail(problem)
        return logits.masked_fill(broken.unsqueeze(1), 0.0)

    def _text_vocabulary(self) -> Tensor | None:
        """Which tokens the text knows (V,), where the model has more (its table is padded); None: all."""
        if self.text is None or self.text.vocab >= self.stepper.vocab:
            return None
        return torch.arange(self.stepper.vocab) < self.text.vocab

    def _end_of(self, constraint: Constraint | None, end: End) -> End:
        """The tokens that end a request; a constraint may have an end of its own."""
        if constraint is None:
            return end
        if constraint.allowed(constraint.start()).shape != (self.stepper.vocab,):
            raise SaccadeError(
                f"this constraint is for another vocabulary than the model's {self.stepper.vocab} tokens"
            )
        own = getattr(constraint, "end", None)
        if own is not None and end is not None and own not in ends_of(end):
            raise SaccadeError(f"the constraint ends with the token {own}, the request with {end}: leave end out")
        return end if own is None else own

    def _checked_prompt(self, prompt: Iterable[int], max_tokens: int) -> list[int]:
        (read,) = as_lists([prompt], "prompt", self.stepper.vocab, self.stepper.limit)
        fits(self.stepper, read, max_tokens)
        return read
