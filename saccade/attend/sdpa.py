"""`sdpa`: torch's fused `scaled_dot_product_attention`, made to compute exactly what `plain` does.

It takes scores that are products (dot, scaled_dot, cosine, bilinear) with softmax, any mask, and positions on heads and
scores. What torch leaves to its caller is done here: queries stand at absolute positions (torch aligns the first query
with the first key), and keys that no query may look at never reach the output, even as NaN (in torch they do).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attend import chunked, plain
from saccade.attend.grid import Grid
from saccade.attend.mask import Conjunction, Mask, conjunction
from saccade.attend.meaning import Meaning, called
from saccade.attend.normaliser import softmax
from saccade.attend.score import is_product

# From how many keys on a call for each example, without its padding, beats one call with a mask (LOG.md).
ONE_BY_ONE, ONE_BY_ONE_WITH_GRADIENTS = 512, 1024
SLICES, SLICES_WITH_GRADIENTS = 512, 1024  # keys from which slices of queries are faster with positions on scores
HUGE = 1 << 27  # numbers of such a table from which slices are taken to save memory


def refuses(meaning: Meaning) -> str | None:
    """Why torch's kernel cannot compute this, or None."""
    if not is_product(meaning.score):
        return f"sdpa computes products of q and k; the score {called(meaning.score)} is none: use 'plain' or 'chunked'"
    if not isinstance(meaning.normaliser, softmax):
        return f"sdpa has softmax alone, not {called(meaning.normaliser)}: use 'plain' or 'chunked'"
    if meaning.has("values"):
        return f"sdpa keeps no weights to add {called(meaning.position)} to the values: use 'plain' or 'chunked'"
    return None


def attend(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """q (B,H,T,D), k (B,G,S,D), v (B,G,S,E) -> (B,H,T,E)."""
    if meaning.has("scores") and _should_slice(q, meaning, grid):  # what is added to scores is as large as they are
        return chunked.sliced(whole, q, k, v, meaning, grid, dropout)
    return whole(q, k, v, meaning, grid, dropout)


def whole(q: Tensor, k: Tensor, v: Tensor, meaning: Meaning, grid: Grid, dropout: float = 0.0) -> Tensor:
    """The same, all queries at once."""
    assert is_product(meaning.score)
    assert isinstance(meaning.normaliser, softmax)
    score, beta = meaning.score, meaning.normaliser.beta

    def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        grouped = k.shape[1] != q.shape[1]
        q, k, scale = score.factors(q, k)
        return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal, scale=scale * beta, enable_gqa=grouped)

    def masked(k: Tensor, v: Tensor, may: Tensor | None) -> Tensor:
        bias = meaning.added(q, plain.spread(k, q.shape[1]), grid) if biased else None
        if bias is None:
            return fused(q, k, v, may)
        if _written_out_pays(q, k, bias, may, dropout):
            return _written_out(*score.factors(q, k), v, bias, may, beta)
        bias = bias * beta
        return fused(q, k, v, bias if may is None else bias.masked_fill(~may, -torch.inf))

    biased = meaning.has("scores")
    hiding = _hiding(meaning.mask, grid)
    if hiding.empty:
        return masked(k, v, None)
    if not biased and hiding.only_causal and grid.aligned():
        return fused(q, k[:, :, : q.shape[2]], v[:, :, : q.shape[2]], is_causal=True)
    spans = _spans(hiding, q, grid)
    if not biased and spans and _one_by_one_pays(q, k, spans, hiding.causal, grid):
        return _one_by_one(fused, q, k, v, spans, hiding.causal, grid)
    may = meaning.may(grid)
    assert may is not None
    if q.device.type != "cpu" or torch.compiler.is_compiling():
        return masked(*_shield(k, v, may), may)
    output = masked(k, v, may)
    if output.requires_grad:  # a NaN that is hidden may spoil the gradients even where the output is clean
        fine = plain.finite(k) and plain.finite(v)
    else:
        fine = _is_clean(output, nested=spans is not None)
    return output if fine else masked(*_shield(k, v, may), may)


def _written_out_pays(q: Tensor, k: Tensor, bias: Tensor, may: Tensor | None, dropout: float) -> bool:
    """Whether to write the softmax out: torch's fused kernels give a bias no gradient, and what it computes then looks
    for rows that see nothing in three more passes over all scores, and in one more backward. Here no row may be such.
    """
    if torch.compiler.is_compiling() or not q.is_cpu or dropout or k.shape[1] != q.shape[1]:
        return False
    if not bias.requires_grad or not torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return False
    exact = q.dtype in (torch.float32, torch.float64) and k.dtype == bias.dtype == q.dtype
    shaped = exact and bias.shape == (*q.shape[:3], k.shape[2]) and bias.numel() > 0
    return shaped and (may is None or bool(may.any(-1).all()))


