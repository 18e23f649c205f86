"""`Model`: embedding, stacks and head in one. Loss, search and metrics stand outside."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.attend.layer import Attention
from saccade.attend.mask import order, padding
from saccade.attend.numbers import dtype
from saccade.attend.position import learned, on_input, xl
from saccade.attend.summary import length_of
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.context import with_embedding
from saccade.model.embed import Embed
from saccade.model.head import make_head
from saccade.model.mixer import knowing
from saccade.model.stack import Memory, Stack, deep
from saccade.model.state import State
from saccade.model.trail import Rows


class Model(nn.Module):
    """A transformer, or a network of other mixers: encoder-only, decoder-only, or both, as its configuration says.

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
        knows = "last" if config.decoder else knowing(config.mixers(decoder=False))
        self.pooled = knows if config.pool == "auto" else config.pool
        self.head = None if config.head is None else make_head(config.head, config)
        self.question = normal(config.width) if config.streams == 2 else None
        if config.order == "deep" and not self.embed.tokens.weight.is_meta:
            self._shrink()
        if config.memory:
            self._remembers()
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
        return self.answer(states, padding if self.encoder is None or self.decoder is None else target_padding)

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
        """The encoder's states (B,S,C); of `cross = "embedded"` what is found there beside them, (B,S,2C)."""
        if self.encoder is None:
            raise SaccadeError("this model has no encoder")
        self._moves(padding, tokens)
        self._tells(segments, tokens)
        x = self.embed(tokens, _positions(tokens, padding), segments)
        mask, across = _behind(padding, memory), _across(segments, memory)
        states = self.encoder(x, mask=mask, memory=memory, segments=across)
        return with_embedding(states, x) if self.config.cross == "embedded" else states

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
        self._moves(padding, tokens)
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
        self._tells(segments, tokens)
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
        """How many positions there are: those of a learned table or of a summary; None: as many as one likes."""
        table, summary = self.embed.position, self.config.summary
        rooms = [] if summary is None else [length_of(summary)]
        rooms += [table.weight.shape[0] - self.config.offset] if isinstance(table, learned) else []
        return min(rooms, default=None)

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
        """tanh(W x + b) of the state that the configuration's `pool` names. By itself it is one that knows all tokens:
        the first, as BERT pools it; the last, where a state goes from one to the next; else the mean of all.
        """
        if self.pooler is None:
            raise SaccadeError("this model has no pooler")
        if not states.shape[1]:
            raise SaccadeError("a pooler reads the state of a token, and these sequences have none: give one at least")
        rows = Rows(states, padding, "a pooler")
        state = {"first": rows.first, "last": rows.last, "mean": rows.mean}[self.pooled](rows.settle(states))
        return torch.tanh(self.pooler(state))

    def _moves(self, mask: Any, tokens: Tensor) -> None:
        """Refuses padding of other tokens, and on the left where it would move the absolute places of a layer."""
        if mask is None:
            return
        _belongs(mask, tokens)
        fixed = self._fixed() if mask.side == "left" else None
        if fixed is not None:
            raise SaccadeError(f"{fixed} means absolute places: put the padding on the right")

    def _tells(self, segments: Tensor | None, tokens: Tensor) -> None:
        """Refuses segments of other tokens, and any where nothing asks for them."""
        if segments is None:
            return
        if segments.shape != tokens.shape or segments.is_floating_point():
            raise SaccadeError(
                f"segments are whole numbers, one a token; got {dtype(segments)} {tuple(segments.shape)} for tokens "
                f"{tuple(tokens.shape)}"
            )
        asking = (each.segments for each in self.modules() if isinstance(each, Embed | xl))
        if all(each is None for each in asking):
            raise SaccadeError(
                "this model has no segments: build it with segments = 2, or position = 'xl(segments=True)'"
            )

    def _remembers(self) -> None:
        """Refuses what means absolute places where there is a memory: every segment begins at another one."""
        if on_input(self.config.position):
            raise SaccadeError(
                f"a memory goes with positions that are distances, and {self.config.position!r} counts from each "
                "segment's beginning: write model.position = 'xl', 'rotary' or 'alibi'"
            )
        fixed = self._fixed()
        if fixed is not None:
            raise SaccadeError(f"a memory moves the places that {fixed} means: write what goes by distances")

    def _fixed(self) -> str | None:
        """What of the layers means absolute places; None: nothing."""
        found = (each.fixed for each in self.modules() if isinstance(each, Attention))
        return next((each for each in found if each is not None), None)

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
        return State(self.decoder, context, padding)

    def decode_step(self, tokens: Tensor, state: State, *, padding: padding | None = None) -> Tensor:
        """What the head says of the tokens (B,T) that follow what `state` holds, which then holds them too.

        With padding, on either side, a row brings fewer than T; what is said of the padding means nothing.
        """
        return self.answer(self.advance(tokens, state, padding=padding))

    def advance(self, tokens: Tensor, state: State, *, padding: padding | None = None) -> Tensor:
        """As `decode_step`, but the states (B,T,C) that the head would be shown."""
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        lengths = None
        if padding is not None:
            _belongs(padding, tokens)
            lengths = _lengths(tokens, padding)
        left = padding is not None and padding.side == "left"
        tokens = _roll(tokens, lengths, -1) if left and lengths is not None else tokens  # a row begins at its place
        begin = state.start
        positions: int | Tensor = begin
        if lengths is not None or isinstance(begin, Tensor):
            steps = torch.arange(tokens.shape[1], device=tokens.device)
            positions = (begin.view(-1, 1) if isinstance(begin, Tensor) else begin) + steps
            positions = positions.expand(tokens.shape[0], -1)
            positions = positions if lengths is None else positions.masked_fill(steps >= lengths.view(-1, 1), 0)
        x = self.embed(tokens, positions)
        states = self.decoder(x, state.context, context_mask=state.context_padding, caches=state.caches)
        if lengths is None:
            return states
        state.rewind(begin + lengths)
        return _roll(states, lengths, 1) if left else states

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


def _belongs(mask: Any, tokens: Tensor) -> None:
    """Refuses what is no padding, or that of another batch."""
    if not isinstance(mask, padding):
        raise SaccadeError(f"padding is saccade.padding(lengths, side), not {type(mask).__name__}")
    mask.fits(tokens.shape[0], 1, tokens.shape[-1], tokens.shape[-1], tokens.device)


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


def _positions(tokens: Tensor, mask: padding | None) -> int | Tensor:
    """Positions count from the first real token; what stands before it is at 0 and never looked at."""
    if mask is None or mask.side == "right":
        return 0
    steps = torch.arange(tokens.shape[1], device=tokens.device)
    return (steps - _pads(tokens, mask).view(-1, 1)).clamp(min=0)


def _pads(x: Tensor, mask: padding) -> Tensor:
    """How many places on the left of x (B,T,...) hold nothing, (B,)."""
    return x.shape[1] - _lengths(x, mask)


def _lengths(x: Tensor, mask: padding) -> Tensor:
    """How many places of x (B,T,...) hold something, (B,)."""
    return mask.held(x.shape[1], x.device)


def _roll(x: Tensor, lengths: Tensor, way: int) -> Tensor:
    """x (B,T,...) with the padding of each row moved from the right to the left (way 1) or back (-1)."""
    T = x.shape[1]
    places = (torch.arange(T, device=x.device) - way * (T - lengths).view(-1, 1)) % T  # (B or 1, T)
    return x[torch.arange(x.shape[0], device=x.device).view(-1, 1), places.expand(x.shape[0], -1)]
