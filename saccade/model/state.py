"""`State`: what a decoder has seen so far, for the caller to keep, reorder, join and rewind."""

from __future__ import annotations

from copy import copy

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend.mask import padding
from saccade.attend.numbers import bound
from saccade.error import SaccadeError
from saccade.model.block import BlockCache
from saccade.model.stack import Stack


class State:
    """What a decoder has seen so far, row by row; the caller makes it with `model.start` and owns it.

    Several rows may share a source (beams): `_origin` (B,) says which row of the context is each row's own.
    """

    def __init__(self, decoder: Stack, context: Tensor | None, context_padding: padding | None) -> None:
        self.caches = decoder.caches()
        self.context, self.context_padding = context, context_padding
        self._origin = None if context is None else torch.arange(context.shape[0], device=context.device)

    @property
    def length(self) -> int:
        """How many positions the longest row holds."""
        return self.caches[0].own.length

    @property
    def start(self) -> int | Tensor:
        """The position that comes next: one for all rows, or (B,)."""
        return self.caches[0].own.start

    def reorder(self, rows: Tensor) -> None:
        """Row b goes on from what row rows[b] has seen; rows may be repeated (beams) or left out (finished ones)."""
        for cache in self.caches:
            cache.own.reorder(rows)
        if self.context is None or self._origin is None:
            return
        origin = self._origin[rows]
        if torch.equal(origin, self._origin):
            return  # each row still looks at its own source
        sources, each = _sources_of_rows(origin)
        self._origin = torch.arange(sources.shape[0], device=origin.device).repeat_interleave(each)
        self._select_sources(sources)

    def _select_sources(self, sources: Tensor) -> None:
        """Keeps these sources alone, in this order."""
        assert self.context is not None
        if torch.equal(sources, torch.arange(self.context.shape[0], device=sources.device)):
            return
        self.context = self.context[sources]
        for cache in self.caches:
            cache.context.reorder(sources)
        lengths = None if self.context_padding is None else self.context_padding.lengths
        if self.context_padding is not None and isinstance(lengths, Tensor) and lengths.shape[0] > 1:
            self.context_padding = padding(lengths[sources.to(lengths.device)], self.context_padding.side)

    def _separate_sources(self) -> None:
        """Every row gets a source of its own."""
        if self._origin is not None:
            self._select_sources(self._origin)
            self._origin = torch.arange(self._origin.shape[0], device=self._origin.device)

    def take(self, rows: Tensor) -> State:
        """A state of its own with these rows."""
        other = copy(self)
        sources = rows if self._origin is None else self._origin[rows]
        other.caches = [BlockCache(cache.own.take(rows), cache.context.take(sources)) for cache in self.caches]
        if self.context is not None:
            lengths = self._source_lengths()[sources]
            other.context, other._origin = self.context[sources], torch.arange(rows.shape[0], device=rows.device)
            other.context_padding = padding(lengths) if self.context_padding is not None else None
        return other

    def join(self, other: State) -> None:
        """The rows of `other` follow behind these."""
        self._separate_sources()
        other._separate_sources()
        if self.context is not None and other.context is not None:
            lengths = torch.cat((self._source_lengths(), other._source_lengths()))
            longest = max(self.context.shape[1], other.context.shape[1])
            contexts = [F.pad(each, (0, 0, 0, longest - each.shape[1])) for each in (self.context, other.context)]
            self.context = torch.cat(contexts)
            self.context_padding = padding(lengths) if int(lengths.min()) < longest else None
            self._origin = torch.arange(lengths.shape[0], device=lengths.device)
        for mine, theirs in zip(self.caches, other.caches, strict=True):
            mine.own.join(theirs.own)
            mine.context.join(theirs.context, level=True)

    def rewind(self, length: int | Tensor) -> None:
        """Forgets all but the first `length` positions: one for all rows, or (B,)."""
        for cache in self.caches:
            cache.own.check(length)  # refuses before any of them has changed
        for cache in self.caches:
            cache.own.rewind(length)

    def _source_lengths(self) -> Tensor:
        """The lengths of the sources, (B,)."""
        assert self.context is not None
        B, S = self.context.shape[:2]
        if self.context_padding is None:
            return torch.full((B,), S, device=self.context.device)
        if self.context_padding.side == "left":
            raise SaccadeError("rows with a source padded on the left cannot be taken or joined: pad it on the right")
        return bound("padding", "lengths", self.context_padding.lengths).to(self.context.device).expand(B)


def _sources_of_rows(origin: Tensor) -> tuple[Tensor, int]:
    """The sources of rows (N,) and how many rows each has, where they stand side by side; else a source a row."""
    sources = origin.unique_consecutive()
    each = origin.shape[0] // max(sources.shape[0], 1)
    if torch.equal(sources.repeat_interleave(each), origin) and sources.unique().shape[0] == sources.shape[0]:
        return sources, each
    return origin, 1
