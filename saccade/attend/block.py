"""`block`: what the mask leaves out is not computed. The same result as with the dense mask, at the cost of the tiles
in which somebody may look at somebody; nothing of the size T x S is ever made, forward or backward.

Child et al. 2019 and Beltagy et al. 2020 (windows), Zaheer et al. 2020 (blocks), Dao et al. 2022 (torch's fused kernel,
which computes each tile, and its backward pass from the logarithms of the sums).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.attend import chunked, plain, sdpa, windowed
from saccade.attend.algebra import everyone, given
from saccade.attend.cut import KEYS, Cut, Tile, cost, cut
from saccade.attend.grid import Grid
from saccade.attend.mask import conjunction
from saccade.attend.meaning import Meaning, called
from saccade.attend.normaliser import hard, none, sigmoid, softmax, sparsemax, sum_
from saccade.attend.score import additive, gate, is_product

# Scores known to depend on one query and one key alone (as products do), and normalisers known to depend on nothing but
# the keys that a query may look at. With others, leaving out the hidden keys could change the result.
PAIRWISE = (additive, gate)
ROWWISE = (softmax, sigmoid, hard, sparsemax, sum_, none)

# Queries from which, and the share of pairs (as tiles of 64 cost) up to which it beats a dense mask (LOG.md).
LONG, SHARE = 512, 0.4
KEPT = 64  # masks of tiles that are kept while a call lasts

# Private to torch, but these alone give the logarithms of the sums, which the backward pass needs. Where a version of
# torch lacks them, `_without_fused` computes the tiles.
fused: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
fused_backward: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)


def refuses(meaning: Meaning) -> str | None:
    """Why this cannot be computed without what the mask leaves out, or None."""
    if meaning.mask is not None and not meaning.mask.has_tiles():
        return f"block asks which keys to leave out, and {meaning.mask!r} cannot tell: use 'auto', 'plain' or 'chunked'"
    if not (is_product(meaning.score) or isinstance(meaning.score, PAIRWISE)):
        return _unknown(meaning.score, "one query and one key")
    if not isinstance(meaning.normaliser, ROWWISE):
        return _unknown(meaning.normaliser, "what a query may look at")
    return None


def _unknown(part: object, what: str) -> str:
    return f"block must know that {called(part)} depends on {what} alone, and does not: use 'plain' or 'chunked'"


def pays(q: Tensor, meaning: Meaning, grid: Grid) -> bool:
    """Whether this is faster than computing all pairs: in long calls of which the mask leaves out most."""
    mask = meaning.mask
    if mask is not None and windowed.pays(mask) and windowed.fits(meaning, grid) and not torch.compiler.is_compiling():
        return refuses(meaning) is None
    if mask is None or grid.T < LONG or torch.compiler.is_compiling() or not q.is_cpu or refuses(meaning):
        return False
    others = conjunction(mask).others
    if not others:
        return False  # sdpa has ways of its own for causal and padding
    if not q.shape[0] or grid.ragged or any(isinstance(term, given) for term in others):
        return False
    if mask.alone(0) is not mask and grid.T < 2 * LONG:  # a mask of its own for each example: one call each
        return False
    return cost(mask, grid) < SHARE * grid.T * grid.S


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E)."""
    if torch.compiler.is_compiling():  # a graph cannot depend on what the mask says
        return chunked.attend(q, k, v, meaning, grid, dropout)
    if not (q.shape[0] and q.shape[2] and k.shape[2]):
        return plain.attend(q, k, v, meaning, grid, dropout)
    if windowed.fits(meaning, grid):
        return windowed.attend(q, k, v, meaning, grid, dropout)
    mask = everyone if meaning.mask is None else meaning.mask
    if grid.ragged or (q.shape[0] > 1 and mask.alone(0) is not mask):
        examples = enumerate(zip(q.split(1), k.split(1), v.split(1), strict=True))
        return torch.cat([attend(*each, meaning.alone(b), grid.alone(b), dropout) for b, each in examples])
    plan = cut(mask, grid)
    if _can_fuse(q, k, v, meaning, dropout):
        assert is_product(meaning.score)
        assert isinstance(meaning.normaliser, softmax)
        q, k, v = (_as_autocast(x) for x in (q, k, v))
        q, k, scale = meaning.score.factors(q, k)
        q, k, v = (_contiguous_vectors(x) for x in (q, k, v))
        return Fused.apply(q, k, v, scale * meaning.normaliser.beta, plan)
    return _without_fused(q, k, v, meaning, plan, dropout)


def _can_fuse(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, dropout: float) -> bool:
    """Whether torch's fused kernel can compute the tiles. k and v must be finite: it multiplies NaN by 0."""
    placed = meaning.has("scores") or meaning.has("values")
    simple = is_product(meaning.score) and isinstance(meaning.normaliser, softmax) and not placed and not dropout
    shaped = q.device.type == "cpu" and q.shape[3] == v.shape[3] > 0
    if fused is None or fused_backward is None:
        return False
    return simple and shaped and plain.finite(k) and plain.finite(v)