def _written_out(
    q: Tensor, k: Tensor, scale: float, v: Tensor, bias: Tensor, may: Tensor | None, beta: float
) -> Tensor:
    """softmax(beta (scale q k^T + bias)) v, every row of which sees something."""
    q, k = (q * scale).flatten(0, 1), k.flatten(0, 1).mT
    scores = torch.baddbmm(bias.flatten(0, 1), q, k).unflatten(0, bias.shape[:2])  # (B,H,T,S)
    scores = scores if beta == 1 else scores * beta
    return (scores if may is None else scores.masked_fill(~may, -torch.inf)).softmax(-1) @ v


def _should_slice(q: Tensor, meaning: Meaning, grid: Grid) -> bool:
    """Whether to take a few queries at a time: `causal` then saves half of the work, or memory would not suffice."""
    if torch.compiler.is_compiling():
        return False
    tables = 1 if _one_table(meaning, grid) else q.shape[0]
    if tables * q.shape[1] * grid.T * grid.S >= HUGE:
        return True
    skips = q.is_cpu and chunked.skips_future(meaning, grid)
    return skips and (SLICES_WITH_GRADIENTS if torch.is_grad_enabled() else SLICES) <= grid.S


def _one_table(meaning: Meaning, grid: Grid) -> bool:
    """Whether one table of what is added to scores serves all examples of the batch."""
    if meaning.position is None or not meaning.position.fixed or grid.ragged:
        return False
    return meaning.mask is None or meaning.mask.alone(0) is meaning.mask


def _hiding(mask: Mask | None, grid: Grid) -> Conjunction:
    """The terms of the mask that hide anything here; a step of one token with a cache needs no `causal`."""
    causal, paddings, others = terms = conjunction(mask)
    past = causal and not grid.ragged and grid.bounds()[0] >= grid.span()[1] - 1
    return Conjunction(False, paddings, others) if past else terms


def _spans(hiding: Conjunction, q: Tensor, grid: Grid) -> list[tuple[int, int]] | None:
    """The keys [first, last) that each example may look at, where the mask is no more than padding and causal."""
    if torch.compiler.is_compiling() or q.device.type != "cpu" or grid.ragged or grid.picked() or hiding.others:
        return None
    end = min(grid.S, grid.bounds()[1]) if hiding.causal else grid.S
    first, last = [0] * q.shape[0], [end] * q.shape[0]
    for term in hiding.paddings:
        lengths = term.held(grid.S, q.device).expand(q.shape[0]).tolist()
        if term.side == "right":
            last = [min(a, b) for a, b in zip(last, lengths, strict=True)]
        else:
            first = [max(a, grid.S - b) for a, b in zip(first, lengths, strict=True)]
    return list(zip(first, last, strict=True))


def _one_by_one_pays(q: Tensor, k: Tensor, spans: list[tuple[int, int]], is_causal: bool, grid: Grid) -> bool:
    """Whether a call for each example is possible and faster.

    torch's causal flag aligns the first query with the first key, so no example's keys may begin before its queries.
    """
    if is_causal and any(first < grid.start for first, _ in spans):
        return False
    gradients = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)
    return (ONE_BY_ONE_WITH_GRADIENTS if gradients else ONE_BY_ONE) <= grid.S


def _one_by_one(
    fused: Callable[..., Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spans: list[tuple[int, int]],
    is_causal: bool,
    grid: Grid,
) -> Tensor:
    """One call an example, over its own keys alone."""
    outputs = []
    for query, key, value, (first, last) in zip(q.split(1), k.split(1), v.split(1), spans, strict=True):
        blind = min(first - int(grid.start), grid.T) if is_causal else 0  # queries before the first key see nothing
        last = max(first, last)
        output = fused(query[:, :, blind:], key[:, :, first:last], value[:, :, first:last], is_causal=is_causal)
        outputs.append(F.pad(output, (0, 0, blind, 0)) if blind else output)
    return torch.cat(outputs)


def _is_clean(output: Tensor, nested: bool) -> bool:
    """Whether the output is free of NaN; cheaper to find out than whether k and v are.

    A hidden value that is not finite spoils its column in every row that sees anything (0 times NaN), a hidden key
    the rows whose score it makes NaN. Where the last row sees all that any row sees (`nested`: padding and causal),
    the last row and the first column are enough to look at.
    """
    if nested:
        return plain.finite(output[:, :, -1:]) and plain.finite(output[..., :1])
    return plain.finite(output)


def _shield(k: Tensor, v: Tensor, may: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values that no query of their group may look at become zeros, since 0 times NaN is NaN."""
    seen = may.any(2, keepdim=True)  # (B or 1, H or 1, 1, S or 1)
    if seen.shape[1] > 1:
        seen = seen.unflatten(1, (k.shape[1], -1)).any(2)
    seen = seen.mT  # (B or 1, G or 1, S or 1, 1)
    return k.masked_fill(~seen, 0.0), v.masked_fill(~seen, 0.0)
