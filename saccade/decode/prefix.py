"""`Prefixes`: beginnings that were computed before, for prompts that share them (a chat's history, one instruction)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.decode.step import Stepper
from saccade.error import SaccadeError

SHARED = 16  # tokens in common from which a copy costs less than reading them again


class Prefixes:
    """States of ended requests, `budget` tokens of them in all; the least recently used go first."""

    def __init__(self, stepper: Stepper, budget: int) -> None:
        self.stepper, self.budget = stepper, budget
        self._kept: list[tuple[list[int], Any]] = []  # tokens and the state of one row that has read them

    def keep(self, tokens: list[int], state: Any, row: int) -> None:
        """What a row has read, as the latest."""
        if not SHARED < len(tokens) <= self.budget:
            return
        covered = [each for each in self._kept if _common(each[0], tokens) == len(each[0])]
        self._kept = [each for each in self._kept if each not in covered]
        self._kept.append((tokens, self.stepper.take(state, torch.tensor([row]))))
        while sum(len(each) for each, _ in self._kept) > self.budget:
            del self._kept[0]

    def start(self, prompt: list[int], running: Sequence[list[int]], state: Any) -> tuple[Any, Tensor] | None:
        """As `stepper.start` of one prompt, from the longest beginning that was kept or that a running row has read."""
        kept = [_common(tokens, prompt[:-1]) for tokens, _ in self._kept]
        live = [_common(tokens, prompt[:-1]) for tokens in running]
        shared = max([*kept, *live], default=0)
        if shared < SHARED:
            return None
        if shared in kept:
            number = kept.index(shared)
            self._kept.append(self._kept.pop(number))
            tokens, source = self._kept[-1]
            mine = self.stepper.take(source, torch.tensor([0]))
        else:
            number = live.index(shared)
            tokens, mine = running[number], self.stepper.take(state, torch.tensor([number]))
        if shared < len(tokens):
            try:
                self.stepper.forget(mine, torch.tensor([len(tokens) - shared]))
            except SaccadeError:  # a window has already dropped keys that would be needed
                return None
        return mine, torch.cat(list(self.stepper.parts(torch.tensor([prompt[shared:]]), mine)))


def _common(a: list[int], b: list[int]) -> int:
    """How many tokens two lists begin with alike."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
