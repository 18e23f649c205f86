"""How a decoder's block uses the source: seven kinds, one class each, with the same interface.

attention  looks at the source after self-attention or the mixer       Luong et al. 2015, Vaswani et al. 2017
embedded   the same, with embeddings added to queries and values       Gehring et al. 2017
feeding    looks before each recurrent step, which takes what it finds Bahdanau et al. 2015
lowest     the lowest layer does, for the steps of all layers          Wu et al. 2016
fixed      one vector of the source in place of cross-attention        Sutskever et al. 2014
into       that vector goes into each recurrent step                   Cho et al. 2014
beside     the state at the same place of the source                   Kalchbrenner et al. 2016

A kind has no weights. It says which modules the block has (`modules`), how positions meet (`mix`) and, where the block
has a module `cross`, how that looks at the source (`look`). `shares` names what the layers of a stack pass on beside
their states. `alone` is a block without a source.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.edges import Edges
from saccade.attend.layer import Attention
from saccade.attend.mask import Mask, padding
from saccade.model.cells import Sides
from saccade.model.feeding import Feeding
from saccade.model.mixer import one_way
from saccade.model.norm import HALF
from saccade.model.parts import Parts
from saccade.model.recurrent import Recurrent
from saccade.model.source_summary import SourceBeside, SourceVector

Modules = dict[str, nn.Module | None]


class BlockInput(NamedTuple):
    """What a block is given; `forward` of `Block` says what each is. own and kept: the two of its `BlockCache`."""

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
    grid: Sides | None = None
    edges: Edges | None = None
    bias: Tensor | None = None
    context_bias: Tensor | None = None


class Kind(Protocol):
    """How a block uses the source."""

    shares: ClassVar[str | None]

    def modules(self, parts: Parts) -> Modules:
        """The modules by name, among them `cross` (or None); in the order in which they are registered."""

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        """The positions of y (B,T,C) meet."""


class Looking(Kind, Protocol):
    """A kind whose block has `cross`."""

    def look(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        """What y (B,T,C) finds in the source."""


class alone:
    """A block without a source."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": None}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        return meet(block, y, inputs)


class attention:
    """c_i = sum_j a_ij h_j, with the state of the decoder as the query."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": parts.looking()}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        return meet(block, y, inputs)

    def look(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        assert inputs.context is not None
        return across(block.cross, y, inputs.context, None, inputs)


class embedded:
    """The same with the embedding in the query; the context holds values beside its states, (B,S,2C)."""

    shares: ClassVar[str | None] = "embedded"

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": parts.looking()}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        return meet(block, y, inputs)

    def look(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        assert inputs.context is not None
        assert inputs.embedded is not None
        states, values = inputs.context.chunk(2, 2)
        return across(block.cross, (y + inputs.embedded) * HALF, states, values, inputs)


class feeding:
    """A recurrent step that looks first."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: _make_feeding(parts), "cross": None}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        states, _ = _run_feeding(block.mixer, y, inputs)
        return states


class lowest:
    """The same, and the layers above get what it found."""

    shares: ClassVar[str | None] = "found"

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: _make_feeding(parts), "cross": None}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        assert inputs.found is not None
        states, found = _run_feeding(block.mixer, y, inputs)
        inputs.found.append(found)
        return states


class above:
    """A layer above the lowest: what that one found stands beside its inputs."""

    shares: ClassVar[str | None] = "found"

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: _recurrent_with_context(parts), "cross": None}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        assert inputs.found
        return block.mixer(torch.cat((y, inputs.found[0]), 2), mask=inputs.mask, cache=inputs.own)


class fixed:
    """The source as one vector, in place of what looking would find."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        return {parts.mixes: parts.mixing(), "cross": _source_vector(parts)}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        return meet(block, y, inputs)

    def look(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        return block.cross(y, inputs.context, mask=inputs.context_mask)


class into:
    """The source as one vector, beside the input of each recurrent step."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        mixer = _recurrent_with_context(parts)  # made first: the order in which weights are drawn is fixed
        return {"into": _source_vector(parts), parts.mixes: mixer, "cross": None}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        one = block.into(y, inputs.context, mask=inputs.context_mask)
        return block.mixer(torch.cat((y, one), 2), mask=inputs.mask, cache=inputs.own)


