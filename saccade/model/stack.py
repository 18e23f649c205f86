"""A stack of blocks with one position and, where the order asks for it, a last norm."""

from __future__ import annotations

from bisect import bisect
from functools import lru_cache
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.cache import Cache
from saccade.attend.edges import Edges
from saccade.attend.mask import Mask, as_mask, window
from saccade.attend.position import POSITIONS, Position, as_position, on_input
from saccade.attend.sparse import windows
from saccade.attend.summary import as_summary
from saccade.config import ModelConfig
from saccade.error import SaccadeError
from saccade.model import cells
from saccade.model.anchors import AnchorPass, AnchorStack, AnchorStates
from saccade.model.block import Block, BlockCache
from saccade.model.cells import Sides
from saccade.model.cross import as_kind
from saccade.model.layer_positions import LayerPositions
from saccade.model.merge import as_merge
from saccade.model.mixer import check_names
from saccade.model.norm import NORMS
from saccade.model.pairs import PairPass, PairStack, PairStates
from saccade.model.parts import EncoderOutput
from saccade.model.queries import axes_of


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
        last = known[:, max(known.shape[1] - self.length, 0) :]
        self.states[number] = last.clone()  # a view would keep all of `known` in memory
        return past


class Stack(nn.Module):
    """(B,T,C) -> (B,T,C). A decoder is causal unless it is of a set, and looks at a context if there is an encoder.

    With a memory of M, a step with caches looks at its own place and the M before it, as if every token were a segment
    of its own: so what a decoder says does not depend on how the tokens before were cut into calls.
    """

    def __init__(self, config: ModelConfig, *, decoder: bool) -> None:
        super().__init__()
        depth, mixers = (config.decoder if decoder else config.encoder), config.mixers(decoder)
        check_names(mixers)
        source = EncoderOutput.looked_at_by(config, decoder)
        stages = [] if decoder else config.stages
        config = config.stack(decoder)
        config = config if decoder else config.model_copy(update={"cross": "attention"})  # a decoder alone has others
        self.window = 0 if decoder else config.window
        self.firsts = list(accumulate(stages))[:-1]  # the numbers of the layers before which cells are merged
        last_stage = len(self.firsts)
        alpha, _ = deep(config.encoder, config.decoder, decoder) if config.order == "deep" else (1.0, 1.0)
        position: Position | str | None = layer_position(config, mixers, decoder)
        if config.share_position:
            head_width = config.width // config.heads if config.head_width is None else config.head_width
            position = as_position(position, head_width=head_width, heads=config.heads, input_width=config.width)
        summary: nn.Module | str | None = None if decoder else config.summary
        if config.share_summary:
            summary = as_summary(summary, heads=config.kv_heads or config.heads)
        self.shares = None if source is None else as_kind(config.cross, 0).shares  # what layers pass on beside states
        self.reach = window(config.memory + 1) if decoder and source is None and config.memory else None  # with caches
        self.blocks = nn.ModuleList(
            Block(
                config.widened(bisect(self.firsts, number)),
                mask=_layer_mask(config, decoder, number),
                position=position,
                summary=summary,
                mixer=mixers[min(number, len(mixers) - 1)],
                number=number,
                causal=decoder and not config.queried,
                source=source,
                alpha=alpha,
                path_dropout=config.path_dropout * number / max(depth - 1, 1),
            )
            for number in range(depth)
        )
        if self.firsts:
            self.merges = nn.ModuleList(as_merge(config.merge, config.widened(n)) for n in range(last_stage))
        self.pairs = PairStack(config, depth) if config.pair and not decoder else None
        again = config.layer_positions and not decoder and depth > 1
        self.positions = LayerPositions(config, depth) if again else None
        axes = axes_of(config) if decoder else 0
        self.anchors = AnchorStack(config, depth, axes) if axes else None
        last = config.order in ("pre", "parallel") if config.final_norm is None else config.final_norm
        self.norm = NORMS[config.norm](config.widened(last_stage).width, config.epsilon) if last else None

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
        grid: Sides | None = None,
        edges: Edges | None = None,
        pairs: PairStates | None = None,
        anchors: AnchorStates | None = None,
    ) -> Tensor:
        """places: where x stands, for positions that ask, (B or 1,T) or (B or 1,T,2).

        layers: a list that takes the states of every layer, normed as the last are. grid: the rows and columns of a
        picture's cells. edges: those of a batch of graphs. pairs, anchors: what is known of pairs of positions, and of
        the places of queries; they take what the layers make of them.
        """
        if (self.firsts or self.window) and grid is None:
            raise SaccadeError("stages and windows are of a picture, whose cells lie on a grid: give one as the input")
        if caches is not None and self.reach is not None:
            mask = self.reach if mask is None else self.reach & mask
        shared: dict[str | None, dict[str, Any]] = {"found": {"found": []}, "embedded": {"embedded": x}}
        further = {**shared.get(self.shares, {}), "segments": segments, "places": places, "edges": edges}
        beside = None if self.pairs is None else PairPass(self.pairs, x, pairs, mask)
        anchored = None if self.anchors is None or anchors is None else AnchorPass(self.anchors, anchors)
        tables = None if self.positions is None else self.positions(grid)
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            if number in self.firsts:
                x, grid = self.merges[self.firsts.index(number)](x, grid)
                further["places"] = cells.places(grid, x.device)
            if tables is not None and number:
                x = x + tables[number - 1]
            past = None if memory is None else memory.keep(number, x)
            given = {"mask": self._mask_of(number, grid, mask), "context_mask": context_mask}
            bias = None if beside is None else beside.bias(number)
            bias, context_bias = (bias, None) if anchored is None else anchored.biases(number, x)
            biases = {"bias": bias, "context_bias": context_bias}
            x = block(x, context, **given, cache=cache, past=past, grid=grid, **biases, **further)
            if beside is not None:
                beside.update(number, x)
            if layers is not None:
                layers.append(self.normed(x))
            if anchored is not None:
                anchored.update(number, self.normed(x) if layers is None else layers[-1])
        last = self.normed(x) if layers is None else layers[-1]
        if beside is not None:
            beside.end(last)
        return last

    def _mask_of(self, number: int, grid: Sides | None, mask: Mask | None) -> Mask | None:
        """What layer `number` may look at beside what its own mask says: the windows of a picture, in every other
        layer of a stage shifted by half of their side (Liu et al. 2021).
        """
        if not self.window or grid is None or min(grid) < 2:
            return mask
        inside = number - max((each for each in self.firsts if each <= number), default=0)
        size = min(self.window, *grid)
        shift = size // 2 if inside % 2 and min(grid) > self.window else 0
        if (size, size) == grid:
            return mask
        found = _windows(*grid, size, shift)
        return found if mask is None else mask & found

    def grid_after(self, grid: Sides | None) -> Sides | None:
        """The rows and columns that a picture's cells have above all stages: each merge halves both."""
        for _ in self.firsts:
            grid = None if grid is None else (-(-grid[0] // 2), -(-grid[1] // 2))
        return grid

    def normed(self, x: Tensor) -> Tensor:
        """States as they leave the stack."""
        return x if self.norm is None else self.norm(x)

    @property
    def windows(self) -> list[int | None]:
        """How many positions of the past each block needs, its own among them; None: all."""
        return [_window_of(cast(Any, block).mix, self.reach) for block in self.blocks]  # a compiled block has them too

    def caches(self) -> list[BlockCache]:
        """Empty caches, one a block; only layers that see everything before them can fold their past into a state."""
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


@lru_cache(64)
def _windows(height: int, width: int, size: int, shift: int) -> Mask:
    """The same mask for the same sizes, so that what is planned for it is found again."""
    return windows(height, width, size, shift)


def _window_of(mixer: Any, reach: window | None) -> int | None:
    """How many past positions a mixer needs; with absolute positions in its mask it needs all, however far it looks."""
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


def _layer_mask(config: ModelConfig, decoder: bool, number: int) -> Mask | None:
    """What layer `number` may look at: causal in a decoder, the model's mask, and its letter of the pattern."""
    specs = ["causal"] if decoder and not config.queried else []
    specs += [config.mask] if config.mask else []
    specs += [config.masks[config.pattern[number % len(config.pattern)]]] if config.pattern else []
    mask = None
    for each in specs:
        mask = as_mask(each) if mask is None else mask & as_mask(each)
    return mask
