"""`Model`: embedding, stacks and head together. Loss, search and metrics stand outside."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.attend.initial import normal
from saccade.attend.layer import Attention
from saccade.attend.mask import document, order, padding
from saccade.attend.position import on_input, xl
from saccade.attend.summary import length_of
from saccade.config import ModelConfig
from saccade.error import SaccadeError, nearest
from saccade.model.anchors import AnchorStates
from saccade.model.cells import Sides
from saccade.model.context import ContextReader
from saccade.model.cross import with_embedding
from saccade.model.embed import Embed, Embedded, belongs, embedded_alike
from saccade.model.head import make_head
from saccade.model.hidden import States
from saccade.model.input import Input, as_input
from saccade.model.join import as_embed
from saccade.model.pairs import PairStates
from saccade.model.pool import Pool, pool_of
from saccade.model.queries import axes_of
from saccade.model.stack import Memory, Stack, deep
from saccade.model.state import State

Given = Input | Tensor | Mapping[str, Input | Tensor]  # a bare tensor is one of tokens; several inputs have names


class Model(nn.Module):
    """A transformer, or a network of other mixers: encoder-only, decoder-only, or both, as its configuration says.

    model(x) of an encoder or a decoder, model(x, y) of both -> the output of the head, or without one the last states
    (B,T,C). x and y are an Input, which may have padding and segments, or a bare tensor of tokens.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        first, last = config.stack(decoder=not config.encoder), config.stack(decoder=config.decoder > 0)
        self.embed = as_embed(first)
        self.decoder_embed = None if embedded_alike(first, last) else as_embed(last)
        self.context = ContextReader(config) if config.join == "context" else None
        self.encoder = Stack(config, decoder=False) if config.encoder else None
        self.decoder = Stack(config, decoder=True) if config.decoder else None
        self.pooler = nn.Linear(config.states_width, config.states_width) if config.pooler else None
        self.pooling = Pool(pool_of(config), config.states_width, last.class_tokens + last.registers, last)
        self.head = None if config.head is None else make_head(config.head, config)
        self.heads = nn.ModuleDict({name: make_head(text, config) for name, text in config.named_heads.items()})
        read = [each.reads for each in (self.head, *self.heads.values()) if each is not None]
        self.keeps = "layers" in read  # whether a head reads the states of every layer of the last stack
        self.anchored = axes_of(config) > 0  # whether what the decoder asks with has places
        self.question = normal(first.width) if config.streams == 2 else None
        if self.device.type != "meta":
            self._shrink_deep()
        if config.memory:
            self._check_memory()
        self.tie()
        self.register_load_state_dict_post_hook(_tie_again)

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
        """Once a step, after the optimiser: calls `settle` of every module that has one. A module whose state has no
        gradient (a codebook) sums up its updates over the micro-batches, and applies them then.
        """
        for module in self.modules():
            settle: Any = None if module is self else getattr(module, "settle", None)
            if settle is not None:
                settle()

    def forward(self, x: Given, y: Input | Tensor | None = None, *, memory: Memory | None = None) -> Tensor:
        """memory: `model.memory()`, for segments in a row."""
        return self.say(self.states(x, y, memory=memory))

    def compile(self, **options: Any) -> None:
        """Compiles `states`, which training, validation and search call; options: those of torch.compile."""
        self.states = torch.compile(self.states, **options)  # type: ignore[method-assign]

    def states(self, x: Given, y: Input | Tensor | None = None, *, memory: Memory | None = None) -> States:
        """The hidden states that the heads read."""
        if self.encoder is None or self.decoder is None:
            if y is not None:
                alone = "a decoder" if self.encoder is None else "an encoder"
                raise SaccadeError(f"{alone} alone takes one sequence; this call brings a target too")
            return self._encoded(x, memory) if self.decoder is None else self._decoded(x, States(), memory)
        if y is None and not self.config.queried:
            raise SaccadeError("an encoder-decoder takes a source and a target; this call brings no target")
        source = self._encoded(x, memory)
        return self._decoded(self._nothing_beside(source.last) if y is None else y, source, None)

    def _nothing_beside(self, states: Tensor) -> Input:
        """What a decoder of queries is shown at use, for each row of the encoder's states."""
        return Input(self.target_embed.part.nothing(len(states)))

    def encode(self, x: Given, *, memory: Memory | None = None) -> Tensor:
        """The encoder's states (B,S,C); with `cross = "embedded"` also the values beside them, (B,S,2C)."""
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
        kept = self.keeps and self.decoder is None
        asking = self.config.stack(decoder=False).registers if kept else 0
        layers: list[Tensor] | None = [] if kept and not asking else None
        given = {"mask": read.padding, "places": read.places, "segments": _segments_with_memory(read.segments, memory)}
        if self.context is not None:
            given |= self.context(read.context)
        pairs = None if self.encoder.pairs is None else PairStates(read.pairs)
        further: dict[str, Any] = {"grid": read.grid, "edges": read.edges, "pairs": pairs}
        states = self.encoder(read.vectors, **given, **further, memory=memory, layers=layers)
        states = with_embedding(states, read.vectors) if self.config.cross == "embedded" else states
        grid, vectors = self.encoder.grid_after(read.grid), None if pairs is None else pairs.vectors
        told = (cast(Embed, self.embed).registers_of(states),) if asking else tuple(layers or ())
        found = States(states, None, told, read.padding, encoder_grid=grid, pairs=vectors)
        return found._replace(spots=self._spots(x, grid, states.shape[1])) if self.anchored else found

    def _spots(self, x: Given, grid: Sides | None, count: int) -> Tensor:
        """Where the encoder's states lie, (B or 1,S,k)."""
        if not isinstance(self.embed, Embed) or isinstance(x, Mapping):
            raise SaccadeError(
                "anchors look at the places of one input: leave out the others, or write y.anchors = false"
            )
        return self.embed.spots_of(as_input(x), grid, count)

    def _decoded(self, y: Any, source: States, memory: Memory | None) -> States:
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if self.encoder is not None and source.encoder is None:
            raise SaccadeError("this decoder looks at a context: pass what `encode` gave")
        read = self._read(self.target_embed, y, memory)
        layers: list[Tensor] | None = [] if self.keeps else None
        if read.segments is not None:
            raise SaccadeError("a decoder has no segments; this call brings some")
        mask = read.padding if read.groups is None else document(read.groups)
        given: dict[str, Any] = {"mask": mask, "places": read.places, "context_mask": source.encoder_padding}
        anchors = None
        if read.anchors is not None and source.spots is not None:
            anchors = AnchorStates(read.anchors, source.spots)
        states = self.decoder(read.vectors, source.encoder, **given, memory=memory, layers=layers, anchors=anchors)
        spans = () if anchors is None else tuple(anchors.told)
        return source._replace(decoder=states, layers=tuple(layers or ()), decoder_padding=read.padding, spans=spans)

    def _read(self, embed: Any, x: Any, memory: Memory | None) -> Embedded:
        """The vectors of an input; refuses padding, places and segments that this model, or its memory, cannot take."""
        read: Embedded = embed.read(x)
        if read.padding is not None and memory is not None:
            raise SaccadeError("a memory keeps whole segments: without padding, which the next segment would look at")
        if read.places is not None and memory is not None:
            raise SaccadeError("a memory counts the positions of its segments: pass no places")
        if read.padding is not None and read.padding.side == "left":
            self._check_left_padding()
        if read.segments is not None:
            self._check_segments(read.segments, read.vectors)
        return read

    def permuted(self, x: Input | Tensor, permutation: Tensor, *, memory: Memory | None = None) -> Tensor:
        """Permutation language modelling: the head's output at each place, from those before it in the permutation.

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
            segments=_segments_with_memory(read.segments, memory),
        )
        return self.answer(states)

    @property
    def target_embed(self) -> Any:
        """The embedding of what the last stack reads: the target of a decoder, the input of an encoder alone."""
        return self.embed if self.decoder_embed is None else self.decoder_embed

    @property
    def table(self) -> Tensor | None:
        """The vectors of the tokens (V,C) that the last stack reads; None: it reads no tokens."""
        return self.target_embed.table

    @property
    def room(self) -> int | None:
        """How many positions the last stack has room for: the rows of a learned table; None: any number. Where it
        shares its embedding with an encoder, the encoder's limits count too.
        """
        return self.source_room if self.decoder_embed is None else self.decoder_embed.room

    @property
    def source_room(self) -> int | None:
        """How many positions the encoder, or a decoder alone, has room for: by a learned table or a summary."""
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
        """The output of the head, or of the head called `name`, from the states that it reads; else the last states."""
        if name is not None and name not in self.heads:
            raise SaccadeError(f"this model has no head called {name!r}; {nearest(name, self.heads)}")
        head: Any = self.head if name is None else self.heads[name]
        return states.last if head is None else self._apply_head(head, *states.read(head.reads))

    def answer(self, states: Tensor, padding: padding | None = None) -> Tensor:
        """The output of the head for these states; the states themselves where there is no head."""
        return states if self.head is None else self._apply_head(self.head, states, padding)

    def _apply_head(self, head: Any, states: Tensor, padding: padding | None) -> Tensor:
        if head.pooled:
            states = (self.pooling if getattr(head, "bare", False) else self.pool)(states, padding)
        said: Tensor = head(states)
        return said

    def pool(self, states: Tensor, padding: padding | None = None) -> Tensor:
        """The state that stands for all of them (`pooling`), (B,C); with a pooler, tanh(W x + b) of it."""
        picked = self.pooling(states, padding)
        return picked if self.pooler is None else torch.tanh(self.pooler(picked))

    def _check_left_padding(self) -> None:
        """Refuses padding on the left where a layer depends on absolute positions, which it would shift."""
        fixed = self._absolute_part()
        if fixed is not None:
            raise SaccadeError(f"{fixed} means absolute places: put the padding on the right")

    def _check_segments(self, segments: Tensor, x: Tensor) -> None:
        """Refuses segments that are not one for each vector of x, and any where no part of the model reads them."""
        belongs(segments, x)
        asking = (each.segments for each in self.modules() if isinstance(each, Embed | xl))
        if all(each is None for each in asking):
            raise SaccadeError(
                "this model has no segments: build it with segments = 2, or position = 'xl(segments=True)'"
            )

    def _check_memory(self) -> None:
        """Refuses absolute positions beside a memory: every segment begins at another position."""
        counted = [each for each in (self.config.stack(side).position for side in (False, True)) if on_input(each)]
        if counted:
            raise SaccadeError(
                f"a memory goes with positions that are distances, and {counted[0]!r} counts from each "
                "segment's beginning: write model.position = 'xl', 'rotary' or 'alibi'"
            )
        fixed = self._absolute_part()
        if fixed is not None:
            raise SaccadeError(f"a memory moves the places that {fixed} means: use one that depends on distances alone")

    def _absolute_part(self) -> str | None:
        """The first part of a layer that depends on absolute positions, in words; None: there is none."""
        found = (each.fixed for each in self.modules() if isinstance(each, Attention))
        return next((each for each in found if each is not None), None)

    def tie(self) -> None:
        """Makes the head's table the embedding's own, where the configuration ties them and there is one."""
        if self.config.tie and hasattr(self.head, "weight") and self.table is not None:
            self.head.weight = self.table  # type: ignore[union-attr]

    def start(self, x: Given | None = None) -> State:
        """A new state for decoding; with an encoder, the source is encoded here, once."""
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        if self.encoder is not None and x is None:
            raise SaccadeError("an encoder-decoder starts from a source: pass one")
        source = States() if x is None else self._encoded(x, None)
        return State(self.decoder, source.encoder, source.encoder_padding)

    def decode_step(self, tokens: Tensor, state: State, *, padding: padding | None = None) -> Tensor:
        """The head's output for tokens (B,T) that follow what `state` holds; adds them to the state.

        With padding, on either side, a row brings fewer than T tokens; the output at its padding means nothing.
        """
        return self.answer(self.advance(tokens, state, padding=padding))

    def advance(self, tokens: Tensor, state: State, *, padding: padding | None = None) -> Tensor:
        """As `decode_step`, but the states (B,T,C) before the head."""
        if self.decoder is None:
            raise SaccadeError("this model has no decoder")
        lengths, left = None, False
        if padding is not None:
            _check_padding(padding, tokens)
            lengths, left = _real_lengths(tokens, padding), padding.side == "left"
        if lengths is not None and left:
            tokens = _roll(tokens, lengths, -1)  # each row goes on where its own past ends, with the padding after it
        begin = state.start
        x = self.target_embed({"tokens": tokens}, _positions(begin, tokens, lengths))
        states = self.decoder(x, state.context, context_mask=state.context_padding, caches=state.caches)
        if lengths is None:
            return states
        state.rewind(begin + lengths)  # forgets the padding
        return _roll(states, lengths, 1) if left else states

    def _shrink_deep(self) -> None:
        """DeepNet's initial weights: values, outputs and feed-forwards are smaller by beta (Wang et al. 2022)."""
        for stack, is_decoder in ((self.encoder, False), (self.decoder, True)):
            if stack is None or self.config.stack(is_decoder).order != "deep":
                continue
            _, beta = deep(self.config.encoder, self.config.decoder, is_decoder)
            for name, module in stack.named_modules():
                if isinstance(module, nn.Linear):
                    small = name.rpartition(".")[2] in ("value", "out", "up", "gate", "down")
                    nn.init.xavier_normal_(module.weight, gain=beta if small else 1.0)


