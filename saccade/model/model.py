"""`Model`: embedding, stacks and head in one. Loss, search and metrics stand outside."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.attend.layer import Attention
from saccade.attend.mask import order, padding
from saccade.attend.position import on_input, xl
from saccade.attend.summary import length_of
from saccade.config import ModelConfig
from saccade.error import SaccadeError, nearest
from saccade.model.context import with_embedding
from saccade.model.embed import Embed, Embedded, belongs, embedded_alike
from saccade.model.head import make_head
from saccade.model.hidden import States
from saccade.model.input import Input
from saccade.model.join import as_embed
from saccade.model.mixer import knowing
from saccade.model.stack import Memory, Stack, deep
from saccade.model.state import State
from saccade.model.trail import Rows

Given = Input | Tensor | Mapping[str, Input | Tensor]  # a bare tensor is one of tokens; several inputs have names


class Model(nn.Module):
    """A transformer, or a network of other mixers: encoder-only, decoder-only, or both, as its configuration says.

    model(x) of an encoder or a decoder, model(x, y) of both -> what the head says, or the last states (B,T,C). x and y
    are an Input or a bare tensor of tokens; padding and segments are the Input's.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        first, last = config.stack(decoder=not config.encoder), config.stack(decoder=config.decoder > 0)
        self.embed = as_embed(first)
        self.decoder_embed = None if embedded_alike(first, last) else as_embed(last)
        self.encoder = Stack(config, decoder=False) if config.encoder else None
        self.decoder = Stack(config, decoder=True) if config.decoder else None
        self.pooler = nn.Linear(last.width, last.width) if config.pooler else None
        knows = "last" if config.decoder else knowing(config.mixers(decoder=False))
        self.pooled = knows if config.pool == "auto" else config.pool
        self.head = None if config.head is None else make_head(config.head, config)
        self.heads = nn.ModuleDict({name: make_head(text, config) for name, text in config.named_heads.items()})
        read = [each.reads for each in (self.head, *self.heads.values()) if each is not None]
        self.keeps = "layers" in read  # the states of every layer of the last stack
        self.question = normal(first.width) if config.streams == 2 else None
        if self.device.type != "meta":
            self._shrink()
        if config.memory:
            self._remembers()
        self.tie()
        self.register_load_state_dict_post_hook(_tied)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(chain(self.parameters(), self.buffers())).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of its first weight."""
        return next(chain(self.parameters(), self.buffers())).dtype

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds of it, each tensor once: its parameters, and the persistent buffers in which modules
        declare state that has no gradient (codebooks); other buffers are made again.
        """
        kept = self.state_dict(keep_vars=True).keys()
        return dict(self.named_parameters()) | {name: each for name, each in self.named_buffers() if name in kept}

    def settle(self) -> None:
        """Once a step, after the optimiser: what has state without a gradient takes it over from what it summed up over
        the step's micro-batches.
        """
        for module in self.modules():
            settle: Any = None if module is self else getattr(module, "settle", None)
            if settle is not None:
                settle()

    def forward(self, x: Given, y: Input | Tensor | None = None, *, memory: Memory | None = None) -> Tensor:
        """memory: `model.memory()`, for segments in a row."""
        return self.say(self.states(x, y, memory=memory))

    def states(self, x: Given, y: Input | Tensor | None = None, *, memory: Memory | None = None) -> States:
        """What the heads will be shown."""
        if self.encoder is None or self.decoder is None:
            if y is not None:
                alone = "a decoder" if self.encoder is None else "an encoder"
                raise SaccadeError(f"{alone} alone takes one sequence; this call brings a target too")
            return self._encoded(x, memory) if self.decoder is None else self._decoded(x, States(), memory)
        if y is None:
            raise SaccadeError("an encoder-decoder takes a source and a target; this call brings no target")
        return self._decoded(y, self._encoded(x, memory), None)

    def encode(self, x: Given, *, memory: Memory | None = None) -> Tensor:
        """The encoder's states (B,S,C); of `cross = "embedded"` what is found there beside them, (B,S,2C)."""
        return self._encoded(x, memory).last

    def decode(
        self,
        y: Input | Tensor,
        context: Tensor | None = None,
        *,
        context_padding: padding | None = None,
        memory: Memory | None = None,
    ) -> Tensor:
        """The decoder's states (B,T,C), all positions at once."""
        return self._decoded(y, States(context, encoder_padding=context_padding), memory).last

    def _encoded(self, x: Given, memory: Memory | None) -> States:
        if self.encoder is None:
            raise SaccadeError("this model has no encoder")
        read = self._read(self.embed, x, memory)
        layers: list[Tensor] | None = [] if self.keeps and self.decoder is None else None
        given = {"mask": read.padding, "places": read.places, "segments": _across(read.segments, memory)}
        states = self.encoder(read.vectors, **given, memory=memory, layers=layers)
        states = with_embedding(states, read.vectors) if self.config.cross == "embedded" else states
        return States(states, None, tuple(layers or ()), read.padding)

    def _decoded(self, y: Any, source: States, memory: Memory | None) -> States:
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if self.encoder is not None and source.encoder is None:
            raise SaccadeError("this decoder looks at a context: pass what `encode` gave")
        read = self._read(self.target_embed, y, memory)
        layers: list[Tensor] | None = [] if self.keeps else None
        if read.segments is not None:
            raise SaccadeError("a decoder has no segments; this call brings some")
        given = {"mask": read.padding, "places": read.places, "context_mask": source.encoder_padding}
        states = self.decoder(read.vectors, source.encoder, **given, memory=memory, layers=layers)
        return source._replace(decoder=states, layers=tuple(layers or ()), decoder_padding=read.padding)

    def _read(self, embed: Any, x: Any, memory: Memory | None) -> Embedded:
        """What is read as vectors; refuses padding and segments where they would mean something else, or nothing."""
        read: Embedded = embed.read(x)
        if read.padding is not None and memory is not None:
            raise SaccadeError("a memory keeps whole segments: without padding, which the next segment would look at")
        if read.places is not None and memory is not None:
            raise SaccadeError("a memory counts the positions of its segments: pass no places")
        if read.padding is not None and read.padding.side == "left":
            self._moves()
        if read.segments is not None:
            self._tells(read.segments, read.vectors)
        return read

    def permuted(self, x: Input | Tensor, permutation: Tensor, *, memory: Memory | None = None) -> Tensor:
        """Permutation language modelling: what the head says of each place from those before it in the permutation.

        permutation (T,) or (B,T) lists the places in the order they are predicted in; memory comes before all of them.
        """
        if self.encoder is None or self.question is None:
            raise SaccadeError("this model has one stream: build it with streams = 2")
        read = self._read(self.embed, x, memory)
        if read.padding is not None or read.places is not None:
            raise SaccadeError("a permutation is of whole rows, counted from their beginning: no padding, no places")
        held = 0 if memory is None else memory.held
        after = permutation + held
        before = torch.arange(held, device=after.device).expand(*after.shape[:-1], held)
        whole = torch.cat((before, after), -1)
        states = self.encoder.two_streams(
            read.vectors,
            self.question.expand_as(read.vectors),
            mask=order(whole),
            strict=order(whole, strict=True),
            memory=memory,
            segments=_across(read.segments, memory),
        )
        return self.answer(states)

    @property
    def target_embed(self) -> Any:
        """How what the last stack reads becomes vectors: of a decoder what it wrote, of an encoder alone its input."""
        return self.embed if self.decoder_embed is None else self.decoder_embed

    @property
    def table(self) -> Tensor | None:
        """The vectors of the tokens (V,C) that the last stack reads; None: it reads no tokens."""
        return self.target_embed.table

    @property
    def room(self) -> int | None:
        """How many positions the last stack has: those of a learned table; None: as many as one likes. Where it shares
        its embedding with an encoder, those of that too.
        """
        return self.source_room if self.decoder_embed is None else self.decoder_embed.room

    @property
    def source_room(self) -> int | None:
        """How many positions the encoder has, or a decoder alone: those of a learned table or of a summary."""
        summary = self.config.stack(decoder=False).summary
        rooms = [None if summary is None else length_of(summary), self.embed.room]
        return min((each for each in rooms if each is not None), default=None)

    def room_of(self, name: str) -> int | None:
        """The same for one of several inputs."""
        return self.source_room if isinstance(self.embed, Embed) else self.embed.room_of(name)

    def memory(self) -> Memory:
        """An empty memory of the length the configuration says."""
        if not self.config.memory:
            raise SaccadeError("this model keeps no memory: build it with memory = the positions to keep")
        return Memory(self.config.memory)

    def say(self, states: States, name: str | None = None) -> Tensor:
        """What a head, or the one of a name, says of the states that it reads; without a head the last states."""
        if name is not None and name not in self.heads:
            raise SaccadeError(f"this model has no head called {name!r}; {nearest(name, self.heads)}")
        head: Any = self.head if name is None else self.heads[name]
        return states.last if head is None else self._said(head, *states.read(head.reads))

    def answer(self, states: Tensor, padding: padding | None = None) -> Tensor:
        """What the head says of the states; the states themselves where there is none."""
        return states if self.head is None else self._said(self.head, states, padding)

    def _said(self, head: Any, states: Tensor, padding: padding | None) -> Tensor:
        said: Tensor = head(self.pool(states, padding) if head.pooled else states)
        return said

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

    def _moves(self) -> None:
        """Refuses padding on the left where it would move the absolute places of a layer."""
        fixed = self._fixed()
        if fixed is not None:
            raise SaccadeError(f"{fixed} means absolute places: put the padding on the right")

    def _tells(self, segments: Tensor, x: Tensor) -> None:
        """Refuses segments of other vectors, and any where nothing asks for them."""
        belongs(segments, x)
        asking = (each.segments for each in self.modules() if isinstance(each, Embed | xl))
        if all(each is None for each in asking):
            raise SaccadeError(
                "this model has no segments: build it with segments = 2, or position = 'xl(segments=True)'"
            )

    def _remembers(self) -> None:
        """Refuses what means absolute places where there is a memory: every segment begins at another one."""
        counted = [each for each in (self.config.stack(side).position for side in (False, True)) if on_input(each)]
        if counted:
            raise SaccadeError(
                f"a memory goes with positions that are distances, and {counted[0]!r} counts from each "
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
        """Makes the head's table the embedding's own, where the configuration ties them and there is one."""
        if self.config.tie and hasattr(self.head, "weight") and self.table is not None:
            self.head.weight = self.table  # type: ignore[union-attr]

    def start(self, x: Given | None = None) -> State:
        """A fresh state; with an encoder, the source is encoded now, once."""
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if self.encoder is not None and x is None:
            raise SaccadeError("an encoder-decoder starts from a source: pass one")
        source = States() if x is None else self._encoded(x, None)
        return State(self.decoder, source.encoder, source.encoder_padding)

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
        x = self.target_embed({"tokens": tokens}, positions)
        states = self.decoder(x, state.context, context_mask=state.context_padding, caches=state.caches)
        if lengths is None:
            return states
        state.rewind(begin + lengths)
        return _roll(states, lengths, 1) if left else states

    def _shrink(self) -> None:
        """DeepNet's initial weights: values, outputs and feed-forwards are smaller by beta (Wang et al. 2022)."""
        for stack, is_decoder in ((self.encoder, False), (self.decoder, True)):
            if stack is None or self.config.stack(is_decoder).order != "deep":
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


def _across(segments: Tensor | None, memory: Memory | None) -> tuple[Tensor, Tensor] | None:
    """Segments of the queries and of the keys; a memory counts as segment 0."""
    if segments is None:
        return None
    past = segments.new_zeros(segments.shape[0], 0 if memory is None else memory.held)
    return segments, torch.cat((past, segments), 1)


def _tied(model: nn.Module, _: object) -> None:
    """Weights that were assigned, not copied, have come apart."""
    assert isinstance(model, Model)
    model.tie()


def _lengths(x: Tensor, mask: padding) -> Tensor:
    """How many places of x (B,T,...) hold something, (B,)."""
    return mask.held(x.shape[1], x.device)


def _roll(x: Tensor, lengths: Tensor, way: int) -> Tensor:
    """x (B,T,...) with the padding of each row moved from the right to the left (way 1) or back (-1)."""
    T = x.shape[1]
    places = (torch.arange(T, device=x.device) - way * (T - lengths).view(-1, 1)) % T  # (B or 1, T)
    return x[torch.arange(x.shape[0], device=x.device).view(-1, 1), places.expand(x.shape[0], -1)]
