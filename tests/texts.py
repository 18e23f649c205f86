"""Tokens as a model takes them, padded on either side."""

from __future__ import annotations

from torch import Tensor

import saccade


def texts(tokens: Tensor, lengths=None, side: str = "right", segments: Tensor | None = None) -> saccade.Input:
    """An input of tokens (B,T); lengths: of each row, where they differ."""
    values = {"tokens": tokens} | ({} if segments is None else {"segments": segments})
    return saccade.Input(values, lengths, side=side)
