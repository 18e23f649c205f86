"""A stack of blocks with one position and, where the order asks for it, a last norm."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.cache import Cache
from saccade.attend.mask import Mask, as_mask, window
from saccade.attend.position import POSITIONS, Position, as_position, on_input
from saccade.attend.summary import as_summary
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model.block import Block, BlockCache
from saccade.model.cross import as_kind
from saccade.model.norm import NORMS
from saccade.model.parts import Source


class Memory:
    """What each layer of a stack saw of earlier segments (Transformer-XL); the caller makes and owns it."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.states: dict[int, Tensor] = {}

    @property
    def held(self) -> int:
        """How many positions it holds already."""
        return next(iter(self.states.values())).shape[1] if self.states else 0

    def keep(self, number: int, x: Tensor) -> Tensor | None:
        """What layer `number` saw before, (B,M,C); from now on x too, the last `length` of all, without gradients."""
        past = self.states.get(number)
        known = x.detach() if past is None else torch.cat((past, x.detach()), 1)
        self.states[number] = known[:, max(known.shape[1] - self.length, 0) :].clone()  # lest a view keep all of it
        return past


class Stack(nn.Module):
    """(B,T,C) -> (B,T,C). A decoder is causal, and looks at a context if there is an encoder.

    With a memory of M, a step with caches looks at its own place and the M before it, as if every token were a segment
    of its own: so what a decoder says does not depend on how the tokens before were cut into calls.
    """

    def __init__(self, config: ModelConfig, *, decoder: bool) -> None:
        super().__init__()
        depth, mixers = (config.decoder if decoder else config.encoder), config.mixers(decoder)
        cross = decoder and config.encoder > 0
        source = Source.of(config) if cross else None
        config = config.stack(decoder)
        alpha, _ = deep(config.encoder, config.decoder, decoder) if config.order == "deep" else (1.0, 1.0)
        position: Position | str | None = layer_position(config, mixers, decoder)
        if config.share_position:
            head_width = config.width // config.heads if config.head_width is None else config.head_width
            position = as_position(position, head_width=head_width, heads=config.heads, input_width=config.width)
        summary: nn.Module | str | None = None if decoder else config.summary
        if config.share_summary:
            summary = as_summary(summary, heads=config.kv_heads or config.heads)
        self.shares = as_kind(config.cross, 0).shares if cross else None  # by all layers
        self.reach = window(config.memory + 1) if decoder and not cross and config.memory else None  # with caches
        self.blocks = nn.ModuleList(
            Block(
                config,
                mask=_mask(config, decoder, number),
                position=position,
                summary=summary,
                mixer=mixers[min(number, len(mixers) - 1)],
                number=number,
                causal=decoder,
                source=source,
                alpha=alpha,
            )
            for number in range(depth)
        )
        last = config.order in ("pre", "parallel") if config.final_norm is None else config.final_norm
        self.norm = NORMS[config.norm](config.width, config.epsilon) if last else None

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        mask: Mask | None = None,
        context_mask: Mask | None = None,
        caches: list[BlockCache] | None = None,
        memory: Memory | None = None,
        segments: tuple[Tensor, Tensor] | None = None,
        places: Tensor | None = None,
        layers: list[Tensor] | None = None,
    ) -> Tensor:
        """places: where x stands, for positions that turn, (B or 1,T) or (B or 1,T,2).

        layers: where the states of every layer are put, normed as the last are, for who asks for them.
        """
        if caches is not None and self.reach is not None:
            mask = self.reach if mask is None else self.reach & mask
        shared: dict[str | None, dict[str, Any]] = {"found": {"found": []}, "embedded": {"embedded": x}}
        further = {**shared.get(self.shares, {}), "segments": segments, "places": places}
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            past = None if memory is None else memory.keep(number, x)
            given = {"mask": mask, "context_mask": context_mask, "cache": cache, "past": past}
            x = block(x, context, **given, **further)
            if layers is not None:
                layers.append(self.normed(x))
        return self.normed(x) if layers is None else layers[-1]

    def normed(self, x: Tensor) -> Tensor:
        """States as they leave the stack."""
        return x if self.norm is None else self.norm(x)

    @property
    def windows(self) -> list[int | None]:
        """How many positions of the past each block needs, its own among them; None: all."""
        return [_window(cast(Any, block).mix, self.reach) for block in self.blocks]  # a compiled block has them too

    def caches(self) -> list[BlockCache]:
        """Fresh caches, one a block; only what attends to everything before it can fold its past into a state."""
        mixers = [cast(Any, block).mix for block in self.blocks]
        folds = [getattr(each, "fold", None) if self.reach is None else None for each in mixers]
        return [BlockCache(Cache(*each), Cache()) for each in zip(self.windows, folds, strict=True)]

    def two_streams(
        self,
        seen: Tensor,
        asking: Tensor,
        *,
        mask: Mask,
        strict: Mask,
        memory: Memory | None = None,
        segments: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """XLNet: each block runs twice, over what is seen (under `mask`) and over what asks, which looks at the seen
        but not at its own place (`strict`). Gives the second stream's states (B,T,C).
        """
        for number, block in enumerate(self.blocks):
            past = None if memory is None else memory.keep(number, seen)
            asking = block(asking, mask=strict, past=past, seen=seen, segments=segments)
            seen = block(seen, mask=mask, past=past, segments=segments)
        return self.normed(asking)


def layer_position(config: ModelConfig, mixers: list[str], decoder: bool) -> str | None:
    """The position that layers use; those of the input belong to the embedding. A decoder's t5 looks one way."""
    if config.position is None or on_input(config.position):
        return None
    if "attention" not in mixers:
        where = "decoder" if decoder else "encoder"
        raise SaccadeError(
            f"the position {config.position!r} belongs to self-attention, and the {where} has none: leave position out "
            "(-o model.position=), or write sinusoid or learned(n)"
        )
    name, found = spec.arguments(config.position, POSITIONS, "position")
    if name == "t5" and decoder:
        return f"t5({found['buckets']}, {found['distance']}, bidirectional=False)"
    return config.position


def _window(mixer: Any, reach: window | None) -> int | None:
    """How many positions a mixer needs; one whose mask means absolute places needs all, however far it looks."""
    if reach is None or not mixer.mask.relative():
        return mixer.window
    return reach.n if mixer.window is None else min(mixer.window, reach.n)


def deep(encoder: int, decoder: int, is_decoder: bool) -> tuple[float, float]:
    """DeepNet's alpha (of the residual) and beta (of the initial weights), for N encoder and M decoder layers."""
    N, M = encoder, decoder
    if N and M:
        if is_decoder:
            return (3 * M) ** 0.25, (12 * M) ** -0.25
        return 0.81 * (N**4 * M) ** (1 / 16), 0.87 * (N**4 * M) ** (-1 / 16)
    return (2 * (N + M)) ** 0.25, (8 * (N + M)) ** -0.25


def _mask(config: ModelConfig, decoder: bool, number: int) -> Mask | None:
    """What layer `number` may look at: causal in a decoder, the model's mask, and its letter of the pattern."""
    specs = ["causal"] if decoder else []
    specs += [config.mask] if config.mask else []
    specs += [config.masks[config.pattern[number % len(config.pattern)]]] if config.pattern else []
    mask = None
    for each in specs:
        mask = as_mask(each) if mask is None else mask & as_mask(each)
    return mask
