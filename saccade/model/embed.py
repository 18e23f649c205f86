"""`Embed`: from an input to vectors: those of its values, plus those of their positions and segments.

`EMBEDS` names what turns an Input's values into vectors, as `HEADS` names what turns states into answers. An entry is a
module made with `config`; it

    forward(values)                       gives the vectors (B,T,C) of the named tensors that it knows; with the padding
                                          of these values behind them, where it is `padded`
    counted(lengths)                      says how many vectors so many values become, (B,) -> (B,)
    sides(height, width)                  of pictures: the rows and columns of the grid of vectors
    edges(values)                         of graphs: their edges
    anchors(values), groups(values)       of queries: the logits of their places, and which of them see each other
    spots(values)                         of points: where they are, as shares of the space
    pairs(values)                         what is known of pairs of positions, (B,T,T,P)
    sample(rows, length, ...)             draws values that become `length` vectors, to try a model out
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade import spec
from saccade.attend.edges import Edges
from saccade.attend.initial import normal
from saccade.attend.mask import padding
from saccade.attend.numbers import dtype
from saccade.attend.position import as_position, learned, on_input
from saccade.config import ModelConfig, read
from saccade.error import SaccadeError
from saccade.model.cells import Sides, places
from saccade.model.convolutions import convolutions
from saccade.model.dropout import dropout
from saccade.model.frames import frames
from saccade.model.input import Input, as_input
from saccade.model.nodes import nodes
from saccade.model.norm import NORMS
from saccade.model.pair_embed import pairs
from saccade.model.patches import patches
from saccade.model.points import points
from saccade.model.pyramid import pyramid
from saccade.model.queries import QUERIES
from saccade.model.tokens import rows_of, tokens
from saccade.model.tracks import tracks


class Embedded(NamedTuple):
    """Vectors (B,T,C) as a stack takes them, their padding, their places, the segments (B,T) they belong to, and of a
    picture the rows and columns of its cells. context: of other inputs, which these vectors look at. edges: of graphs.
    pairs: vectors (B,T,T,P) of what is known of pairs of positions. anchors: the logits of the places of queries,
    (B,T,2k). groups: (B,T), only those of one number see each other.
    """

    vectors: Tensor
    padding: padding | None = None
    places: Tensor | None = None
    segments: Tensor | None = None
    grid: Sides | None = None
    context: Embedded | None = None
    edges: Edges | None = None
    pairs: Tensor | None = None
    anchors: Tensor | None = None
    groups: Tensor | None = None


class Embed(nn.Module):
    """An entry of `EMBEDS`, as a submodule of that name, + position + segment; then a norm where BERT has one."""

    def __init__(self, config: ModelConfig, text: str = "tokens") -> None:
        super().__init__()
        self.name, _ = spec.arguments(text, EMBEDS, "embed")
        self.add_module(self.name, spec.read(text, EMBEDS, "embed", config=config))
        self.position = as_position(config.position, input_width=config.width) if on_input(config.position) else None
        kinds = normal(config.segments, config.width) if config.segments else None
        self.segments = None if kinds is None else nn.Embedding.from_pretrained(kinds, freeze=False)
        self.norm = NORMS[config.norm](config.width, config.epsilon) if config.norm_embedding else None
        self.offset, self.dropout = config.offset, config.dropout
        self.named = [*CLASS_TOKENS[: config.class_tokens], *(f"register {n + 1}" for n in range(config.registers))]
        self.extras = normal(len(self.named), config.width) if self.named else None  # vectors before the input
        self.class_tokens = config.class_tokens

    @property
    def part(self) -> Any:
        """The entry of `EMBEDS`."""
        return getattr(self, self.name)

    @property
    def table(self) -> Tensor | None:
        """The vectors of a vocabulary (V,C); None where it reads no tokens."""
        return getattr(self.part, "table", None)

    @property
    def room(self) -> int | None:
        """How much of an input there are positions for; None: any, as of a grid, whose table is interpolated."""
        if not isinstance(self.position, learned) or len(self.position.sides) == 2:
            return None
        return (self.position.sides[0] - self.offset) * getattr(self.part, "stride", 1)

    def grid(self, values: Mapping[str, Tensor]) -> Sides | None:
        """The rows and columns of a picture's cells; None: what is read lies on no grid."""
        if not hasattr(self.part, "sides"):
            return None
        height, width = values["pixels"].shape[2:]
        return self.part.sides(height, width)

    def forward(
        self,
        values: Mapping[str, Tensor],
        start: int | Tensor = 0,
        mask: padding | None = None,
        given: padding | None = None,
    ) -> Tensor:
        """start: the position of the first vector, or all positions (B,T). mask: where padding stands on the left,
        positions count from the first real vector; what stands before it is at 0 and never looked at. given: the
        padding of the values, of which a vector may stand for several.
        """
        x = self.part(values, given) if getattr(self.part, "padded", False) else self.part(values)
        if self.position is not None:
            start = start if mask is None or mask.side == "right" else _positions_behind_padding(x, mask)
            x = self.position.on_input(x, start + self.offset, self.grid(values))
        if self.segments is not None:
            x = x + self._segment_vectors(values.get("segments"), x)
        x = x if self.extras is None else torch.cat((self._extras().expand(len(x), -1, -1), x), 1)
        x = x if self.norm is None else self.norm(x)
        return dropout(x, self.dropout, self.training)

    def read(self, x: Input | Tensor) -> Embedded:
        """The vectors of an input, and what a stack must know of them."""
        x, more = as_input(x), len(self.named)
        mask = padding(self.part.counted(x.lengths[0]), x.side) if x.lengths else None
        if more and mask is not None and mask.side == "left":
            raise SaccadeError("class tokens and registers stand before the input: put the padding on the right")
        grid = self.grid(x.values)
        given = x.places if grid is None or x.places is not None else places(grid, x.device)
        vectors = self(x.values, 0 if given is None else given, mask, x.padding)
        mask = mask if mask is None or not more else padding(self.part.counted(x.lengths[0]) + more)
        found = Embedded(vectors, mask, _behind_extras(given, more), x.values.get("segments"), grid)
        doors = {name: getattr(self.part, name)(x.values) for name in DOORS if hasattr(self.part, name)}
        return found._replace(**doors)

    def spots_of(self, x: Input, grid: Sides | None, count: int) -> Tensor:
        """Where each of its `count` vectors lies, as shares of the example along each axis, (B or 1,T,k): the middle of
        a cell (from the left, then from above), of a stretch of time, or a point.
        """
        if self.named:
            raise SaccadeError("class tokens and registers lie nowhere, and anchors look at places: leave them out")
        if hasattr(self.part, "spots"):
            found: Tensor = self.part.spots(x.values)
            return found
        if grid is not None:
            shares = (places(grid, x.device) + 0.5) / torch.tensor(grid, device=x.device)
            return shares.flip(2).to(self.dtype)
        whole = next(iter(x.values.values())).shape[1]
        read = x.lengths[0] if x.lengths else torch.tensor([whole], device=x.device)
        middles = (torch.arange(count, device=x.device) + 0.5) * getattr(self.part, "stride", 1)
        return (middles / read.unsqueeze(1).clamp(min=1)).unsqueeze(2).to(self.dtype)

    def registers_of(self, states: Tensor) -> Tensor:
        """The states (B,n,C) of its registers, among those of all that it made."""
        return states[:, self.class_tokens : len(self.named)]

    @property
    def dtype(self) -> torch.dtype:
        """The type of its first weight."""
        return next(self.parameters()).dtype

    def _extras(self) -> Tensor:
        """The vectors before the input, (n,C), with positions where the table has rows for them."""
        assert self.extras is not None
        return self.position.on_extras(self.extras) if isinstance(self.position, learned) else self.extras

    def sample(self, rows: int, length: int, **how: Any) -> Input:
        """An input at random of `length` vectors a row."""
        return Input(self.part.sample(rows, length, **how))

    def _segment_vectors(self, segments: Tensor | None, x: Tensor) -> Tensor:
        """The vectors of segments (B,T); without any, that of the first."""
        assert self.segments is not None
        if segments is None:
            return self.segments.weight[0]
        belongs(segments, x)
        return rows_of(self.segments.weight, segments, "segment", "kinds")


