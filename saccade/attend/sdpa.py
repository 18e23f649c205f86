"""`sdpa`: torch's fused `scaled_dot_product_attention`, told exactly what to compute.

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
from saccade.attend.mask import Mask, causal, everyone, padding
from saccade.attend.meaning import Meaning, called
from saccade.attend.normaliser import softmax
from saccade.attend.score import is_product

# From how many keys on a call for each example, without its padding, beats one call with a mask (LOG.md).
SINGLY, SINGLY_WITH_GRADIENTS = 512, 1024
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
    if meaning.has("scores") and _slices(q, meaning, grid):  # what is added to scores is as large as they are
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

    def masked(k: Tensor, v: Tensor) -> Tensor:
        bias = meaning.added(q, plain.spread(k, q.shape[1]), grid) if biased else None
        if bias is None:
            return fused(q, k, v, may)
        bias = bias * beta
        return fused(q, k, v, bias if may is None else bias.masked_fill(~may, -torch.inf))

    biased = meaning.has("scores")
    terms = _needed(meaning.mask, grid)
    if not biased and terms == (causal,) and grid.aligned():
        return fused(q, k[:, :, : q.shape[2]], v[:, :, : q.shape[2]], is_causal=True)
    spans = _spans(terms, q, grid) if terms else None
    if not biased and spans and _pays(q, k, spans, causal in terms, grid):
        return _singly(fused, q, k, v, spans, causal in terms, grid)
    may = meaning.may(grid) if terms else None
    if may is None:
        return masked(k, v)
    if q.device.type != "cpu" or torch.compiler.is_compiling():
        return masked(*_shield(k, v, may))
    output = masked(k, v)
    if output.requires_grad:  # what is hidden may spoil gradients and leave the output alone
        fine = plain.finite(k) and plain.finite(v)
    else:
        fine = _clean(output, spans is not None)
    return output if fine else masked(*_shield(k, v, may))


def _slices(q: Tensor, meaning: Meaning, grid: Grid) -> bool:
    """Whether to take a few queries at a time: where `causal` then spares half of the work, or memory will not do."""
    if torch.compiler.is_compiling():
        return False
    if (1 if _shared(meaning, grid) else q.shape[0]) * q.shape[1] * grid.T * grid.S >= HUGE:
        return True
    spares = q.is_cpu and chunked.spares(meaning, grid)
    return spares and (SLICES_WITH_GRADIENTS if torch.is_grad_enabled() else SLICES) <= grid.S


def _shared(meaning: Meaning, grid: Grid) -> bool:
    """Whether one table of what is added to scores serves all examples of the batch."""
    if meaning.position is None or not meaning.position.fixed or isinstance(grid.start, Tensor):
        return False
    return meaning.mask is None or meaning.mask.alone(0) is meaning.mask


def _needed(mask: Mask | None, grid: Grid) -> tuple[Mask, ...]:
    """The terms of the mask that hide anything here; a step of one token with a cache needs no `causal`."""
    if mask is None:
        return ()
    past = not isinstance(grid.start, Tensor) and grid.bounds()[0] >= grid.span()[1] - 1
    needed = [term for term in mask.terms() if not (term is everyone or (past and term is causal))]
    return tuple(dict.fromkeys(needed))


def _spans(terms: tuple[Mask, ...], q: Tensor, grid: Grid) -> list[tuple[int, int]] | None:
    """The keys [first, last) that each example may look at, where the mask is no more than padding and causal."""
    if torch.compiler.is_compiling() or q.device.type != "cpu" or isinstance(grid.start, Tensor) or grid.picked():
        return None
    if not all(term is causal or isinstance(term, padding) for term in terms):
        return None
    end = min(grid.S, grid.start + grid.T) if causal in terms else grid.S
    first, last = [0] * q.shape[0], [end] * q.shape[0]
    for term in terms:
        if isinstance(term, padding):
            lengths = term.held(grid.S, q.device).expand(q.shape[0]).tolist()
            if term.side == "right":
                last = [min(a, b) for a, b in zip(last, lengths, strict=True)]
            else:
                first = [max(a, grid.S - b) for a, b in zip(first, lengths, strict=True)]
    return list(zip(first, last, strict=True))


def _pays(q: Tensor, k: Tensor, spans: list[tuple[int, int]], is_causal: bool, grid: Grid) -> bool:
    """Whether a call for each example is possible (torch's causal flag aligns first query and first key) and faster."""
    if is_causal and any(first < grid.start for first, _ in spans):
        return False
    gradients = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)
    return (SINGLY_WITH_GRADIENTS if gradients else SINGLY) <= grid.S


def _singly(
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


def _clean(output: Tensor, nested: bool) -> bool:
    """Whether nothing broken reached the output, which costs less to tell than whether k and v hold anything broken.

    A hidden value that is not finite spoils its column in every row that sees anything (0 times NaN), a hidden key
    the rows whose score it makes NaN. Where the last row sees all that any row sees (`nested`: padding and causal),
    the last row and the first column tell.
    """
    if nested:
        return plain.finite(output[:, :, -1:]) and plain.finite(output[..., :1])
    return plain.finite(output)


def _shield(k: Tensor, v: Tensor, may: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values that no query of their group may look at become zeros, lest 0 times NaN be NaN."""
    seen = may.any(2, keepdim=True)  # (B or 1, H or 1, 1, S or 1)
    if seen.shape[1] > 1:
        seen = seen.unflatten(1, (k.shape[1], -1)).any(2)
    seen = seen.mT  # (B or 1, G or 1, S or 1, 1)
    return k.masked_fill(~seen, 0.0), v.masked_fill(~seen, 0.0)
