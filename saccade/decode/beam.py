"""Beam search: at every step the `beam` likeliest beginnings of each prompt go on (Graves 2012, Sutskever et al. 2014).

Of the candidates for the next token the best `beam` are looked at; those that have ended are set aside, and the next
best take their places, so that as many go on. What was set aside is ranked by

    score = logprob / length ** alpha + reward length [it has ended]          length: the tokens, and the end if any

Wu et al. 2016 divide by ((5 + length) / 6) ** alpha instead. A reward for every token, with alpha = 0, is that of He et
al. 2016 and Murray & Chiang 2018: the likeliest sequence is often shorter than people's. At max_tokens the beginnings
compete as they are, without a reward. A prompt is done as soon as none of its beginnings can enter the n best any more:
a log probability only falls, so the best score that one can still have is that of its own, ended, at max_tokens.
Stopping early therefore changes no result.

Diverse beams (Vijayakumar et al. 2016): the beam is split into groups, which choose one after the other. A token costs
a group `diversity` for each time that the groups before it have chosen it in this step; the cost counts for the choice
alone, not for the score. The results are the best of every group, then the second best.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.decode.choose import likeliest
from saccade.decode.sequence import LengthLimits, Sequence, possible, whole
from saccade.decode.step import Stepper, refuse_rows
from saccade.error import SaccadeError

COPIES = 3  # of what rows hold, while they are moved and candidates are ranked; measured on the recipe dates: 3.6


class Candidates(NamedTuple):
    """The likeliest next tokens of each row (M,C), and the model's own log probabilities of them."""

    tokens: Tensor
    logprobs: Tensor

    @classmethod
    def of(cls, parts: Iterable[Tensor], count: int, limits: LengthLimits, written: int) -> Candidates:
        """From logits (n,V) of a few rows after another, which are overwritten."""
        found = []
        for logits in parts:
            scores = logits if logits.dtype is torch.float64 else logits.float()
            banned = list(limits.forbidden(written))
            kept = scores[:, banned]
            scores[:, banned] = -torch.inf
            values, tokens = likeliest(scores, count)
            scores[:, banned] = kept  # they stay in the sum below, so that log probabilities are the model's own
            peak = torch.cat((values[:, :1], kept), 1).amax(1, keepdim=True)
            found.append((tokens, values - peak - scores.sub_(peak).exp_().sum(1, keepdim=True).log_()))
        tokens, logprobs = (torch.cat(each) for each in zip(*found, strict=True))
        return cls(tokens, logprobs)


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

    def grow(self, candidates: Candidates, most: int, groups: int = 1, diversity: float = 0.0) -> None:
        """Puts the likeliest next tokens in place of the beginnings: `most` of them a prompt."""
        (P, K), tokens = self.totals.shape, candidates.tokens
        C = tokens.shape[1]
        totals = (self.totals.unsqueeze(-1) + candidates.logprobs.view(P, K, C)).flatten(1)
        tokens = tokens.view(P, K * C)
        if groups > 1:
            self.totals, index = _diverse_topk(totals, tokens, min(most, K * C), groups, diversity)
        else:
            self.totals, index = totals.topk(min(most, K * C))
        possible(self.totals.amax(1))
        parents = index // C
        self.origin = torch.arange(P, device=index.device).unsqueeze(1) * K + parents
        self.tokens = _gather_rows(self.tokens, parents)
        self.tokens[:, :, self.length] = tokens.gather(1, index)
        self.length += 1

    def thin(self, ended: Tensor, beam: int) -> None:
        """The first `beam` of those that have not ended, (P,K); a place that stays empty has -inf."""
        K = ended.shape[1]
        ranks = torch.arange(K, device=ended.device) + ended * K
        best = ranks.topk(min(beam, K), largest=False).indices
        self.totals = self.totals.masked_fill(ended, -torch.inf).gather(1, best)
        self.tokens, self.origin = _gather_rows(self.tokens, best), self.origin.gather(1, best)

    def leave(self, done: Tensor) -> None:
        """Leaves behind the prompts that are done, (P,)."""
        self.prompts, self.tokens = self.prompts[~done], self.tokens[~done]
        self.totals, self.origin = self.totals[~done], self.origin[~done]


