"""`linear`: attention whose score is a product of features, in time and memory that grow linearly with the length.

    sum_j phi(q).phi(k_j) v_j = phi(q) (sum_j phi(k_j)^T v_j)        Katharopoulos et al. 2020

The sum over keys is a matrix a head. Under `causal` it runs along the sequence: tiles of positions compare each other
pair by pair, and everything before a tile is in the running sum (no loop over single positions). Features exist for one
tile at a time, also for the gradient, which computes them again. Each value has a 1 appended, whose sum is what the
normaliser `sum` divides by; a hidden position's value is zero, and so is its 1.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend import plain
from saccade.attend.feature import exactly
from saccade.attend.grid import Grid
from saccade.attend.mask import conjunction, padding
from saccade.attend.meaning import Meaning, called
from saccade.attend.normaliser import Summing, is_summing
from saccade.attend.score import Featured, is_featured
from saccade.attend.sums import Features, ReadState, ScanState, SumState, run, tiles
from saccade.error import SaccadeError

STRIP = 1024  # positions that are in the making at a time where no gradients flow


def refuses(meaning: Meaning) -> str | None:
    """Why this cannot be computed in linear time, or None."""
    if not is_featured(meaning.score):
        return f"linear computes products of features; the score {called(meaning.score)} is none: use 'plain'"
    if isinstance(meaning.score, nn.Module) and any(each.requires_grad for each in meaning.score.parameters()):
        return f"linear computes no gradients of weights inside the score {called(meaning.score)}: use 'chunked'"
    if not is_summing(meaning.normaliser):
        return (
            f"linear has the normalisers 'sum' and 'none', not {called(meaning.normaliser)}: use 'plain' or 'chunked'"
        )
    if meaning.has("scores") or meaning.has("values"):
        added = "a bias" if meaning.position is None else f"the position {called(meaning.position)}"
        return f"linear makes no scores to add {added} to: use 'plain' or 'chunked'"
    others = conjunction(meaning.mask).others
    if others:
        return f"linear sums over all keys, and of masks takes causal and padding, not {others[0]!r}: use 'chunked'"
    return None


class Sums(NamedTuple):
    """What is summed in one call, and how: sum_j phi(q).phi(k_j) v_j over what each query sees."""

    score: Featured
    features: Features  # phi(q)
    normaliser: Summing
    grid: Grid
    is_causal: bool
    before: Tensor | None  # (B,G,F,E+1), what `fold` made of still earlier keys

    def finish(self, found: Tensor) -> Tensor:
        """The output from sums over values with a 1 appended: (...,T,E+1) -> (...,T,E)."""
        return self.normaliser.of_sums(found[..., :-1], found[..., -1:])


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    meaning: Meaning,
    grid: Grid,
    dropout: float = 0.0,
    before: Tensor | None = None,
) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E). before: what `fold` made of still earlier ones."""
    if dropout:
        raise SaccadeError("linear keeps no weights to drop: leave out attention dropout, or use 'plain' or 'chunked'")
    if grid.ragged and grid.T != 1:
        return _one_by_one(q, k, v, meaning, grid, before)
    is_causal, paddings, _ = conjunction(meaning.mask)
    shown = _real_keys(paddings, grid)
    if is_causal and grid.T == 1:  # one query a row: `causal` hides single keys, as padding does
        if grid.ragged or grid.bounds()[0] < grid.S - 1:  # else it stands at the last key, and sees all
            past = grid.j.mT <= grid.i
            shown = past if shown is None else shown & past
        is_causal = False
    k, v, broken = _guard(k, v, shown)
    sums = _sums_of(meaning, grid, is_causal, before)
    with exactly(q):
        if grid.T == 1 or (torch.is_grad_enabled() and any(each.requires_grad for each in (q, k, v))):
            output = _at_once(plain.widen(q), plain.widen(k), _with_ones(plain.widen(v), shown), sums)
        else:
            output = _in_strips(q, k, v, sums, shown)
    if broken is not None:
        output = output.masked_fill(_reached(broken, grid, is_causal, q.shape[1]), torch.nan)
    return output.to(v.dtype)


def fold(meaning: Meaning, k: Tensor, v: Tensor, shown: Tensor) -> Tensor:
    """sum_j phi(k_j)^T v_j of the keys shown, (B,G,F,E+1): all that later queries need of them."""
    k, v = (plain.widen(each.masked_fill(~shown, 0.0)) for each in (k, v))
    with exactly(k):
        return SumState.apply(k, _with_ones(v, shown), meaning.score)


def _sums_of(meaning: Meaning, grid: Grid, is_causal: bool, before: Tensor | None) -> Sums:
    score, normaliser = meaning.score, meaning.normaliser
    assert is_featured(score)
    assert is_summing(normaliser)
    features = partial(score.queries, free=normaliser.scale_free)
    return Sums(score, features, normaliser, grid, is_causal, before)


def _at_once(q: Tensor, k: Tensor, v: Tensor, sums: Sums) -> Tensor:
    """The output of all queries, (B,H,T,E), with gradients; v has its 1 appended."""
    groups = q.unflatten(1, (k.shape[1], -1))  # (B,G,R,T,D): R query heads share a key head
    if sums.grid.T == 1 and not torch.is_grad_enabled():
        found = _one_query(groups, k, v, sums)
    elif sums.is_causal:
        found = _running(groups, k, v, sums)
    else:
        state = _earlier_state(q, sums) + SumState.apply(k, v, sums.score)
        found = _read(groups, state, sums)
    return sums.finish(found.flatten(1, 2))


