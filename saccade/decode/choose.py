"""From logits to tokens: `Writers`, the rows of a batch, each with its own choice.

The order is fixed: what is not allowed goes, then penalties, temperature, top_k, top_p, min_p; each filter sees what
the one before left over, as if there were no other tokens.

    temperature         logits / temperature (Ackley et al. 1985); 0 is the likeliest token
    top_k               the k likeliest (Fan et al. 2018)
    top_p               the smallest set of the likeliest that reaches the probability p (Holtzman et al. 2019)
    min_p               all with at least p times the probability of the likeliest (Nguyen et al. 2024)
    repetition_penalty  over prompt and written tokens: logits > 0 are divided, others multiplied (Keskar et al. 2019)
    presence_penalty    subtracted once from the logit of each written token, as in OpenAI's API
    frequency_penalty   subtracted as often as the token was written

Among tokens that are equally likely in float64 the first is the likelier, so that top_k = 1 and top_p = 0 leave one.
The log probability that is given is always the model's own, of the logits as they came.

A row's token number t is the inverse of its cumulated probabilities, in float64, at the writer's `uniform(t)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from saccade.decode.sequence import is_whole, possible
from saccade.decode.writer import Choice, Writer
from saccade.error import SaccadeError

Allowed = Sequence[Tensor | None]  # for each row a bool tensor (V,), or None where all tokens are
Forbidden = Sequence[Collection[int]]  # for each row tokens, or ()

BLOCK = 128  # scores whose largest is looked for at once
NUCLEI = (64, 1024)  # how many of the likeliest tokens top_p looks at before it sorts all
CACHED = 2**17  # weights that are worked on at once: on a processor, what fits into its cache is many times quicker


class Writers:
    """The rows of a batch: `writers.rows[b]` writes row b.

    tokens, logprobs = writers.choose(logits)
    for writer, token in zip(writers.rows, tokens.tolist()): writer.write(token)
    """

    def __init__(self, rows: Iterable[Writer] = ()) -> None:
        self.rows: list[Writer] = []
        self._stale = True
        for writer in rows:
            self.add(writer)

    def add(self, writer: Writer) -> None:
        """One more row, the last."""
        if any(writer is each for each in self.rows):
            raise SaccadeError("this writer has a row already: make a writer for each row")
        if self.rows and writer.vocab != self.rows[0].vocab:
            raise SaccadeError(f"a writer of {writer.vocab} tokens cannot join writers of {self.rows[0].vocab}")
        self.rows.append(writer)
        self._stale = True

    def keep(self, indices: Iterable[int]) -> None:
        """Row b is what row indices[b] was; those that are not named leave."""
        kept = list(indices)
        if len(set(kept)) < len(kept) or not all(0 <= each < len(self.rows) for each in kept):
            raise SaccadeError(f"of {len(self.rows)} rows each may be kept once; got {kept}")
        self.rows = [self.rows[each] for each in kept]
        self._stale = True

    @torch.no_grad()
    def choose(
        self, logits: Tensor, *, allowed: Allowed | None = None, forbidden: Forbidden | None = None
    ) -> tuple[Tensor, Tensor]:
        """The next token (N,) of each row by logits (N,V), and the model's own log probability of it (N,).

        The writers do not change: the same call again gives the same.
        """
        own, scores, tokens = self._likeliest(logits, allowed, forbidden)
        for filters in self._filters:
            tokens[filters.places] = draw(filters.weights(scores), filters.uniforms())
        return tokens, own.gather(1, tokens.unsqueeze(1)).squeeze(1)

    @torch.no_grad()
    def probabilities(
        self, logits: Tensor, *, allowed: Allowed | None = None, forbidden: Forbidden | None = None
    ) -> Tensor:
        """What `choose` draws from, (N,V) in float64: 1 for the likeliest token where the temperature is 0."""
        _, scores, tokens = self._likeliest(logits, allowed, forbidden)
        probabilities = torch.zeros_like(scores, dtype=torch.float64).scatter_(1, tokens.unsqueeze(1), 1.0)
        for filters in self._filters:
            weights = filters.weights(scores)
            probabilities[filters.places] = weights / weights.sum(-1, keepdim=True)
        return probabilities

    def _likeliest(
        self, logits: Tensor, allowed: Allowed | None, forbidden: Forbidden | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The model's own log probabilities (N,V), the logits after constraints and penalties (N,V),
        and their likeliest tokens (N,).
        """
        self._check(logits, allowed, forbidden)
        if self._stale:
            self._gather(logits)
        scores = logits if logits.dtype is torch.float64 else logits.float()
        own = scores.log_softmax(-1)
        bound = any(each is not None for each in allowed or ()) or any(forbidden or ())
        if bound or self._penalties:
            scores = scores.clone()
        if bound:
            forbid(scores, allowed or (), forbidden or ())
        if self._penalties:
            self._penalties.apply(scores)
        best, tokens = _max(scores)
        # A row without any finite score has nothing to choose, though the model may well give its token a probability.
        possible(own.gather(1, tokens.unsqueeze(1)).squeeze(1) + torch.where(best.isinf(), -torch.inf, 0.0))
        return own, scores, tokens

    def _check(self, logits: Tensor, allowed: Allowed | None, forbidden: Forbidden | None) -> None:
        N = len(self.rows)
        if logits.dim() != 2 or logits.shape[0] != N or (N and logits.shape[1] != self.rows[0].vocab):
            vocab = self.rows[0].vocab if N else "V"
            raise SaccadeError(f"the writers choose by logits ({N}, {vocab}); got {tuple(logits.shape)}")
        for name, given in (("allowed", allowed), ("forbidden", forbidden)):
            if given is not None and len(given) != N:
                raise SaccadeError(f"{name} has {len(given)} entries for {N} rows: give one a row")

    def _gather(self, logits: Tensor) -> None:
        """The options of the rows as tensors, made once for as long as the rows stay the same."""
        device, (N, V) = logits.device, logits.shape
        penalised = [place for place, writer in enumerate(self.rows) if writer.choice.penalises]
        sampled = [place for place, writer in enumerate(self.rows) if writer.choice.samples]
        size = max(1, CACHED // V if device.type == "cpu" else N)
        groups = [sampled[start : start + size] for start in range(0, len(sampled), size)]
        self._filters = [Filters(places, [self.rows[each] for each in places], device) for places in groups]
        self._penalties = Penalties(penalised, [self.rows[each] for each in penalised], device) if penalised else None
        self._stale = False


class Penalties:
    """The penalties of P rows, which stand at `places` of the batch."""

    def __init__(self, places: list[int], writers: list[Writer], device: torch.device) -> None:
        self.places = places
        self.token_counts = [each.token_counts for each in writers if each.token_counts is not None]
        choices = [writer.choice for writer in writers]
        names = ("repetition_penalty", "presence_penalty", "frequency_penalty")
        self.options = torch.cat([_column(choices, name, device) for name in names], 1)  # (P,3)

    def apply(self, scores: Tensor) -> None:
        """Changes, in place, the scores (N,V) of the tokens that these rows have read or written."""
        lengths = torch.tensor([len(each.tokens) for each in self.token_counts])
        rows = torch.tensor(self.places).repeat_interleave(lengths).to(scores.device)  # (M,), M over all rows
        tokens = torch.from_numpy(np.concatenate([each.tokens for each in self.token_counts])).to(scores.device)
        counts = torch.from_numpy(np.concatenate([each.counts for each in self.token_counts])).to(scores.device)
        options = self.options.repeat_interleave(lengths.to(scores.device), 0)
        repetition, presence, frequency = options.unbind(1)
        found = scores[rows, tokens].double()
        found = torch.where(found > 0, found / repetition, found * repetition)
        found = found - presence * (counts > 0) - frequency * counts
        scores[rows, tokens] = found.to(scores.dtype)


class Filters:
    """Temperature, top_k, top_p and min_p of the S rows that draw, which stand at `places` of the batch."""

    def __init__(self, places: list[int], writers: list[Writer], device: torch.device) -> None:
        self.places, self.writers = torch.tensor(places, device=device), writers
        choices = [writer.choice for writer in writers]
        self.temperature = _column(choices, "temperature", device)
        self.top_k_rows = _where([choice.top_k > 0 for choice in choices], device)
        self.top_p_rows = _where([choice.top_p < 1 for choice in choices], device)
        self.top_k = _column(choices, "top_k", device)[self.top_k_rows].long()
        self.top_p = _column(choices, "top_p", device)[self.top_p_rows]
        self.min_p = _column(choices, "min_p", device)
        self.largest_k = max(choice.top_k for choice in choices)
        self.largest_min_p = max(choice.min_p for choice in choices)

    def weights(self, scores: Tensor) -> Tensor:
        """How likely each token is, (S,V) in float64, as a multiple of the likeliest: it has 1, what is filtered 0."""
        weights = scores[self.places].double()
        weights.sub_(weights.amax(-1, keepdim=True)).div_(self.temperature).exp_()
        if self.largest_k:
            weights[self.top_k_rows] = top_k(weights[self.top_k_rows], self.top_k, self.largest_k)
        if len(self.top_p):
            weights[self.top_p_rows] = top_p(weights[self.top_p_rows], self.top_p)
        return weights.masked_fill_(weights < self.min_p, 0.0) if self.largest_min_p else weights

    def uniforms(self) -> Tensor:
        """The numbers that the next tokens are drawn with, (S,)."""
        numbers = [writer.uniform(len(writer.written)) for writer in self.writers]
        return torch.tensor(numbers, dtype=torch.float64, device=self.places.device)


def top_k(weights: Tensor, k: Tensor, most: int) -> Tensor:
    """Weights (S,V) with 0 for all but the k (S,1) largest; no k is more than `most`."""
    V = weights.shape[1]
    return _largest(weights, weights.topk(min(most + 1, V)).values, k.clamp(max=V))


def top_p(weights: Tensor, p: Tensor) -> Tensor:
    """Weights (S,V) with 0 for all but the fewest largest whose sum reaches p (S,1) of the whole; one at least."""
    V, target = weights.shape[1], p * weights.cumsum(-1)[:, -1:]  # sum() rounds differently for another number of rows
    for most in (*NUCLEI, V):
        ranked = weights.topk(min(most, V)).values
        reached = ranked.cumsum(-1)
        if (reached[:, -1:] >= target).all():
            break
    count = (reached < target).sum(-1, keepdim=True) + 1
    return _largest(weights, ranked, count.clamp(max=V))


def draw(weights: Tensor, uniforms: Tensor) -> Tensor:
    """The tokens (S,) where the cumulated weights (S,V) pass uniforms (S,), in parts of the whole."""
    reached = weights.cumsum(-1)
    # A uniform number is at most 1 - 2^-53, so the product rounds below the total: there is always a token, and
    # right=True passes over those without a weight.
    target = uniforms.unsqueeze(1) * reached[:, -1:]
    return torch.searchsorted(reached, target, right=True).squeeze(1)


@torch.no_grad()
def top(logits: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n likeliest tokens (N,n) by logits (N,V), best first, and the model's own log probabilities of them (N,n)."""
    V = logits.shape[-1]
    if not is_whole(n) or not 1 <= n <= V:
        raise SaccadeError(f"n is a whole number from 1 to {V}, the size of the vocabulary; got {n!r}")
    scores = logits if logits.dtype is torch.float64 else logits.float()
    logprobs, tokens = scores.log_softmax(-1).topk(n)
    possible(logprobs[..., 0])
    return tokens, logprobs


def forbid(scores: Tensor, allowed: Allowed, forbidden: Forbidden) -> None:
    """-inf, in place of the scores (N,V), for what a row may not write."""
    V = scores.shape[1]
    for row, mask in zip(scores, allowed, strict=False):
        if mask is None:
            continue
        if mask.dtype is not torch.bool or mask.shape != (V,):
            raise SaccadeError(f"allowed is a bool tensor ({V},); got {mask.dtype} {tuple(mask.shape)}")
        row.masked_fill_(~mask.to(row.device), -torch.inf)
    for row, tokens in zip(scores, forbidden, strict=False):
        wrong = [token for token in tokens if not 0 <= token < V]
        if wrong:
            raise SaccadeError(f"the token {wrong[0]} cannot be forbidden: tokens are 0 ... {V - 1}")
        row[list(tokens)] = -torch.inf


def _max(scores: Tensor) -> tuple[Tensor, Tensor]:
    """As scores.max(-1) of (N,V), by blocks: torch finds a value six times as fast as its place."""
    N, V = scores.shape
    count = V // BLOCK
    if count < 16:
        return scores.max(-1)
    blocks = scores[:, : count * BLOCK].unflatten(1, (count, BLOCK))
    best, number = blocks.amax(-1).max(-1)
    tokens = number * BLOCK + blocks[torch.arange(N, device=scores.device), number].argmax(-1)
    if V % BLOCK:
        last, place = scores[:, count * BLOCK :].max(-1)
        tokens = torch.where(last > best, count * BLOCK + place, tokens)
        best = torch.maximum(best, last)
    return best, tokens


def likeliest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """As scores.topk(count) of (N,V), by blocks: the `count` largest stand in the blocks of the largest maxima."""
    N, V = scores.shape
    blocks = V // BLOCK
    if blocks <= 2 * count or not scores.is_cpu:
        values, index = scores.topk(min(count, V))
        return values, index
    cut = scores[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))
    chosen = cut.amax(-1).topk(count, sorted=False).indices  # (N,count)
    rows = torch.arange(N, device=scores.device).unsqueeze(1)
    places = (chosen.unsqueeze(-1) * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    places = torch.cat((places, torch.arange(blocks * BLOCK, V, device=scores.device).expand(N, -1)), 1)
    values, index = scores[rows, places].topk(count)
    return values, places.gather(1, index)


def _largest(weights: Tensor, ranked: Tensor, count: Tensor) -> Tensor:
    """Weights (S,V) with 0 for all but the `count` (S,1) largest; ranked (S,K) has these in order, and may have more.

    Of equal ones the first stay, which is looked into only where the next in order is equal or not known.
    """
    least, after = ranked.gather(1, count - 1), ranked.gather(1, count.clamp(max=ranked.shape[1] - 1))
    kept = weights >= least
    if ((after == least) & (least > 0)).any():
        level = weights == least
        room = count - (weights > least).sum(-1, keepdim=True)
        kept &= ~level | (level.cumsum(-1) <= room)
    return weights.where(kept, 0.0)


def _where(flags: list[bool], device: torch.device) -> Tensor | slice:
    """Where the flags are true, as an index; all of them as a slice, which copies nothing."""
    return slice(None) if all(flags) else torch.tensor(flags, device=device).nonzero().squeeze(1)


def _column(choices: list[Choice], name: str, device: torch.device) -> Tensor:
    """One option of each choice, (N,1)."""
    values = [float(getattr(choice, name)) for choice in choices]
    return torch.tensor(values, dtype=torch.float64, device=device).unsqueeze(1)