def _check_padding(mask: Any, tokens: Tensor) -> None:
    """Refuses what is no padding mask, or one of another batch."""
    if not isinstance(mask, padding):
        raise SaccadeError(f"padding is saccade.padding(lengths, side), not {type(mask).__name__}")
    mask.fits(tokens.shape[0], 1, tokens.shape[-1], tokens.shape[-1], tokens.device)


def _segments_with_memory(segments: Tensor | None, memory: Memory | None) -> tuple[Tensor, Tensor] | None:
    """Segments of the queries and of the keys; a memory counts as segment 0."""
    if segments is None:
        return None
    past = segments.new_zeros(segments.shape[0], 0 if memory is None else memory.held)
    return segments, torch.cat((past, segments), 1)


def _tie_again(model: nn.Module, _: object) -> None:
    """Loading with assign=True replaces parameters, so that tied ones have come apart: ties them again."""
    assert isinstance(model, Model)
    model.tie()


def _real_lengths(x: Tensor, mask: padding) -> Tensor:
    """How many positions of x (B,T,...) are no padding, (B,)."""
    return mask.held(x.shape[1], x.device)


def _positions(begin: int | Tensor, tokens: Tensor, lengths: Tensor | None) -> int | Tensor:
    """The positions of tokens (B,T) from `begin` on: one number where all rows are alike, else (B,T), padding at 0."""
    if lengths is None and not isinstance(begin, Tensor):
        return begin
    steps = torch.arange(tokens.shape[1], device=tokens.device)
    first = begin.view(-1, 1) if isinstance(begin, Tensor) else begin
    positions = (first + steps).expand(tokens.shape[0], -1)
    return positions if lengths is None else positions.masked_fill(steps >= lengths.view(-1, 1), 0)


def _roll(x: Tensor, lengths: Tensor, way: int) -> Tensor:
    """x (B,T,...) with the padding of each row moved from the right to the left (way 1) or back (-1)."""
    T = x.shape[1]
    places = (torch.arange(T, device=x.device) - way * (T - lengths).view(-1, 1)) % T  # (B or 1, T)
    return x[torch.arange(x.shape[0], device=x.device).view(-1, 1), places.expand(x.shape[0], -1)]
