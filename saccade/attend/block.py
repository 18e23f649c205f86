"""`block`: what the mask leaves out is not computed. The same result as with the dense mask, at the cost of the tiles
in which somebody may look at somebody; nothing of the size T x S is ever made, forward or backward.

Child et al. 2019 and Beltagy et al. 2020 (windows), Zaheer et al. 2020 (blocks), Dao et al. 2022 (torch's fused kernel,
which computes each tile, and its backward pass from the logarithms of the sums).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.attend import chunked, plain, sdpa
from saccade.attend.algebra import everyone, given
from saccade.attend.cut import KEYS, Cut, Tile, cost, cut
from saccade.attend.grid import Grid
from saccade.attend.mask import causal, padding
from saccade.attend.meaning import Meaning, called
from saccade.attend.normaliser import hard, none, sigmoid, softmax, sparsemax, sum_
from saccade.attend.score import additive, gate, is_product

# What depends on nothing but a query and a key, and on nothing but the keys of a row that it may look at.
PAIRWISE = (additive, gate)
ROWWISE = (softmax, sigmoid, hard, sparsemax, sum_, none)

# Queries from which, and the share of pairs (as tiles of 64 cost) up to which it beats a dense mask (LOG.md).
LONG, SHARE = 512, 0.4
KEPT = 64  # masks of tiles that are kept while a call lasts

# Not of torch's public face, but the one that gives the logarithms of the sums; without them `plain` computes tiles.
fused: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
fused_backward: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)


def refuses(meaning: Meaning) -> str | None:
    """Why this cannot be computed without what the mask leaves out, or None."""
    if meaning.mask is not None and not meaning.mask.tells():
        return f"block asks which keys to leave out, and {meaning.mask!r} cannot tell: use 'auto', 'plain' or 'chunked'"
    for part, known, what in (
        (meaning.score, is_product(meaning.score) or isinstance(meaning.score, PAIRWISE), "one query and one key"),
        (meaning.normaliser, isinstance(meaning.normaliser, ROWWISE), "what a query may look at"),
    ):
        if not known:
            return (
                f"block must know that {called(part)} depends on {what} alone, and does not: use 'plain' or 'chunked'"
            )
    return None


def pays(q: Tensor, meaning: Meaning, grid: Grid) -> bool:
    """Whether this is faster than to compute all pairs: long calls, of which the mask leaves out most."""
    mask = meaning.mask
    if mask is None or grid.T < LONG or torch.compiler.is_compiling() or not q.is_cpu or refuses(meaning):
        return False
    terms = mask.terms()
    if all(term in (causal, everyone) or isinstance(term, padding) for term in terms):
        return False  # sdpa has ways of its own for these
    if not q.shape[0] or isinstance(grid.start, Tensor) or any(isinstance(term, given) for term in terms):
        return False
    each = mask.alone(0) is not mask  # example by example
    return (2 * LONG if each else LONG) <= grid.T and cost(mask, grid) < SHARE * grid.T * grid.S


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E)."""
    if torch.compiler.is_compiling():  # a graph cannot depend on what the mask says
        return chunked.attend(q, k, v, meaning, grid, dropout)
    if not (q.shape[0] and q.shape[2] and k.shape[2]):
        return plain.attend(q, k, v, meaning, grid, dropout)
    mask = everyone if meaning.mask is None else meaning.mask
    if isinstance(grid.start, Tensor) or (q.shape[0] > 1 and mask.alone(0) is not mask):
        examples = zip(q.split(1), k.split(1), v.split(1), strict=True)
        return torch.cat(
            [
                attend(*each, meaning._replace(mask=mask.alone(b)), grid.alone(b), dropout)
                for b, each in enumerate(examples)
            ]
        )
    plan = cut(mask, grid)
    if _fuses(q, k, v, meaning, dropout):
        assert is_product(meaning.score)
        assert isinstance(meaning.normaliser, softmax)
        q, k, v = (_cast(x) for x in (q, k, v))
        q, k, scale = meaning.score.factors(q, k)
        return Fused.apply(_dense(q), _dense(k), _dense(v), scale * meaning.normaliser.beta, plan)
    return _lawful(q, k, v, meaning, plan, dropout)


