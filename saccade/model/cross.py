"""What a decoder's block knows of a source: seven kinds, one class each, all behind the same door.

attention  looks at the source behind what mixes                       Luong et al. 2015, Vaswani et al. 2017
embedded   looks with its embedding too, and finds embeddings          Gehring et al. 2017
feeding    looks before each recurrent step, which takes what it finds Bahdanau et al. 2015
lowest     the lowest layer does, for the steps of all layers          Wu et al. 2016
fixed      one vector of the source stands where looking would         Sutskever et al. 2014
into       that vector goes into each recurrent step                   Cho et al. 2014
beside     the state at the same place of the source                   Kalchbrenner et al. 2016

A kind has no weights. It says what modules the block has (`modules`), how they mix (`mix`) and, where one of them
stands behind what mixes, how it looks (`look`). `shares` names what all layers of a stack share beside their states.
`alone` is a block that has no source.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask, padding
from saccade.model.context import Beside, Fixed
from saccade.model.feeding import Feeding
from saccade.model.mixer import one_way
from saccade.model.norm import HALF
from saccade.model.parts import Parts
from saccade.model.recurrent import Recurrent

Modules = dict[str, nn.Module | None]


class Told(NamedTuple):
    """What a block is told beside its input; `forward` of `Block` says what each is."""

    x: Tensor
    context: Tensor | None = None
    mask: Mask | None = None
    context_mask: Mask | None = None
    own: Cache | None = None
    kept: Cache | None = None
    past: Tensor | None = None
    seen: Tensor | None = None
    segments: tuple[Tensor, Tensor] | None = None
    places: Tensor | None = None
    found: list[Tensor] | None = None
    embedded: Tensor | None = None


class Kind(Protocol):
    """The door: what a block knows of a source."""

    shares: ClassVar[str | None]

    def modules(self, parts: Parts) -> Modules:
        """What mixes, by its name, and `cross`, what looks, or None; in the order of their weights."""

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        """The positions of y (B,T,C) meet."""


class Looking(Kind, Protocol):
    """A kind whose block has `cross`."""

    def look(self, block: Any, y: Tensor, told: Told) -> Tensor:
        """What y (B,T,C) finds in the source."""


class alone:
    """No source."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": None}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return meet(block, y, told)


class attention:
    """c_i = sum_j a_ij h_j, with the state of the decoder as the query."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": parts.looking()}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return meet(block, y, told)

    def look(self, block: Any, y: Tensor, told: Told) -> Tensor:
        assert told.context is not None
        return across(block.cross, y, told.context, None, told)


class embedded:
    """The same with the embedding in the query; the context holds values beside its states, (B,S,2C)."""

    shares: ClassVar[str | None] = "embedded"

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": parts.looking()}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return meet(block, y, told)

    def look(self, block: Any, y: Tensor, told: Told) -> Tensor:
        assert told.context is not None
        assert told.embedded is not None
        states, values = told.context.chunk(2, 2)
        return across(block.cross, (y + told.embedded) * HALF, states, values, told)


class feeding:
    """A recurrent step that looks first."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: _fed(parts), "cross": None}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        states, _ = _feed(block.mixer, y, told)
        return states


class lowest:
    """The same, and it tells the layers above what it found."""

    shares: ClassVar[str | None] = "found"

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: _fed(parts), "cross": None}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        assert told.found is not None
        states, found = _feed(block.mixer, y, told)
        told.found.append(found)
        return states


class above:
    """A layer above the lowest: what that one found stands beside its inputs."""

    shares: ClassVar[str | None] = "found"

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: _doubled(parts), "cross": None}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        assert told.found
        return block.mixer(torch.cat((y, told.found[0]), 2), mask=told.mask, cache=told.own)


class fixed:
    """The source as one vector, in place of what looking would find."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": _one(parts)}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return meet(block, y, told)

    def look(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return block.cross(y, told.context, mask=told.context_mask)


class into:
    """The source as one vector, beside the input of each recurrent step."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        mixer = _doubled(parts)
        return {"into": _one(parts), parts.mixes: mixer, "cross": None}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        one = block.into(y, told.context, mask=told.context_mask)
        return block.mixer(torch.cat((y, one), 2), mask=told.mask, cache=told.own)


class beside:
    """What stands at the same place of the source."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        mixer = parts.mixing()
        return {parts.mixes: mixer, "cross": Beside(parts.config.width, parts.source.width)}

    def mix(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return meet(block, y, told)

    def look(self, block: Any, y: Tensor, told: Told) -> Tensor:
        return block.cross(y, told.context, mask=told.context_mask, start=_begin(told.own, told.mask, y))


def as_kind(name: str, number: int) -> Kind:
    """The kind of layer `number`."""
    return above() if name == "lowest" and number else KINDS[name]()


def meet(block: Any, y: Tensor, told: Told) -> Tensor:
    """What mixes where the source has no part in it: attention, or another mixer."""
    if block.mixes != "attention":
        return block.mixer(y, mask=told.mask, cache=told.own)
    if told.past is None and told.seen is None:
        return block.attention(y, mask=told.mask, cache=told.own, segments=told.segments, places=told.places)
    here = told.x if told.seen is None else told.seen
    source = here if told.past is None else torch.cat((told.past, here), 1)
    source = block.before(source)  # as y was
    start = source.shape[1] - here.shape[1]
    return block.attention(y, source, mask=told.mask, start=start, segments=told.segments)


def across(cross: Attention, x: Tensor, context: Tensor, values: Tensor | None, told: Told) -> Tensor:
    """Cross-attention; rows that share a context (beams) stand side by side and ask it as one."""
    given = {"values": values, "mask": told.context_mask, "cache": told.kept}
    if context.shape[0] == x.shape[0] or not context.shape[0]:
        return cross(x, context, **given)
    together = x.reshape(context.shape[0], -1, x.shape[-1])
    output = cross(together, context, **given).reshape(x.shape)
    for watcher in cross.watchers:
        watcher.calls[-1] = watcher.calls[-1].apart(x.shape[0] // context.shape[0])
    return output


def _fed(parts: Parts) -> Feeding:
    return Feeding(one_way(parts.mixer), parts.config.width, parts.looking())


def _feed(mixer: nn.Module, y: Tensor, told: Told) -> tuple[Tensor, Tensor]:
    """The states, and what was found before each, (B,T,C) each."""
    masks = {"mask": told.mask, "context_mask": told.context_mask}
    states, found = mixer(y, told.context, **masks, cache=told.own, kept=told.kept)
    return states, found


def _doubled(parts: Parts) -> Recurrent:
    """A recurrent layer that takes something beside its input."""
    return Recurrent(one_way(parts.mixer), parts.config.width, inputs=2 * parts.config.width)


def _one(parts: Parts) -> Fixed:
    return Fixed(parts.config.width, parts.source.width, mean=parts.source.knows == "mean")


def _begin(cache: Cache | None, mask: Mask | None, x: Tensor) -> int | Tensor:
    """The position of x[:, 0]; what mixes has read x already. Padding on the left stands before position 0."""
    if cache is not None:
        return cache.start - x.shape[1]
    if not isinstance(mask, padding) or mask.side == "right":
        return 0
    return (mask.held(x.shape[1], x.device) - x.shape[1]).expand(x.shape[0])


KINDS: dict[str, type[Kind]] = {
    "attention": attention,
    "embedded": embedded,
    "feeding": feeding,
    "lowest": lowest,
    "fixed": fixed,
    "into": into,
    "beside": beside,
}
WITHOUT = ("fixed", "into", "beside")  # where no attention looks at the source
