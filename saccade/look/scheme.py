"""Masks and positions as maps, drawn from what is written in a spec, without any model.

The heat map of the sinusoids follows the lecture's: 100 positions, 500 numbers each (Vaswani et al. 2017).
"""

from __future__ import annotations

import re

import torch
from torch import Tensor

from saccade.attend.grid import Grid
from saccade.attend.mask import MASKS, Mask, as_mask
from saccade.attend.position import POSITIONS, Position, as_position
from saccade.error import SaccadeError, nearest
from saccade.look.map import Map

LONGEST = 4096  # tokens, and numbers a token, of a scheme
LENGTH, WIDTH, TOKENS = 100, 500, 16
HEADS, HEAD_WIDTH = 8, 64  # of the attention that a position on heads or scores is shown for


def scheme_of(text: str, length: int | None = None, width: int | None = None, *, most: int = LONGEST) -> Map:
    """The map of a mask or a position, from its spec. Without a length or width, the usual one, or `most` if less."""
    name = next(iter(re.findall(r"[A-Za-z_]\w*", text)), text)
    if name in POSITIONS:
        length, width = (
            min(usual, most) if each is None else each for each, usual in ((length, LENGTH), (width, WIDTH))
        )
        return of_position(text, length, width)
    if name not in MASKS:
        known = nearest(name, [*MASKS, *POSITIONS])
        raise SaccadeError(f"{text!r} is no folder, and no mask or position is called {name!r}; {known}")
    if width is not None:
        raise SaccadeError(f"a mask has no width: {text!r} is drawn for a length alone")
    return of_mask(text, min(TOKENS, most) if length is None else length)


def of_mask(mask: str | Mask, T: int) -> Map:
    """Who may look at whom among T tokens: 1 where a query (row) may look at a key (column)."""
    found = as_mask(mask)
    may = found(_check_length("length", T))
    if may.dim() != 2:
        raise SaccadeError(f"the mask {found!r} differs from example to example: draw it for one of them")
    return _numbered_map(may.float(), mask if isinstance(mask, str) else repr(mask))


def of_position(position: str, length: int = LENGTH, width: int = WIDTH) -> Map:
    """What a position gives to `length` tokens. On the input: the numbers of each token, (length, width). On the
    scores: what head 0 of 8 adds for each pair of tokens, with one and the same query everywhere. On the heads:
    the product of one vector with itself, turned by two places.

    What a position learns is random here: only its pattern means something.
    """
    T, width = _check_length("length", length), _check_length("width", width)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        made = as_position(position, head_width=HEAD_WIDTH, heads=HEADS, input_width=width)
        if made is None:
            raise SaccadeError("there is no position to draw: name one, as in 'sinusoid'")
        door = next(each for each in DOORS if each in made.doors)
        return _numbered_map(DOORS[door](made, T, width), position)


def _on_input(position: Position, T: int, width: int) -> Tensor:
    found = position.on_input(torch.zeros(1, T, width))[0]
    return found if found.shape[-1] == width else found[:, width:]  # concatenated behind the input


def _on_scores(position: Position, T: int, _: int) -> Tensor:
    q = torch.randn(1, HEADS, 1, HEAD_WIDTH).expand(1, HEADS, T, HEAD_WIDTH)
    bias = position.on_scores(q, q, Grid(T, T, 0, q.device))
    return bias.expand(1, HEADS, T, T)[0, 0]


def _on_heads(position: Position, T: int, _: int) -> Tensor:
    x = torch.full((1, 1, T, HEAD_WIDTH), HEAD_WIDTH**-0.5)
    (turned,) = position.on_heads(x, torch.arange(T)[None])[0]
    return turned @ turned.T


def _numbered_map(values: Tensor, title: str) -> Map:
    R, C = values.shape
    names = [str(each) for each in range(max(R, C))]
    return Map(values.float().contiguous(), names[:R], names[:C], list(range(R)), list(range(C)), title)


def _check_length(what: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LONGEST:
        raise SaccadeError(f"{what} is a whole number from 1 to {LONGEST}; got {value!r}")
    return value


DOORS = {"input": _on_input, "scores": _on_scores, "heads": _on_heads}
