"""Drafts: what a row will probably write next, checked by the model in one step (Leviathan et al. 2023).

A draft changes the time, never the result. The model chooses the token of each place as it would without a draft, by
the row's own uniform number for that place; as long as the draft proposed it, the next place is computed already. So a
request writes the same tokens with a draft and without, whether it samples or not. (Rejection sampling, as in the
paper, would accept somewhat more of a sampled draft and write other tokens from the same distribution.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from saccade.decode.choose import Writers
from saccade.decode.request import Request
from saccade.decode.step import Stepper
from saccade.error import SaccadeError


class Draft(Protocol):
    """Proposes tokens for the rows of a batch; hears which rows join and leave, and how many tokens each wrote."""

    length: int  # tokens that it proposes at a time

    def join(self, requests: Sequence[Request]) -> None:
        """More rows, behind the others; their first token is written already."""

    def keep(self, rows: Tensor) -> None:
        """Row b goes on from row rows[b]; the others have ended."""

    def propose(self, requests: Sequence[Request], most: int) -> Tensor | None:
        """The next tokens of each row, (N,up to most); None where there is nothing to propose for any row."""

    def settle(self, written: Tensor) -> None:
        """Each row has written so many tokens (N,) since the last proposal; what was proposed beyond is dropped."""


class Lookup:
    """What followed the last few tokens when they stood there before, in the prompt or in what was written."""

    def __init__(self, length: int = 4, most: int = 3) -> None:
        if length < 1 or most < 1:
            raise SaccadeError(f"a look-up proposes 1 token at least after 1 at least; got {length} after {most}")
        self.length, self.most = length, most
        self._indices: WeakKeyDictionary[Request, NgramIndex] = WeakKeyDictionary()

    def join(self, requests: Sequence[Request]) -> None:
        """Nothing to remember: the requests know what they wrote."""

    def keep(self, rows: Tensor) -> None:
        """Nothing to forget."""

    def settle(self, written: Tensor) -> None:
        """Nothing to take back."""

    def propose(self, requests: Sequence[Request], most: int) -> Tensor | None:
        """What stood behind the latest earlier occurrence of the longest tail that has one."""
        length = min(self.length, most)
        found = [self._continuation(each, length) for each in requests] if length else []
        if not any(found):
            return None
        return torch.tensor([(each + [0] * length)[:length] for each in found])

    def _continuation(self, request: Request, length: int) -> list[int]:
        index = self._updated_index(request)
        for size in range(min(self.most, len(index.tokens) - 1), 0, -1):
            place = index.places.get(tuple(index.tokens[-size:]))
            if place is not None:
                tokens = list(index.tokens[place:])
                for number in range(length):
                    tokens.append(tokens[number])  # what repeats itself goes on repeating
                return tokens[:length]
        return []

    def _updated_index(self, request: Request) -> NgramIndex:
        """What the request has read and written, with what follows every few tokens of it but the last."""
        index = self._indices.setdefault(request, NgramIndex([], {}))
        prompt, written = request.writer.prompt, request.writer.written
        for number in range(len(index.tokens), len(prompt) + len(written)):
            for size in range(1, min(self.most, number) + 1):
                index.places[tuple(index.tokens[number - size : number])] = number
            index.tokens.append(prompt[number] if number < len(prompt) else written[number - len(prompt)])
        return index


class NgramIndex(NamedTuple):
    """The tokens of one request, and where the latest token stands that follows each few of them."""

    tokens: list[int]
    places: dict[tuple[int, ...], int]


class ModelDraft:
    """A smaller model with the same vocabulary, which writes a few tokens ahead with the requests' own choices."""

    def __init__(self, stepper: Stepper, length: int = 4) -> None:
        self.stepper, self.length = stepper, length
        self._state: Any = None
        self._rows = self._ahead = 0

    def join(self, requests: Sequence[Request]) -> None:
        """The prompts are read here too."""
        sources = None if requests[0].source is None else [each.source for each in requests]
        state, _ = self.stepper.start([each.writer.prompt for each in requests], sources)
        if self._rows:
            self.stepper.join(self._state, state)
        else:
            self._state = state
        self._rows += len(requests)

    def keep(self, rows: Tensor) -> None:
        """The same rows leave here."""
        self._rows = rows.shape[0]
        if self._rows:
            self.stepper.reorder(self._state, rows)

    def propose(self, requests: Sequence[Request], most: int) -> Tensor | None:
        """Writes ahead token by token, with the requests' own penalties and random numbers, then takes it back."""
        writers, before = Writers([each.writer for each in requests]), [len(each.tokens) for each in requests]
        tokens = torch.tensor([each.tokens[-1:] for each in requests])
        room = min(self.length, most)
        if self.stepper.limit is not None:
            room = min(room, self.stepper.limit - max(len(each.writer.prompt) + len(each.tokens) for each in requests))
        found = []
        try:
            for _ in range(max(room, 0)):
                chosen, _ = writers.choose(self.stepper.step(tokens, self._state)[:, -1])
                for each, token in zip(requests, chosen.tolist(), strict=True):
                    each.writer.write(token)
                found.append(chosen)
                tokens = chosen.unsqueeze(1)
            self._ahead = len(found) + 1
            self.stepper.step(tokens, self._state)  # so that it has read all that it proposed
        finally:
            for each, length in zip(requests, before, strict=True):
                each.writer.rewind(length)
        return torch.stack(found, 1) if found else None

    def settle(self, written: Tensor) -> None:
        """It has read the token before its proposal and all of it; the last token that was written comes next."""
        self.stepper.forget(self._state, self._ahead - written)