class Shelf:
    """The n best hypotheses of each prompt that were set aside, best first."""

    def __init__(self, prompts: int, n: int, alpha: float, reward: float, limits: LengthLimits, like: Tensor) -> None:
        self.n, self.alpha, self.reward, self.limits = n, alpha, reward, limits
        self.scores = like.new_full((prompts, n), -torch.inf)  # -inf: an empty place
        self._logprobs = like.new_zeros(prompts, n)
        self._lengths = like.new_ones(prompts, n, dtype=torch.long)
        self._tokens = like.new_zeros(prompts, n, limits.max_tokens, dtype=torch.long)

    def offer(self, beams: Beams, ended: Tensor, over: bool, beam: int) -> None:
        """Sets aside those of the best `beam` that have ended (P,K), all if it is over, if among the n best."""
        prompts, totals, tokens = beams.prompts, beams.totals[:, :beam], beams.tokens[:, :beam]
        ended = ended[:, :beam]
        scores = self._score(totals, beams.length, ended.to(totals))
        scores = scores if over else scores.masked_fill(~ended, -torch.inf)
        self.scores[prompts], best = torch.cat((self.scores[prompts], scores), 1).topk(self.n)
        lengths = torch.full_like(tokens[:, :, 0], beams.length)
        self._logprobs[prompts] = torch.cat((self._logprobs[prompts], totals), 1).gather(1, best)
        self._lengths[prompts] = torch.cat((self._lengths[prompts], lengths), 1).gather(1, best)
        self._tokens[prompts] = _gather_rows(torch.cat((self._tokens[prompts], tokens), 1), best)

    def settled(self, beams: Beams) -> Tensor:
        """Which prompts are done (P,): their best beginning cannot become better than the n-th here."""
        return self.scores[beams.prompts, -1] >= self._score(beams.totals.amax(1), self.limits.max_tokens, 1.0)

    def _score(self, totals: Tensor, length: int, ended: Tensor | float) -> Tensor:
        return totals / length**self.alpha + self.reward * length * ended

    def sequences(self) -> list[list[Sequence]]:
        """The hypotheses of each prompt: n, or all there are."""
        filled = self.scores > -torch.inf
        flat = self.limits.sequences(self._tokens[filled], self._lengths[filled], self._logprobs[filled])
        each = iter(flat)
        return [[next(each) for _ in range(count)] for count in filled.sum(1).tolist()]


class Search:
    """The search for P prompts at once, from what `stepper.start` gave; every `step` writes one token more."""

    def __init__(
        self,
        stepper: Stepper,
        state: Any,
        logits: Tensor,
        limits: LengthLimits,
        *,
        beam: int,
        n: int = 1,
        alpha: float = 1.0,
        reward: float = 0.0,
        groups: int = 1,
        diversity: float = 0.0,
    ) -> None:
        self.stepper, self.state, self.limits, self.diversity = stepper, state, limits, diversity
        self.beam, self.groups, self.n = beam // groups, groups, n
        self._refuse_larger(beam, logits)
        if groups > 1:  # each group searches as if it were a prompt of its own
            rows = torch.arange(logits.shape[0], device=logits.device).repeat_interleave(groups)
            stepper.reorder(state, rows)
            logits = logits[rows]
        self._logits: Tensor | None = logits
        self.beams = Beams(
            logits.shape[0], limits.max_tokens, logits if logits.dtype is torch.float64 else logits.float()
        )
        self.shelf = Shelf(logits.shape[0], min(n, self.beam), alpha, reward, limits, self.beams.totals)
        # A beginning can end in as many ways as there are ends, so of (1 + ends) * beam candidates `beam` go on.
        # A group looks at more of them, since those that the groups before it chose may cost too much.
        self._wide = (1 + max(1, len(limits.ends))) * self.beam
        self._most = self._wide + (groups - 1) * self.beam

    def _refuse_larger(self, beam: int, logits: Tensor) -> None:
        """Refuses a beam that the memory cannot hold: its rows as they are before the last token, of which there are no
        more than there are texts, with their tokens and the candidates for the next.
        """
        longest, vocab = self.limits.max_tokens, self.stepper.vocab
        rows = logits.shape[0] * min(beam, vocab ** (longest - 1))
        candidate = torch.long.itemsize + logits.dtype.itemsize
        each = torch.long.itemsize * longest + candidate * min(vocab, 2 * self.beam)
        refuse_rows(self.stepper, COPIES * rows, longest, each, f"a beam of {beam:,}", str(logits.device))

    def step(self) -> bool:
        """Writes one token more; False where the search is done."""
        beams, limits = self.beams, self.limits
        if self._logits is None:
            parts = self.stepper.parts(beams.last.reshape(-1, 1), self.state)
        else:
            parts, self._logits = iter([self._logits.clone()]), None
        found = Candidates.of(parts, self._most, limits, beams.length)
        beams.grow(found, self._wide, self.groups, self.diversity)
        ended, over = limits.is_end(beams.last), beams.length == limits.max_tokens
        self.shelf.offer(beams, ended, over, self.beam)
        beams.thin(ended, self.beam)
        if self.groups == 1:
            beams.leave(self.shelf.settled(beams))
        elif bool(self.shelf.settled(beams).all()):
            return False  # the groups of a prompt end together, since each depends on the choices of the others
        if over or not beams.prompts.numel():
            return False
        self.stepper.reorder(self.state, beams.origin.flatten())
        return True

    def sequences(self) -> list[list[Sequence]]:
        """The n best hypotheses of each prompt, best first, or all there are."""
        found = self.shelf.sequences()
        if self.groups == 1:
            return found
        return [_interleaved(found[at : at + self.groups], self.n) for at in range(0, len(found), self.groups)]


