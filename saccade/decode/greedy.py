"""Greedy search: the likeliest token at every step, for all prompts at once."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from saccade.decode.page import Page
from saccade.decode.sequence import Limits, Sequence
from saccade.decode.step import Stepper


def greedy(stepper: Stepper, state: Any, logits: Tensor, limits: Limits) -> list[Sequence]:
    """One sequence a row, from what `stepper.start` gave; a row ends where the end is the likeliest token."""
    page = Page(logits.shape[0], limits, logits.device)
    while True:
        logprobs, tokens = limits.logprobs(logits, page.length).max(-1)
        page.add(tokens, logprobs)
        if page.full:
            return page.sequences()
        if page.thin:
            rows = page.leave()
            stepper.reorder(state, rows)
            tokens = tokens[rows]
        logits = stepper.step(tokens.unsqueeze(1), state)[:, -1]