def _fuses(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, dropout: float) -> bool:
    """Whether torch's fused kernel computes a tile, and a broken number cannot reach who may not look at it."""
    placed = meaning.has("scores") or meaning.has("values")
    simple = is_product(meaning.score) and isinstance(meaning.normaliser, softmax) and not placed and not dropout
    shaped = q.device.type == "cpu" and q.shape[3] == v.shape[3] > 0
    if fused is None or fused_backward is None:
        return False
    return simple and shaped and plain.finite(k) and plain.finite(v)


def _cast(x: Tensor) -> Tensor:
    """In the type that autocast asks for, as torch's own attention is computed."""
    if torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64:
        return x.to(torch.get_autocast_dtype(x.device.type))
    return x


def _dense(x: Tensor) -> Tensor:
    """With vectors whose numbers are neighbours and which do not overlap, as the fused kernel reads them."""
    return x if x.stride(3) == 1 and x.stride(2) >= x.shape[3] else x.contiguous()


class Fused(torch.autograd.Function):
    """softmax(scale q k^T) v, tile by tile. Query heads that share a key head are computed as more rows of it."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, plan: Cut) -> Tensor:
        output = torch.empty_like(q)  # in the order of q: no copy where heads are put together again
        sums = q.new_empty(q.shape[:3], dtype=plain.widen(q).dtype)
        groups, hidden, keys, values = k.shape[1], _Hidden(plan, q, k), _Taken(plan, k), _Taken(plan, v)
        for tile in plan.tiles:
            if tile.runs:
                inputs = _fold(q, tile, groups), keys(tile), values(tile)
                part, logarithms = fused(*inputs, attn_mask=hidden(tile), scale=scale)
                _rows(output, tile).copy_(_unfold(part, q.shape[1]))
                _rows(sums, tile).copy_(_unfold(logarithms, q.shape[1]))
            else:
                _rows(output, tile).zero_()
        ctx.save_for_backward(q, k, v, output, sums)
        ctx.scale, ctx.plan = scale, plan
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        plain.once("block")
        q, k, v, output, sums = ctx.saved_tensors
        plan, groups, gradient = ctx.plan, k.shape[1], _dense(gradient)
        hidden, keys, values = _Hidden(plan, q, k), _Taken(plan, k), _Taken(plan, v)
        to_q = torch.empty_like(q)
        to_k, to_v = (torch.zeros_like(x, dtype=plain.widen(x).dtype) for x in (k, v))  # many tiles add up there
        for tile in plan.tiles:
            if tile.runs:
                g, rows, found, logarithms = (_fold(x, tile, groups) for x in (gradient, q, output, sums))
                inputs = g, rows, keys(tile), values(tile), found, logarithms
                parts = fused_backward(*inputs, 0.0, False, attn_mask=hidden(tile), scale=ctx.scale)
                _rows(to_q, tile).copy_(_unfold(parts[0], q.shape[1]))
                _add(to_k, parts[1], tile)
                _add(to_v, parts[2], tile)
            else:
                _rows(to_q, tile).zero_()
        return to_q, to_k.to(k.dtype), to_v.to(v.dtype), None, None


class _Taken:
    """The keys or values that a tile looks at: a view where they are neighbours, else copied, always to one place."""

    def __init__(self, plan: Cut, x: Tensor) -> None:
        self.x, (B, G, _, D) = x, x.shape
        widest = max((tile.width for tile in plan.tiles if len(tile.runs) > 1), default=0)
        self.place = x.new_empty(B * G * widest * D)

    def __call__(self, tile: Tile) -> Tensor:
        (B, G, _, D), runs = self.x.shape, [self.x[:, :, run.start : run.stop] for run in tile.runs]
        if len(runs) == 1:
            return runs[0]
        place = self.place[: B * G * tile.width * D].view(B, G, tile.width, D)
        return torch.cat(runs, 2, out=place)


class _Hidden:
    """What the fused kernel adds to the scores of a tile: -inf where its queries may not look, (1,G or 1,rows,keys).

    Tiles of the same shape have the same where all that hides something asks for differences alone.
    """

    def __init__(self, plan: Cut, q: Tensor, k: Tensor) -> None:
        self.plan, self.dtype, self.groups, self.heads = plan, q.dtype, k.shape[1], q.shape[1]
        self.made: dict[Any, Tensor] = {}

    def __call__(self, tile: Tile) -> Tensor | None:
        if not tile.masked:
            return None
        shape = self.plan.shape(tile)
        if shape is None:
            return self._make(tile)
        if shape not in self.made:
            if len(self.made) == KEPT:
                self.made.clear()
            self.made[shape] = self._make(tile)
        return self.made[shape]

    def _make(self, tile: Tile) -> Tensor:
        hidden = [~self.plan.may(tile, piece) if piece.terms else None for piece in tile.pieces]
        heads = max(1 if each is None else each.shape[1] for each in hidden)
        added = torch.zeros(1, heads, len(tile.rows), tile.width, dtype=self.dtype, device="cpu")
        for each, part in zip(hidden, added.split([len(piece.run) for piece in tile.pieces], 3), strict=True):
            if each is not None:
                part.masked_fill_(each, -torch.inf)
        shared = self.heads // self.groups
        if shared == 1:
            return added
        grouped = added.unsqueeze(1) if heads == 1 else added.unflatten(1, (self.groups, shared))
        return grouped.expand(-1, -1, shared, -1, -1).flatten(2, 3)  # as `_fold` folds the rows


def _rows(x: Tensor, tile: Tile) -> Tensor:
    return x[:, :, tile.rows.start : tile.rows.stop]


def _fold(x: Tensor, tile: Tile, groups: int) -> Tensor:
    """A tile's rows of x (B,H,T,...), those of heads that share a key head behind each other: (B,G,H/G*rows,...)."""
    rows = _rows(x, tile)
    return rows if x.shape[1] == groups else rows.unflatten(1, (groups, -1)).flatten(2, 3)