def _one_query(groups: Tensor, k: Tensor, v: Tensor, sums: Sums) -> Tensor:
    """The sums of one query a row, (B,G,R,1,E); pair by pair: a state would cost more to make."""
    a = sums.features(groups.squeeze(3))  # (B,G,R,F)
    found = a.new_zeros(*a.shape[:3], v.shape[-1]) if sums.before is None else a @ sums.before
    for tile in tiles(k.shape[2]):
        found = found + (a @ sums.score.keys(k[:, :, tile]).mT) @ v[:, :, tile]
    return found.unsqueeze(3)


def _running(groups: Tensor, k: Tensor, v: Tensor, sums: Sums) -> Tensor:
    """The sums under `causal`, (B,G,R,T,E)."""
    score, grid = sums.score, sums.grid
    start = min(int(grid.start), grid.S)
    end = min(start + grid.T, grid.S)
    own = k[:, :, start:end], v[:, :, start:end]
    before = _earlier_state(groups, sums) + SumState.apply(k[:, :, :start], v[:, :, :start], score)
    found = ScanState.apply(groups[:, :, :, : end - start], *own, before, score, sums.features)
    if end - start == grid.T:
        return found
    whole = before + SumState.apply(*own, score)  # what queries after the last key see
    return torch.cat((found, _read(groups[:, :, :, end - start :], whole, sums)), 3)


def _in_strips(q: Tensor, k: Tensor, v: Tensor, sums: Sums, shown: Tensor | None) -> Tensor:
    """The output where no gradients flow, a strip of positions at a time: nothing else grows with the length."""
    score, grid = sums.score, sums.grid
    groups = q.unflatten(1, (k.shape[1], -1))  # (B,G,R,T,D)

    def part(rows: slice) -> tuple[Tensor, Tensor]:
        there = None if shown is None else shown[:, :, rows]
        return plain.widen(k[:, :, rows]), _with_ones(plain.widen(v[:, :, rows]), there)

    state = plain.widen(v[..., :0, :1]).new_zeros(*k.shape[:2], score.count(k.shape[-1]), v.shape[-1] + 1)
    if sums.before is not None:
        state = state + sums.before
    start = min(int(grid.start), grid.S) if sums.is_causal else grid.S
    for rows in tiles(start, STRIP):
        state += SumState.apply(*part(rows), score)
    output = v.new_empty(*q.shape[:3], v.shape[-1])
    for rows in tiles(grid.T, STRIP):
        asked, own = plain.widen(groups[:, :, :, rows]), slice(start + rows.start, min(start + rows.stop, grid.S))
        n = max(own.stop - own.start, 0)  # queries with a key at their own place
        found = [run(asked[:, :, :, :n], *part(own), state, score, sums.features)] if n else []
        if n < asked.shape[3]:
            found.append(_read(asked[:, :, :, n:], state, sums))
        output[:, :, rows] = sums.finish(found[0] if len(found) == 1 else torch.cat(found, 3)).flatten(1, 2)
    return output


def _read(groups: Tensor, state: Tensor, sums: Sums) -> Tensor:
    """phi(q) S for queries (B,G,R,T,D) that all see the same state (B,G,F,E)."""
    return ReadState.apply(groups.flatten(2, 3), state, sums.features).unflatten(2, groups.shape[2:4])


def _earlier_state(like: Tensor, sums: Sums) -> Tensor:
    """What was folded before this call; a zero to add to where nothing was."""
    return like.new_zeros(()) if sums.before is None else sums.before


def _with_ones(v: Tensor, shown: Tensor | None) -> Tensor:
    """Values with a 1 appended to each, (B,G,S,E+1), and zeros for what is hidden, its 1 too."""
    v = F.pad(v, (0, 1), value=1.0)
    return v if shown is None else v.masked_fill(~shown, 0.0)


def _real_keys(paddings: tuple[padding, ...], grid: Grid) -> Tensor | None:
    """Which keys are no padding, (B,1,S,1)."""
    shown = [each.dense(grid).mT for each in paddings]
    return functools.reduce(torch.logical_and, shown) if shown else None


def _guard(k: Tensor, v: Tensor, shown: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """k and v with zeros for what is hidden or not finite, and which values some query may meet broken, (B,G,S,E)."""
    if shown is not None:
        k, v = k.masked_fill(~shown, 0.0), v.masked_fill(~shown, 0.0)
    (k, broken_k), (v, broken_v) = plain.mend(k), plain.mend(v)
    if broken_k is None:
        return k, v, broken_v
    broken = broken_k.any(-1, keepdim=True).expand_as(v)
    return k, v, broken if broken_v is None else broken | broken_v


def _reached(broken: Tensor, grid: Grid, is_causal: bool, heads: int) -> Tensor:
    """Which outputs a broken key or value reaches, (B,H,T or 1,E)."""
    if not is_causal:
        return plain.spread(broken.any(2, keepdim=True), heads)
    so_far = broken.cummax(2).values if broken.shape[2] else broken
    places = grid.i.flatten().clamp(max=grid.S - 1)
    return plain.spread(so_far[:, :, places], heads)


def _one_by_one(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, before: Tensor | None) -> Tensor:
    """One call an example, where they stand at different positions."""
    if not q.shape[0]:
        return v.new_zeros(*q.shape[:3], v.shape[-1])
    outputs = []
    for b, inputs in enumerate(zip(q.split(1), k.split(1), v.split(1), strict=True)):
        earlier = None if before is None else before[b : b + 1]
        outputs.append(attend(*inputs, meaning.alone(b), grid.alone(b), before=earlier))
    return torch.cat(outputs)
