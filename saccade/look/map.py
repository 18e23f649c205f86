"""`Map`: who looked at whom, as a matrix with names on both sides; and how a large one becomes a small one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.decode.sequence import is_whole
from saccade.error import SaccadeError
from saccade.field.unit import Side

SLICE = 1 << 22  # weights that are computed at a time


@dataclass(frozen=True)
class Map:
    """values (R,C) float32. A row and a column have a name each, and the number of the first token (or word) that
    they stand for: where the map was made smaller, a cell is the value furthest from 0 of all it covers.
    """

    values: Tensor
    rows: list[str]
    columns: list[str]
    row_places: list[int]
    column_places: list[int]
    title: str = ""

    def __post_init__(self) -> None:
        R, C = self.values.shape
        sides = (self.rows, self.row_places, R, "rows"), (self.columns, self.column_places, C, "columns")
        for names, places, count, what in sides:
            if not len(names) == len(places) == count:
                raise SaccadeError(f"a map of {count} {what} needs {count} names and places; got {len(names)} names")


class TokenGroup(NamedTuple):
    """One row or column before a map is made smaller: a token, or the tokens of a word."""

    name: str
    place: int  # its number among the tokens, or among the words
    tokens: list[int]


def token_groups(side: Side, words: bool, hidden: set[int]) -> list[TokenGroup]:
    """The tokens of a side, or its words, without what is hidden."""
    if not words:
        tokens = enumerate(side.tokens)
        return [TokenGroup(token.text, number, [number]) for number, token in tokens if number not in hidden]
    found: dict[int, list[int]] = {}
    for number, token in enumerate(side.tokens):
        if number not in hidden:
            found.setdefault(token.word, []).append(number)
    return [TokenGroup(side.words[word], word, tokens) for word, tokens in found.items()]


def within(groups: list[TokenGroup], span: tuple[int, int] | None, what: str) -> list[TokenGroup]:
    """The groups whose number lies in the span."""
    if span is None:
        return groups
    if len(span) != 2 or not all(map(is_whole, span)) or not 0 <= span[0] < span[1]:
        raise SaccadeError(f"{what} go from a number to a larger one; got {span!r}")
    begin, end = span
    return [each for each in groups if begin <= each.place < end]


Weigh = Callable[[Tensor], Tensor]  # rows (r,) -> the weights of these rows in each head, (h,r,S)


def fold(
    weigh: Weigh, rows: list[TokenGroup], columns: list[TokenGroup], head: str, size: int | None, title: str = ""
) -> Map:
    """The map of these units: columns are added up, rows averaged, heads averaged or their maximum taken; where there
    are more than `size`, a cell is the value furthest from 0 of all it covers.
    """
    tall, wide = step_of(len(rows), size), step_of(len(columns), size)
    values = _folded(weigh, rows, columns, head, tall, wide)
    rows, columns = rows[::tall], columns[::wide]
    names = [unit.name for unit in rows], [unit.name for unit in columns]
    return Map(values, *names, [unit.place for unit in rows], [unit.place for unit in columns], title)


@torch.no_grad()
def _folded(weigh: Weigh, rows: list[TokenGroup], columns: list[TokenGroup], head: str, tall: int, wide: int) -> Tensor:
    """The values (R,C), computed a few rows at a time."""
    if not rows or not columns:
        return torch.zeros(-(-len(rows) // tall), -(-len(columns) // wide))
    gathered = torch.tensor([token for unit in columns for token in unit.tokens])
    spans = torch.tensor([len(unit.tokens) for unit in columns])
    one = weigh(torch.tensor(rows[0].tokens[:1]))
    cells = max(1, SLICE // (one.shape[0] * one.shape[2] * tall * max(len(unit.tokens) for unit in rows)))
    made = []
    for begin in range(0, len(rows), tall * cells):
        some = rows[begin : begin + tall * cells]
        weights = weigh(torch.tensor([token for unit in some for token in unit.tokens])).float()
        weights = _added(weights[..., gathered.to(weights.device)], spans, 2)
        counts = torch.tensor([len(unit.tokens) for unit in some])
        weights = _added(weights, counts, 1) / counts.to(weights.device)[:, None]
        weights = weights.mean(0) if head == "mean" else weights.amax(0)
        made.append(furthest(weights, tall, wide).cpu())
    return torch.cat(made)


def step_of(count: int, size: int | None) -> int:
    """How many units a cell covers so that there are at most `size` cells."""
    return 1 if size is None or count <= size else -(-count // size)


def _added(x: Tensor, spans: Tensor, dim: int) -> Tensor:
    """x with neighbours along a dimension added up, as many at a time as spans (n,) says."""
    if int(spans.max()) == 1:
        return x
    shape = list(x.shape)
    shape[dim] = len(spans)
    owner = torch.arange(len(spans)).repeat_interleave(spans).to(x.device)
    return x.new_zeros(shape).index_add_(dim, owner, x)


def furthest(x: Tensor, tall: int, wide: int) -> Tensor:
    """The value furthest from 0 of each cell of x (R,C); of two alike the one above 0."""
    if tall == wide == 1:
        return x
    high, low = (sign * F.max_pool2d(sign * x[None, None], (tall, wide), ceil_mode=True)[0, 0] for sign in (1, -1))
    return torch.where(high >= -low, high, low)
