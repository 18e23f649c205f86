"""`linear`: attention whose score is a product of features, in time and memory that grow linearly with the length.

    sum_j phi(q).phi(k_j) v_j = phi(q) (sum_j phi(k_j)^T v_j)        Katharopoulos et al. 2020

The sum over keys is a matrix a head. Under `causal` it runs along the sequence: tiles of positions compare each other
pair by pair, and everything before a tile is in the running sum (no loop over single positions). Features exist for one
tile at a time, also for the gradient, which computes them again. A value carries a 1 behind it, whose sum is what the
normaliser `sum` divides by; a hidden position's value is zero, and so is its 1.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attend import plain
from saccade.attend.feature import exactly
from saccade.attend.grid import Grid
from saccade.attend.mask import Mask, causal, everyone, padding
from saccade.attend.meaning import Meaning, called
from saccade.attend.normaliser import none, sum_
from saccade.attend.score import Featured, is_featured
from saccade.attend.sums import Answer, Gather, Running, run, tiles
from saccade.error import SaccadeError

STRIP = 1024  # positions that are in the making at a time where no gradients flow


def refuses(meaning: Meaning) -> str | None:
    """Why this cannot be computed in linear time, or None."""
    if not is_featured(meaning.score):
        return f"linear computes products of features; the score {called(meaning.score)} is none: use 'plain'"
    if isinstance(meaning.score, nn.Module) and any(each.requires_grad for each in meaning.score.parameters()):
        return f"linear knows no gradients of weights inside the score {called(meaning.score)}: use 'chunked'"
    if not isinstance(meaning.normaliser, sum_ | none):
        return (
            f"linear has the normalisers 'sum' and 'none', not {called(meaning.normaliser)}: use 'plain' or 'chunked'"
        )
    if meaning.has("scores") or meaning.has("values"):
        added = "a bias" if meaning.position is None else f"the position {called(meaning.position)}"
        return f"linear makes no scores to add {added} to: use 'plain' or 'chunked'"
    other = [each for each in _terms(meaning.mask) if each is not causal and not isinstance(each, padding)]
    if other:
        return f"linear sums over all keys, and of masks takes causal and padding, not {other[0]!r}: use 'chunked'"
    return None


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
    if isinstance(grid.start, Tensor) and grid.T != 1:
        return _singly(q, k, v, meaning, grid, before)
    forward = causal in _terms(meaning.mask)
    shown = _shown(meaning.mask, grid)
    if forward and grid.T == 1:  # one query a row sees all that does not lie behind it
        if isinstance(grid.start, Tensor) or grid.start < grid.S - 1:
            past = grid.j.mT <= grid.i
            shown = past if shown is None else shown & past
        forward = False
    k, v, broken = _guard(k, v, shown)
    with exactly(q):
        if grid.T == 1 or (torch.is_grad_enabled() and any(each.requires_grad for each in (q, k, v))):
            parts = plain.widen(q), plain.widen(k), _with_ones(plain.widen(v), shown)
            output = finish(_sums(*parts, meaning, grid, forward, before), meaning)
        else:
            output = _strips(q, k, v, meaning, grid, forward, before, shown)
    if broken is not None:
        output = output.masked_fill(_reached(broken, grid, forward, q.shape[1]), torch.nan)
    return output.to(v.dtype)


def finish(found: Tensor, meaning: Meaning) -> Tensor:
    """What is said of sums over values with a 1 behind them: (B,H,T,E+1) -> (B,H,T,E)."""
    values, total = found[..., :-1], found[..., -1:]
    if isinstance(meaning.normaliser, none):
        return values
    empty = total == 0
    return (values / total.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)


def fold(meaning: Meaning, k: Tensor, v: Tensor, shown: Tensor) -> Tensor:
    """sum_j phi(k_j)^T v_j of the keys shown, (B,G,F,E+1): all that later queries need of them."""
    k, v = (plain.widen(each.masked_fill(~shown, 0.0)) for each in (k, v))
    with exactly(k):
        return Gather.apply(k, _with_ones(v, shown), meaning.score)


def _sums(
    q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, forward: bool, before: Tensor | None
) -> Tensor:
    """sum_j phi(q).phi(k_j) v_j over what each query sees, (B,H,T,E)."""
    score = meaning.score
    assert is_featured(score)
    features = partial(score.queries, free=isinstance(meaning.normaliser, sum_))
    groups = q.unflatten(1, (k.shape[1], -1))  # (B,G,R,T,D): R query heads share a key head
    if grid.T == 1 and not torch.is_grad_enabled():
        return _one(features(groups.squeeze(3)), k, v, score, before).flatten(1, 2)
    before = q.new_zeros(()) if before is None else before
    if not forward:
        found = Answer.apply(groups.flatten(2, 3), before + Gather.apply(k, v, score), features)
        return found.unflatten(2, groups.shape[2:4]).flatten(1, 2)
    start = min(int(grid.start), grid.S)
    end = min(start + grid.T, grid.S)
    before = before + Gather.apply(k[:, :, :start], v[:, :, :start], score)
    found = Running.apply(
        groups[:, :, :, : end - start], k[:, :, start:end], v[:, :, start:end], before, score, features
    )
    found = found.flatten(1, 2)
    if end - start == grid.T:
        return found
    whole = before + Gather.apply(k[:, :, start:end], v[:, :, start:end], score)  # queries behind the last key
    rest = Answer.apply(groups[:, :, :, end - start :].flatten(2, 3), whole, features)
    return torch.cat((found, rest.unflatten(2, (groups.shape[2], -1)).flatten(1, 2)), 2)


def _strips(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    meaning: Meaning,
    grid: Grid,
    forward: bool,
    before: Tensor | None,
    shown: Tensor | None,
) -> Tensor:
    """The output where no gradients flow, a strip of positions at a time: nothing else grows with the length."""
    score = meaning.score
    assert is_featured(score)
    features = partial(score.queries, free=isinstance(meaning.normaliser, sum_))
    groups = q.unflatten(1, (k.shape[1], -1))  # (B,G,R,T,D)

    def part(rows: slice) -> tuple[Tensor, Tensor]:
        hidden = None if shown is None else shown[:, :, rows]
        return plain.widen(k[:, :, rows]), _with_ones(plain.widen(v[:, :, rows]), hidden)

    state = plain.widen(v[..., :0, :1]).new_zeros(*k.shape[:2], score.count(k.shape[-1]), v.shape[-1] + 1)
    state = state if before is None else state + before
    start = min(int(grid.start), grid.S) if forward else grid.S
    for rows in tiles(start, STRIP):
        state += Gather.apply(*part(rows), score)
    output = v.new_empty(*q.shape[:3], v.shape[-1])
    for rows in tiles(grid.T, STRIP):
        asked, own = plain.widen(groups[:, :, :, rows]), slice(start + rows.start, min(start + rows.stop, grid.S))
        n = max(own.stop - own.start, 0)  # queries with a key at their own place
        found = [run(asked[:, :, :, :n], *part(own), state, score, features)] if n else []
        if n < asked.shape[3]:
            rest = asked[:, :, :, n:]
            found.append(Answer.apply(rest.flatten(2, 3), state, features).unflatten(2, rest.shape[2:4]))
        output[:, :, rows] = finish(found[0] if len(found) == 1 else torch.cat(found, 3), meaning).flatten(1, 2)
    return output


def _one(a: Tensor, k: Tensor, v: Tensor, score: Featured, before: Tensor | None) -> Tensor:
    """The sums of one query a row, whose features are a (B,G,R,F); pair by pair: a state would cost more to make."""
    found = a.new_zeros(*a.shape[:3], v.shape[-1]) if before is None else a @ before
    for tile in tiles(k.shape[2]):
        found = found + (a @ score.keys(k[:, :, tile]).mT) @ v[:, :, tile]
    return found.unsqueeze(3)


def _with_ones(v: Tensor, shown: Tensor | None) -> Tensor:
    """Values (B,G,S,E+1) with a 1 behind each, and zeros for all of what is hidden."""
    v = F.pad(v, (0, 1), value=1.0)
    return v if shown is None else v.masked_fill(~shown, 0.0)


def _terms(mask: Mask | None) -> tuple[Mask, ...]:
    return () if mask is None else tuple(each for each in mask.terms() if each is not everyone)


def _shown(mask: Mask | None, grid: Grid) -> Tensor | None:
    """Which keys are no padding, (B,1,S,1)."""
    shown = None
    for term in _terms(mask):
        if isinstance(term, padding):
            there = term.dense(grid).mT
            shown = there if shown is None else shown & there
    return shown


def _guard(k: Tensor, v: Tensor, shown: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """k and v with zeros for what is hidden or not finite, and which values some query may meet broken, (B,G,S,E)."""
    if shown is not None:
        k, v = k.masked_fill(~shown, 0.0), v.masked_fill(~shown, 0.0)
    (k, broken_k), (v, broken_v) = plain.mend(k), plain.mend(v)
    if broken_k is None:
        return k, v, broken_v
    broken = broken_k.any(-1, keepdim=True).expand_as(v)
    return k, v, broken if broken_v is None else broken | broken_v


def _reached(broken: Tensor, grid: Grid, forward: bool, heads: int) -> Tensor:
    """Which outputs a broken key or value reaches, (B,H,T or 1,E)."""
    if not forward:
        return plain.spread(broken.any(2, keepdim=True), heads)
    so_far = broken.cummax(2).values if broken.shape[2] else broken
    places = grid.i.flatten().clamp(max=grid.S - 1)
    return plain.spread(so_far[:, :, places], heads)


def _singly(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, before: Tensor | None) -> Tensor:
    """One call an example, where they stand at different positions."""
    mask = everyone if meaning.mask is None else meaning.mask
    outputs = []
    for b in range(q.shape[0]):
        own, earlier = meaning._replace(mask=mask.alone(b)), None if before is None else before[b : b + 1]
        inputs = q[b : b + 1], k[b : b + 1], v[b : b + 1]
        outputs.append(attend(*inputs, own, grid.alone(b), before=earlier))
    return torch.cat(outputs) if outputs else v.new_zeros(*q.shape[:3], v.shape[-1])