class beside:
    """What stands at the same place of the source."""

    shares: ClassVar[str | None] = None

    def modules(self, parts: Parts) -> Modules:
        mixer = parts.mixing()
        return {parts.mixes: mixer, "cross": SourceBeside(parts.config.width, parts.source.width)}

    def mix(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        return meet(block, y, inputs)

    def look(self, block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
        start = _first_position(inputs.own, inputs.mask, y)
        return block.cross(y, inputs.context, mask=inputs.context_mask, start=start)


def with_embedding(states: Tensor, embedded: Tensor) -> Tensor:
    """The context of `embedded` (B,S,2C): the states z, which are compared with queries, and (z + e) sqrt(1/2) beside
    them, the values (Gehring et al. 2017): a_ij = softmax_j((d_i + g_i) . z_j), c_i = sum_j a_ij (z_j + e_j), with the
    embeddings g of the target and e of the source.
    """
    return torch.cat((states, (states + embedded) * HALF), 2)


def as_kind(name: str, number: int) -> Kind:
    """The kind of layer `number`."""
    return above() if name == "lowest" and number else KINDS[name]()


def meet(block: Any, y: Tensor, inputs: BlockInput) -> Tensor:
    """Self-attention or another mixer, where the source plays no part in it."""
    if block.mixes != "attention":
        further = {name: getattr(inputs, name) for name in getattr(block.mixer, "asks", ())}
        return block.mixer(y, mask=inputs.mask, cache=inputs.own, **further)
    if inputs.past is None and inputs.seen is None:
        further = {name: getattr(inputs, name) for name in ("segments", "places", "edges", "bias")}
        return block.attention(y, mask=inputs.mask, cache=inputs.own, **further)
    here = inputs.x if inputs.seen is None else inputs.seen
    source = here if inputs.past is None else torch.cat((inputs.past, here), 1)
    source = block.before(source)  # normed as y is
    start = source.shape[1] - here.shape[1]
    return block.attention(y, source, mask=inputs.mask, start=start, segments=inputs.segments)


def across(cross: Attention, x: Tensor, context: Tensor, values: Tensor | None, inputs: BlockInput) -> Tensor:
    """Cross-attention; rows that share a context (beams) stand side by side and ask it as one."""
    given = {"values": values, "mask": inputs.context_mask, "cache": inputs.kept, "bias": inputs.context_bias}
    if context.shape[0] == x.shape[0] or not context.shape[0]:
        return cross(x, context, **given)
    together = x.reshape(context.shape[0], -1, x.shape[-1])
    output = cross(together, context, **given).reshape(x.shape)
    for watcher in cross.watchers:
        watcher.calls[-1] = watcher.calls[-1].apart(x.shape[0] // context.shape[0])
    return output


def _make_feeding(parts: Parts) -> Feeding:
    return Feeding(one_way(parts.mixer), parts.config.width, parts.looking())


def _run_feeding(mixer: nn.Module, y: Tensor, inputs: BlockInput) -> tuple[Tensor, Tensor]:
    """The states, and what was found before each, (B,T,C) each."""
    masks = {"mask": inputs.mask, "context_mask": inputs.context_mask}
    states, found = mixer(y, inputs.context, **masks, cache=inputs.own, kept=inputs.kept)
    return states, found


def _recurrent_with_context(parts: Parts) -> Recurrent:
    """A recurrent layer that takes something beside its input."""
    return Recurrent(one_way(parts.mixer), parts.config.width, inputs=2 * parts.config.width)


def _source_vector(parts: Parts) -> SourceVector:
    return SourceVector(parts.config.width, parts.source.width, mean=parts.source.pool == "mean")


def _first_position(cache: Cache | None, mask: Mask | None, x: Tensor) -> int | Tensor:
    """The position of x[:, 0]. The mixer has put x into the cache already; padding on the left stands before 0."""
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
