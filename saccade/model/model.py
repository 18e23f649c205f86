"""`Model`: embedding, stacks and head in one. Loss, search and metrics stand outside."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.attend.cache import Cache
from saccade.attend.initial import normal
from saccade.attend.layer import Attention
from saccade.attend.mask import order, padding
from saccade.attend.numbers import bound
from saccade.attend.position import learned
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.block import BlockCache
from saccade.model.embed import Embed
from saccade.model.head import make_head
from saccade.model.stack import Memory, Stack, deep


class State:
    """What a decoder has seen so far; the caller makes it with `model.start` and owns it."""

    def __init__(self, depth: int, context: Tensor | None, context_padding: padding | None) -> None:
        self.caches = [BlockCache(Cache(), Cache()) for _ in range(depth)]
        self.context, self.context_padding = context, context_padding
        self.pads: Tensor | None = None  # positions on the left that hold nothing, (B,)
        self._origin = None if context is None else torch.arange(context.shape[0], device=context.device)

    @property
    def length(self) -> int:
        """How many positions are held, padding included."""
        return self.caches[0].own.length

    def reorder(self, rows: Tensor) -> None:
        """Row b goes on from what row rows[b] has seen; rows may be repeated (beams) or left out (finished ones)."""
        for cache in self.caches:
            cache.own.reorder(rows)
        if self.pads is not None:
            self.pads = self.pads[rows] if self.pads.shape[0] > 1 else self.pads
        if self.context is None or self._origin is None:
            return
        before, self._origin = self._origin, self._origin[rows]
        if torch.equal(before, self._origin):
            return  # each row still looks at its own source: rows of one source share what they look at
        self.context = self.context[rows]
        for cache in self.caches:
            cache.context.reorder(rows)
        lengths = None if self.context_padding is None else self.context_padding.lengths
        if self.context_padding is not None and isinstance(lengths, Tensor) and lengths.shape[0] > 1:
            self.context_padding = padding(lengths[rows.to(lengths.device)], self.context_padding.side)


class Model(nn.Module):
    """A transformer: encoder-only, decoder-only, or both, as its configuration says.

    model(tokens) of an encoder or a decoder, model(source, target) of both -> states (B,T,C), or what the head says.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if not config.vocab:
            raise SaccadeError("a model needs its vocab, the number of tokens; only a recipe may leave it to its data")
        self.config = config
        self.embed = Embed(config)
        self.encoder = Stack(config, decoder=False) if config.encoder else None
        self.decoder = Stack(config, decoder=True) if config.decoder else None
        self.pooler = nn.Linear(config.width, config.width) if config.pooler else None
        self.head = None if config.head is None else make_head(config.head, config)
        self.question = normal(config.width) if config.streams == 2 else None
        if config.order == "deep" and not self.embed.tokens.weight.is_meta:
            self._shrink()
        self.tie()
        self.register_load_state_dict_post_hook(_tied)

    def forward(
        self,
        tokens: Tensor,
        target: Tensor | None = None,
        *,
        padding: padding | None = None,
        target_padding: padding | None = None,
        segments: Tensor | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """padding: `saccade.padding(lengths, side)` of the tokens. memory: `model.memory()`, for segments in a row."""
        states = self.states(
            tokens, target, padding=padding, target_padding=target_padding, segments=segments, memory=memory
        )
        return self.answer(states, padding if self.decoder is None else None)

    def states(
        self,
        tokens: Tensor,
        target: Tensor | None = None,
        *,
        padding: padding | None = None,
        target_padding: padding | None = None,
        segments: Tensor | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """What the head will be shown, (B,T,C): of the target where there is one."""
        if target_padding is not None and (self.encoder is None or self.decoder is None):
            raise SaccadeError("only an encoder-decoder has a target, and a target's padding")
        if self.encoder is None:
            if target is not None:
                raise SaccadeError("a decoder alone takes one sequence; this call brings a target too")
            if segments is not None:
                raise SaccadeError("a decoder alone has no segments; this call brings some")
            return self.decode(tokens, padding=padding, memory=memory)
        if self.decoder is None and target is not None:
            raise SaccadeError("an encoder alone takes one sequence; this call brings a target too")
        states = self.encode(tokens, padding=padding, segments=segments, memory=memory)
        if self.decoder is None:
            return states
        if target is None:
            raise SaccadeError("an encoder-decoder takes a source and a target; this call brings no target")
        return self.decode(target, states, padding=target_padding, context_padding=padding)

    def encode(
        self,
        tokens: Tensor,
        *,
        padding: padding | None = None,
        segments: Tensor | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """The encoder's states (B,S,C)."""
        if self.encoder is None:
            raise SaccadeError("this model has no encoder")
        self._moves(padding)
        x = self.embed(tokens, _positions(tokens, padding), segments)
        mask, across = _behind(padding, memory), _across(segments, memory)
        return self.encoder(x, mask=mask, memory=memory, segments=across)

    def decode(
        self,
        tokens: Tensor,
        context: Tensor | None = None,
        *,
        padding: padding | None = None,
        context_padding: padding | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """The decoder's states (B,T,C), all positions at once."""
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if self.encoder is not None and context is None:
            raise SaccadeError("this decoder looks at a context: pass what `encode` gave")
        self._moves(padding)
        x = self.embed(tokens, _positions(tokens, padding))
        mask = _behind(padding, memory)
        return self.decoder(x, context, mask=mask, context_mask=context_padding, memory=memory)

    def permuted(
        self,
        tokens: Tensor,
        permutation: Tensor,
        *,
        segments: Tensor | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """Permutation language modelling: what the head says of each place from those before it in the permutation.

        permutation (T,) or (B,T) lists the places in the order they are predicted in; memory comes before all of them.
        """
        if self.encoder is None or self.question is None:
            raise SaccadeError("this model has one stream: build it with streams = 2")
        x = self.embed(tokens, 0, segments)
        held = _held(memory)
        after = permutation + held
        before = torch.arange(held, device=tokens.device).expand(*after.shape[:-1], held)
        whole = torch.cat((before, after), -1)
        states = self.encoder.two_streams(
            x,
            self.question.expand_as(x),
            mask=order(whole),
            strict=order(whole, strict=True),
            memory=memory,
            segments=_across(segments, memory),
        )
        return self.answer(states)

    @property
    def room(self) -> int | None:
        """How many positions there are: those of a learned table; None: as many as one likes."""
        table = self.embed.position
        return table.weight.shape[0] - self.config.offset if isinstance(table, learned) else None

    def memory(self) -> Memory:
        """An empty memory of the length the configuration says."""
        if not self.config.memory:
            raise SaccadeError("this model keeps no memory: build it with memory = the positions to keep")
        return Memory(self.config.memory)

    def answer(self, states: Tensor, padding: padding | None = None) -> Tensor:
        """What the head says of the states; the states themselves where there is none."""
        if self.head is None:
            return states
        return self.head(self.pool(states, padding) if self.head.pooled else states)

    def pool(self, states: Tensor, padding: padding | None = None) -> Tensor:
        """tanh(W x + b) of the first token's state, as BERT pools it; padding on the left comes before the first."""
        if self.pooler is None:
            raise SaccadeError("this model has no pooler")
        first = states[:, 0]
        if padding is not None and padding.side == "left":
            pads = _pads(states, padding).clamp(max=states.shape[1] - 1).expand(states.shape[0])
            first = states[torch.arange(states.shape[0], device=states.device), pads]
        return torch.tanh(self.pooler(first))

    def _moves(self, mask: Any) -> None:
        """Refuses padding on the left where a layer's mask means absolute places, which the padding would move."""
        if mask is None:
            return
        if not isinstance(mask, padding):
            raise SaccadeError(f"padding is saccade.padding(lengths, side), not {type(mask).__name__}")
        layers = [each for each in self.modules() if isinstance(each, Attention)]
        fixed = [each.mask for each in layers if each.mask is not None and not each.mask.relative()]
        if mask.side == "left" and fixed:
            raise SaccadeError(f"the mask {fixed[0]!r} means absolute places: put the padding on the right")

    def tie(self) -> None:
        """Makes the head's table the embedding's own, where the configuration ties them."""
        if self.config.tie and self.head is not None and hasattr(self.head, "weight"):
            self.head.weight = self.embed.tokens.weight

    def start(self, source: Tensor | None = None, *, padding: padding | None = None) -> State:
        """A fresh state; with an encoder, the source is encoded now, once."""
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if self.encoder is not None and source is None:
            raise SaccadeError("an encoder-decoder starts from a source: pass one")
        context = None if source is None else self.encode(source, padding=padding)
        return State(self.config.decoder, context, padding)

    def decode_step(self, tokens: Tensor, state: State, *, padding: padding | None = None) -> Tensor:
        """What the head says of the tokens (B,T) that follow what `state` holds, which then holds them too.

        The first call may bring a prompt with padding on the left.
        """
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if padding is not None:
            if state.length or padding.side != "left":
                raise SaccadeError("only a prompt may have padding, and only on the left: padding(lengths, 'left')")
            self._moves(padding)
            state.pads = _pads(tokens, padding)
        begin, mask = state.length, None
        positions: int | Tensor = begin
        if state.pads is not None:
            steps = torch.arange(begin, begin + tokens.shape[1], device=tokens.device)
            positions = (steps - state.pads.view(-1, 1)).clamp(min=0)
            mask = _left(begin + tokens.shape[1] - state.pads)
        x = self.embed(tokens, positions)
        states = self.decoder(x, state.context, mask=mask, context_mask=state.context_padding, caches=state.caches)
        return self.answer(states)

    def _shrink(self) -> None:
        """DeepNet's initial weights: values, outputs and feed-forwards are smaller by beta (Wang et al. 2022)."""
        for stack, is_decoder in ((self.encoder, False), (self.decoder, True)):
            if stack is None:
                continue
            _, beta = deep(self.config.encoder, self.config.decoder, is_decoder)
            for name, module in stack.named_modules():
                if isinstance(module, nn.Linear):
                    small = name.rpartition(".")[2] in ("value", "out", "up", "gate", "down")
                    nn.init.xavier_normal_(module.weight, gain=beta if small else 1.0)


def _held(memory: Memory | None) -> int:
    """Positions that a memory holds already."""
    return 0 if memory is None or not memory.states else next(iter(memory.states.values())).shape[1]


def _behind(mask: padding | None, memory: Memory | None) -> padding | None:
    """The padding of the tokens, which a memory does not go with."""
    if mask is not None and memory is not None:
        raise SaccadeError("a memory keeps whole segments: without padding, which the next segment would look at")
    return mask


def _across(segments: Tensor | None, memory: Memory | None) -> tuple[Tensor, Tensor] | None:
    """Segments of the queries and of the keys; a memory counts as segment 0."""
    if segments is None:
        return None
    past = segments.new_zeros(segments.shape[0], _held(memory))
    return segments, torch.cat((past, segments), 1)


def _tied(model: nn.Module, _: object) -> None:
    """Weights that were assigned, not copied, have come apart."""
    assert isinstance(model, Model)
    model.tie()


def _left(lengths: Tensor) -> padding:
    return padding(lengths, "left")


def _positions(tokens: Tensor, mask: padding | None) -> int | Tensor:
    """Positions count from the first real token; what stands before it is at 0 and never looked at."""
    if mask is None or mask.side == "right":
        return 0
    steps = torch.arange(tokens.shape[1], device=tokens.device)
    return (steps - _pads(tokens, mask).view(-1, 1)).clamp(min=0)


def _pads(x: Tensor, mask: padding) -> Tensor:
    """How many places on the left of x (B,T,...) hold nothing, (B,)."""
    lengths = bound("padding", "lengths", mask.lengths).to(x.device)
    return (x.shape[1] - lengths).clamp(min=0)
