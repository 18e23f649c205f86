"""Beam search: at every step the `beam` likeliest beginnings of each prompt go on (Graves 2012, Sutskever et al. 2014).

Of the candidates for the next token the best `beam` are looked at; those that have ended are set aside, and the next
best take their places, so that as many go on. What was set aside is ranked by

    score = logprob / length ** alpha          length: the tokens, and the end where there is one

Wu et al. 2016 divide by ((5 + length) / 6) ** alpha instead. At max_tokens the beginnings compete as they are. A prompt
is done as soon as none of its beginnings can enter the n best any more: a log probability only falls, so the best that
one can still become is its own divided by max_tokens ** alpha. Stopping early therefore changes no result.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from saccade.decode.sequence import Limits, Sequence, possible
from saccade.decode.step import Stepper


class Beams:
    """The beginnings that are still searched: K of each of P prompts, best first."""

    def __init__(self, N: int, max_tokens: int, like: Tensor) -> None:
        self.length = 0
        self.prompts = torch.arange(N, device=like.device)  # (P,)
        self.tokens = like.new_zeros(N, 1, max_tokens, dtype=torch.long)  # (P,K,max_tokens)
        self.totals = like.new_zeros(N, 1)  # (P,K), log probabilities
        self.origin = self.prompts.unsqueeze(1)  # (P,K), the row of the model that each goes on from

    @property
    def last(self) -> Tensor:
        """The last token of each, (P,K)."""
        return self.tokens[:, :, self.length - 1]

    def grow(self, logprobs: Tensor, most: int) -> None:
        """Puts the likeliest next tokens in place of the beginnings, by logprobs (P*K,V): `most` of them a prompt."""
        (P, K), V = self.totals.shape, logprobs.shape[-1]
        totals = (self.totals.unsqueeze(-1) + logprobs.view(P, K, V)).flatten(1)
        self.totals, index = totals.topk(min(most, K * V))
        possible(self.totals[:, 0])
        parents = index // V
        self.origin = torch.arange(P, device=index.device).unsqueeze(1) * K + parents
        self.tokens = _rows(self.tokens, parents)
        self.tokens[:, :, self.length] = index % V
        self.length += 1

    def thin(self, ended: Tensor, beam: int) -> None:
        """The best `beam` of those that have not ended, (P,K); a place with nobody left has -inf."""
        self.totals, best = self.totals.masked_fill(ended, -torch.inf).topk(min(beam, ended.shape[1]))
        self.tokens, self.origin = _rows(self.tokens, best), self.origin.gather(1, best)

    def leave(self, done: Tensor) -> None:
        """Leaves behind the prompts that are done, (P,)."""
        self.prompts, self.tokens = self.prompts[~done], self.tokens[~done]
        self.totals, self.origin = self.totals[~done], self.origin[~done]


class Shelf:
    """The n best hypotheses of each prompt that were set aside, best first."""

    def __init__(self, prompts: int, n: int, alpha: float, limits: Limits, like: Tensor) -> None:
        self.n, self.alpha, self.limits = n, alpha, limits
        self.scores = like.new_full((prompts, n), -torch.inf)  # -inf: an empty place
        self._logprobs = like.new_zeros(prompts, n)
        self._lengths = like.new_ones(prompts, n, dtype=torch.long)
        self._tokens = like.new_zeros(prompts, n, limits.max_tokens, dtype=torch.long)

    def offer(self, beams: Beams, aside: Tensor, beam: int) -> None:
        """Sets aside those of the best `beam` where `aside` (P,K) is true, as far as they are among the n best."""
        prompts, totals, tokens = beams.prompts, beams.totals[:, :beam], beams.tokens[:, :beam]
        scores = (totals / beams.length**self.alpha).masked_fill(~aside[:, :beam], -torch.inf)
        self.scores[prompts], best = torch.cat((self.scores[prompts], scores), 1).topk(self.n)
        lengths = torch.full_like(tokens[:, :, 0], beams.length)
        self._logprobs[prompts] = torch.cat((self._logprobs[prompts], totals), 1).gather(1, best)
        self._lengths[prompts] = torch.cat((self._lengths[prompts], lengths), 1).gather(1, best)
        self._tokens[prompts] = _rows(torch.cat((self._tokens[prompts], tokens), 1), best)

    def settled(self, beams: Beams) -> Tensor:
        """Which prompts are done (P,): their best beginning cannot become better than the n-th here."""
        return self.scores[beams.prompts, -1] >= beams.totals[:, 0] / self.limits.max_tokens**self.alpha

    def sequences(self) -> list[list[Sequence]]:
        """The hypotheses of each prompt: n, or all there are."""
        filled = self.scores > -torch.inf
        flat = self.limits.sequences(self._tokens[filled], self._lengths[filled], self._logprobs[filled])
        each = iter(flat)
        return [[next(each) for _ in range(count)] for count in filled.sum(1).tolist()]


def search(
    stepper: Stepper, state: Any, logits: Tensor, limits: Limits, *, beam: int, n: int, alpha: float
) -> list[list[Sequence]]:
    """The n best hypotheses of each row that `stepper.start` gave, best first, all of them searched in one batch."""
    logprobs = limits.logprobs(logits, 0)
    beams = Beams(logits.shape[0], limits.max_tokens, logprobs)
    shelf = Shelf(logits.shape[0], n, alpha, limits, logprobs)
    while True:
        beams.grow(logprobs, 2 * beam)  # a beginning ends in one way only, so half of them go on
        ended, over = limits.is_end(beams.last), beams.length == limits.max_tokens
        shelf.offer(beams, ended | over, beam)
        beams.thin(ended, beam)
        beams.leave(shelf.settled(beams))
        if over or not beams.prompts.numel():
            return shelf.sequences()
        stepper.reorder(state, beams.origin.flatten())
        logits = stepper.step(beams.last.reshape(-1, 1), state)[:, -1]
        logprobs = limits.logprobs(logits, beams.length)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """x[p, index[p, c]] for x (P,K,L) and index (P,C) -> (P,C,L)."""
    return x.gather(1, index.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