def embedded_alike(one: ModelConfig, other: ModelConfig) -> bool:
    """Whether two stacks read by one embedding: all that it is made of is the same."""
    keys = ("embed", "vocab", "width", "segments", "scale_embedding", "norm_embedding", "class_tokens", "registers")
    places = [(each.position, each.offset) if on_input(each.position) else None for each in (one, other)]
    return places[0] == places[1] and all(getattr(one, key) == getattr(other, key) for key in keys)


def belongs(segments: Tensor, x: Tensor) -> None:
    """Refuses segments unless there is one for each vector of x (B,T,C)."""
    if segments.shape != x.shape[:2] or segments.is_floating_point():
        raise SaccadeError(
            f"segments are whole numbers, one a token; got {dtype(segments)} {tuple(segments.shape)} for tokens "
            f"{tuple(x.shape[:2])}"
        )


def sides_of(text: str, height: int, width: int) -> Sides:
    """The rows and columns of the grid that an embed, written as a spec, makes of a picture."""
    with torch.device("meta"):
        made = spec.read(text, EMBEDS, "embed", config=read(ModelConfig, {"width": 1, "heads": 1, "encoder": 1}))
    return made.sides(height, width)


def counted_of(text: str, lengths: Any) -> Tensor:
    """How many vectors an embed, written as a spec, makes of so many values (a number, or an array of numbers)."""
    with torch.device("meta"):
        made = spec.read(text, EMBEDS, "embed", config=read(ModelConfig, {"width": 2, "heads": 1, "encoder": 1}))
    found: Tensor = made.counted(torch.as_tensor(lengths, device="cpu"))
    return found


def _behind_extras(places: Tensor | None, count: int) -> Tensor | None:
    """Places with -1 for so many vectors before them."""
    if places is None or not count:
        return places
    nowhere = torch.full_like(places[:, :1], -1).expand(-1, count, *places.shape[2:])
    return torch.cat((nowhere, places), 1)


def _positions_behind_padding(x: Tensor, mask: padding) -> Tensor:
    """The positions (B,T) of x (B,T,C), counted from the end of the padding on its left."""
    pads = x.shape[1] - mask.held(x.shape[1], x.device)
    return (torch.arange(x.shape[1], device=x.device) - pads.view(-1, 1)).clamp(min=0)


DOORS = ("edges", "pairs", "anchors", "groups")  # what a part may tell of its values beside the vectors
CLASS_TOKENS = ("class", "distillation")  # what the first vectors before an input are called
EMBEDS: dict[str, Callable[..., nn.Module]] = {
    "tokens": tokens,
    "patches": patches,
    "convolutions": convolutions,
    "frames": frames,
    "pyramid": pyramid,
    "nodes": nodes,
    "points": points,
    "pairs": pairs,
    **QUERIES,
    "tracks": tracks,
}
