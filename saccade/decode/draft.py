"""Drafts: what a row will probably write next, for the model to check in one step (Leviathan et al. 2023).

A draft changes the time, never the result. The model's own choice for each place is made as ever, by the row's own
uniform number for that place; as long as it is what the draft said, the next place has been computed already. So a
request writes the same tokens with a draft and without, whether it samples or not. (Rejection sampling, as in the
paper, would accept somewhat more of a sampled draft and write other tokens from the same distribution.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from saccade.decode.choose import Writers
from saccade.decode.request import Request
from saccade.decode.step import Stepper
from saccade.error import SaccadeError


class Draft(Protocol):
    """Whoever proposes tokens for the rows of a batch. It is told which rows there are and what became of them."""

    length: int  # tokens that it proposes at a time

    def join(self, requests: Sequence[Request]) -> None:
        """More rows, behind the others; their first token is written already."""

    def keep(self, rows: Tensor) -> None:
        """Row b goes on from row rows[b]; the others have ended."""

    def propose(self, requests: Sequence[Request]) -> Tensor | None:
        """The next tokens of each row, (N,length); None where there is nothing to propose for anybody."""

    def forget(self, written: Tensor) -> None:
        """Each row has written so many tokens (N,) since the last proposal; what was proposed beyond is void."""


class Lookup:
    """What followed the last few tokens when they stood there before, in the prompt or in what was written."""

    def __init__(self, length: int = 4, most: int = 3) -> None:
        if length < 1 or most < 1:
            raise SaccadeError(f"a look-up proposes 1 token at least after 1 at least; got {length} after {most}")
        self.length, self.most = length, most

    def join(self, requests: Sequence[Request]) -> None:
        """Nothing to remember: the requests know what they wrote."""

    def keep(self, rows: Tensor) -> None:
        """Nothing to forget."""

    def forget(self, written: Tensor) -> None:
        """Nothing to forget."""

    def propose(self, requests: Sequence[Request]) -> Tensor | None:
        """What stood behind the latest earlier occurrence of the longest tail that has one."""
        found = [self._after(each.writer.prompt + each.writer.written) for each in requests]
        if not any(found):
            return None
        return torch.tensor([(each + [0] * self.length)[: self.length] for each in found])

    def _after(self, tokens: list[int]) -> list[int]:
        for size in range(min(self.most, len(tokens) - 1), 0, -1):
            tail = tokens[-size:]
            for start in range(len(tokens) - size - 1, -1, -1):
                if tokens[start : start + size] == tail:
                    known = list(tokens)
                    for place in range(start + size, start + size + self.length):
                        known.append(known[place])  # what repeats itself goes on repeating
                    return known[len(tokens) :]
        return []


class ModelDraft:
    """A smaller model with the same vocabulary, which writes a few tokens ahead with the requests' own choices."""

    def __init__(self, stepper: Stepper, length: int = 4) -> None:
        self.stepper, self.length = stepper, length
        self._state: Any = None
        self._rows = 0

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

    def propose(self, requests: Sequence[Request]) -> Tensor | None:
        """Token by token; what is written down for that is taken back at once."""
        writers, before = Writers([each.writer for each in requests]), [len(each.tokens) for each in requests]
        tokens = torch.tensor([each.tokens[-1:] for each in requests])
        found = []
        for _ in range(self.length):
            logits = self.stepper.step(tokens, self._state)[:, -1]
            chosen, _ = writers.choose(logits)
            for each, token in zip(requests, chosen.tolist(), strict=True):
                each.writer.write(token)
            found.append(chosen)
            tokens = chosen.unsqueeze(1)
        self.stepper.step(tokens, self._state)  # so that it has read all that it proposed
        for each, length in zip(requests, before, strict=True):
            each.writer.rewind(length)
        return torch.stack(found, 1)

    def forget(self, written: Tensor) -> None:
        """It has read the token before its proposal and all of it; the last token that was written comes next."""
        self.stepper.forget(self._state, self.length + 1 - written)
