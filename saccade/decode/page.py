"""`Page`: what has been written so far where each row writes one sequence, and which rows still write."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.decode.sequence import Limits, Sequence, possible


class Page:
    """N sequences on their way. Rows that have ended stay until it pays to leave them behind."""

    def __init__(self, N: int, limits: Limits, device: torch.device) -> None:
        self.limits, self.length = limits, 0
        self._tokens = torch.zeros(N, limits.max_tokens, dtype=torch.long, device=device)
        self._lengths = torch.full((N,), limits.max_tokens, device=device)
        self._logprobs = torch.zeros(N, dtype=torch.float64, device=device)
        self._rows = torch.arange(N, device=device)  # which sequence each row of the model writes
        self._writes = torch.ones(N, dtype=torch.bool, device=device)

    def add(self, tokens: Tensor, logprobs: Tensor) -> None:
        """The next token (M,) of each row, with its log probability; rows that have ended take none."""
        going, writes = self._rows[self._writes], self._writes
        possible(logprobs[writes])
        self._tokens[going, self.length] = tokens[writes]
        self._logprobs[going] += logprobs[writes].double()
        self.length += 1
        ended = writes & self.limits.is_end(tokens)
        self._lengths[self._rows[ended]] = self.length
        self._writes = writes & ~ended

    @property
    def full(self) -> bool:
        """Nobody writes any more."""
        return self.length == self.limits.max_tokens or not self._writes.any()

    @property
    def thin(self) -> bool:
        """A quarter of the rows have ended: now it pays to copy the others, which costs a few steps of them."""
        return int(self._writes.sum()) * 4 <= self._writes.shape[0] * 3

    def leave(self) -> Tensor:
        """Leaves behind the rows that have ended; gives the rows that go on."""
        rows = self._writes.nonzero().squeeze(1)
        self._rows, self._writes = self._rows[rows], self._writes[rows]
        return rows

    def sequences(self) -> list[Sequence]:
        """All that was written, in the order of the prompts."""
        return self.limits.sequences(self._tokens, self._lengths, self._logprobs)