def _as_autocast(x: Tensor) -> Tensor:
    """x in the type that autocast asks for, as torch casts the inputs of its own attention."""
    if torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64:
        return x.to(torch.get_autocast_dtype(x.device.type))
    return x


def _contiguous_vectors(x: Tensor) -> Tensor:
    """x with the numbers of each vector side by side and no overlaps, which the fused kernel takes for granted."""
    return x if x.stride(3) == 1 and x.stride(2) >= x.shape[3] else x.contiguous()


class Fused(torch.autograd.Function):
    """softmax(scale q k^T) v, tile by tile. Query heads that share a key head are computed as more rows of it."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, plan: Cut) -> Tensor:
        output = torch.empty_like(q)  # in the memory order of q, so that merging the heads copies nothing
        sums = q.new_empty(q.shape[:3], dtype=plain.widen(q).dtype)
        groups, hidden, keys, values = k.shape[1], _TileMasks(plan, q, k), _TileKeys(plan, k), _TileKeys(plan, v)
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
        plain.refuse_second_derivative("block")
        q, k, v, output, sums = ctx.saved_tensors
        plan, groups, gradient = ctx.plan, k.shape[1], _contiguous_vectors(gradient)
        hidden, keys, values = _TileMasks(plan, q, k), _TileKeys(plan, k), _TileKeys(plan, v)
        to_q = torch.empty_like(q)
        to_k, to_v = (torch.zeros_like(x, dtype=plain.widen(x).dtype) for x in (k, v))  # many tiles add up there
        for tile in plan.tiles:
            if tile.runs:
                g, rows, found, logarithms = (_fold(x, tile, groups) for x in (gradient, q, output, sums))
                inputs = g, rows, keys(tile), values(tile), found, logarithms
                parts = fused_backward(*inputs, 0.0, False, attn_mask=hidden(tile), scale=ctx.scale)
                _rows(to_q, tile).copy_(_unfold(parts[0], q.shape[1]))
                _add_to_runs(to_k, parts[1], tile)
                _add_to_runs(to_v, parts[2], tile)
            else:
                _rows(to_q, tile).zero_()
        return to_q, to_k.to(k.dtype), to_v.to(v.dtype), None, None


class _TileKeys:
    """The keys or values that a tile looks at: a view where they are one run, else a copy in one shared buffer."""

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


class _TileMasks:
    """What the fused kernel adds to the scores of a tile: -inf where its queries may not look, (1,G or 1,rows,keys).

    Where the mask depends on i - j alone, tiles of the same shape share one.
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
        hidden = [~self.plan.may(tile, span) if span.terms else None for span in tile.spans]
        heads = max(1 if each is None else each.shape[1] for each in hidden)
        added = torch.zeros(1, heads, len(tile.rows), tile.width, dtype=self.dtype, device="cpu")
        for each, part in zip(hidden, added.split([len(span.keys) for span in tile.spans], 3), strict=True):
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


def _add_to_runs(whole: Tensor, part: Tensor, tile: Tile) -> None:
    """Adds a tile's gradient (B,G,width,D) to the runs of keys that it looked at."""
    at = 0
    for run in tile.runs:
        whole[:, :, run.start : run.stop] += part[:, :, at : at + len(run)]
        at += len(run)


def _sdpa_is_exact(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning) -> bool:
    """Whether `sdpa` computes a tile as `plain` does: in float32 or float64, and k and v are finite."""
    if not q.is_cpu or q.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled("cpu"):
        return False
    return sdpa.refuses(meaning) is None and plain.finite(k) and plain.finite(v)


def _without_fused(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, plan: Cut, dropout: float) -> Tensor:
    """Each tile by `sdpa` or `plain`, computed again for the gradient: any score and position, and NaN too."""
    whole = sdpa.whole if _sdpa_is_exact(q, k, v, meaning) else plain.attend
    keys, values = k.split(KEYS, 2), v.split(KEYS, 2)  # small pieces: a slice of k would have a gradient as large as k

    def part(q: Tensor, grid: Grid, *parts: Tensor) -> Tensor:
        k, v = (torch.cat(each, 2) for each in (parts[: len(parts) // 2], parts[len(parts) // 2 :]))
        return whole(q, k, v, meaning, grid, dropout)

    outputs = []
    for tile in plan.tiles:
        rows = _rows(q, tile)
        if tile.runs:
            taken = [n for run in tile.runs for n in range(run.start // KEYS, -(-run.stop // KEYS))]
            inputs = rows, plan.grid_of(tile), *(keys[n] for n in taken), *(values[n] for n in taken)
            outputs.append(chunked.recomputed(part, *inputs))
        else:
            # Zeros that are connected to q, k and v, so that each has a gradient (of 0).
            zeros = rows[..., :0].sum(-1, keepdim=True) + k[..., :0].sum() + v[..., :0].sum()
            outputs.append(zeros.to(v.dtype).expand(-1, -1, -1, v.shape[3]))
    return torch.cat(outputs, 2)