def beam_options(
    beam: int, n: int, length_penalty: float, length_reward: float, groups: int, diversity: float
) -> dict[str, Any]:
    """The options of a `Search`, checked."""
    whole("beam", beam, 1)
    whole("n", n, 1)
    whole("groups", groups, 1)
    if n > beam:
        raise SaccadeError(f"a beam of {beam} cannot give the n = {n} best: make the beam {n} or more")
    if beam % groups:
        raise SaccadeError(f"{groups} groups do not divide a beam of {beam}")
    numbers = {"length_penalty": length_penalty, "length_reward": length_reward, "diversity": diversity}
    for name, value in numbers.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 10:
            raise SaccadeError(f"{name} is a number from 0 to 10; got {value!r}")
    return {
        "beam": beam,
        "n": n,
        "alpha": length_penalty,
        "reward": length_reward,
        "groups": groups,
        "diversity": diversity,
    }


def _interleaved(groups: list[list[Sequence]], n: int) -> list[Sequence]:
    """The best of every group, then the second best of every group, each hypothesis once: n of them."""
    found: dict[tuple[bool, tuple[int, ...]], Sequence] = {}
    for rank in range(max(map(len, groups))):
        for each in (group[rank] for group in groups if rank < len(group)):
            found.setdefault((each.finished, tuple(each.tokens)), each)
    return list(found.values())[:n]


def _gather_rows(x: Tensor, index: Tensor) -> Tensor:
    """x[p, index[p, c]] for x (P,K,L) and index (P,C) -> (P,C,L)."""
    return x.gather(1, index.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


def _diverse_topk(totals: Tensor, tokens: Tensor, most: int, groups: int, diversity: float) -> tuple[Tensor, Tensor]:
    """As topk of totals (P*groups,C), where tokens that earlier groups chose cost; the values are without that cost."""
    totals, tokens = totals.unflatten(0, (-1, groups)), tokens.unflatten(0, (-1, groups))  # (P,groups,C)
    costs = totals.new_zeros(totals.shape[0], int(tokens.max()) + 1)
    found = []
    for own, names in zip(totals.unbind(1), tokens.unbind(1), strict=True):
        index = (own - costs.gather(1, names) * diversity).topk(most).indices
        going = names.gather(1, index[:, : max(most // 2, 1)])
        costs.scatter_add_(1, going, torch.ones_like(going, dtype=costs.dtype))
        found.append((own.gather(1, index), index))
    values, indices = zip(*found, strict=True)
    return torch.stack(values, 1).flatten(0, 1), torch.stack(indices, 1).flatten(0, 1)