def _unfold(x: Tensor, heads: int) -> Tensor:
    """(B,G,H/G*rows,...) -> (B,H,rows,...)."""
    return x if x.shape[1] == heads else x.unflatten(2, (heads // x.shape[1], -1)).flatten(1, 2)


def _add(whole: Tensor, part: Tensor, tile: Tile) -> None:
    at = 0
    for run in tile.runs:
        whole[:, :, run.start : run.stop] += part[:, :, at : at + len(run)]
        at += len(run)


def _swift(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning) -> bool:
    """Whether torch's kernel keeps the law in a tile: in float32, as `plain` computes, and with nothing broken."""
    if not q.is_cpu or q.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled("cpu"):
        return False
    return sdpa.refuses(meaning) is None and plain.finite(k) and plain.finite(v)


def _lawful(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, plan: Cut, dropout: float) -> Tensor:
    """Each tile by the law, computed again for the gradient: any score, normaliser and position, broken numbers too."""
    whole = sdpa.whole if _swift(q, k, v, meaning) else plain.attend
    keys, values = k.split(KEYS, 2), v.split(KEYS, 2)  # whose gradients are as small as they are

    def part(q: Tensor, grid: Grid, *parts: Tensor) -> Tensor:
        k, v = (torch.cat(each, 2) for each in (parts[: len(parts) // 2], parts[len(parts) // 2 :]))
        return whole(q, k, v, meaning, grid, dropout)

    outputs = []
    for tile in plan.tiles:
        rows = _rows(q, tile)
        if tile.runs:
            taken = [n for run in tile.runs for n in range(run.start // KEYS, -(-run.stop // KEYS))]
            inputs = rows, plan.grid_of(tile), *(keys[n] for n in taken), *(values[n] for n in taken)
            outputs.append(chunked.again(part, *inputs))
        else:
            # Sums of nothing, through which gradients of 0 flow.
            zeros = rows[..., :0].sum(-1, keepdim=True) + k[..., :0].sum() + v[..., :0].sum()
            outputs.append(zeros.to(v.dtype).expand(-1, -1, -1, v.shape[3]))
    return torch.cat(outputs, 2)
