"""Learning from whole translations: the expected score of what the model writes itself (REINFORCE, Williams 1992).

    -E[score(y)]  with the gradient  -E[(score(y) - b) d log p(y)],  y ~ p(y | x)

Several translations of each source are drawn; b is the mean score of the others, so that the estimate is unbiased
(Kool et al. 2019). The score of a sentence is GLEU, and the loss is mixed with the likelihood (Wu et al. 2016).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.attend.mask import padding
from saccade.data.batch import pad
from saccade.decode.generate import generate
from saccade.decode.sequence import Sequence as Written
from saccade.model.dropout import at_rest
from saccade.model.model import Model
from saccade.task.loss import token_loss

LONGEST = 4  # tokens of the longest n-gram


def gleu(written: Sequence[int], reference: Sequence[int]) -> float:
    """min(precision, recall) over all n-grams of 1 to 4 tokens: 1 where they agree, 0 where nothing does."""
    mine, theirs = _grams(written), _grams(reference)
    most = max(sum(mine.values()), sum(theirs.values()))
    return sum((mine & theirs).values()) / most if most else 1.0


class Limits(NamedTuple):
    """How translations are drawn: between which tokens, how many of each source, and of how many tokens at most."""

    begin: int
    end: int
    samples: int
    most: int


def regret(model: Model, sources: list[list[int]], references: list[list[int]], limits: Limits) -> Tensor:
    """Summed over the sources: a number whose gradient is that of minus the expected score. Its value means nothing.

    sources come with their ends, references without.
    """
    seed = int(torch.randint(1 << 31, ()))  # from the step's own random numbers
    found, scores = draw(model, sources, references, limits, seed)
    said = [[*each.tokens, limits.end] if each.finished else each.tokens for row in found for each in row]
    worth = advantages(scores).flatten() / limits.samples
    repeated = [source for source in sources for _ in range(limits.samples)]
    return unlikelihood(model, repeated, said, worth, limits.begin)


def draw(
    model: Model, sources: list[list[int]], references: list[list[int]], limits: Limits, seed: int
) -> tuple[list[list[Written]], Tensor]:
    """Translations of each source as the model finds them likely, and their scores (N,samples)."""
    begin, end, samples, most = limits
    found = generate(
        model, sources=sources, begin=begin, end=end, max_tokens=most, n=samples, temperature=1.0, seed=seed
    )
    scores = [[gleu(each.tokens, reference) for each in row] for row, reference in zip(found, references, strict=True)]
    return found, torch.tensor(scores)


def advantages(scores: Tensor) -> Tensor:
    """How much better each of several samples (N,K) is than the mean of the others."""
    return scores - (scores.sum(1, keepdim=True) - scores) / (scores.shape[1] - 1)


def unlikelihood(model: Model, sources: list[list[int]], said: list[list[int]], worth: Tensor, begin: int) -> Tensor:
    """-sum of worth (N,) x log p(said | source)."""
    device = model.embed.tokens.weight.device
    source, lengths = (each.to(device) for each in pad(sources, 0))
    shown, sizes = (each.to(device) for each in pad([[begin, *each[:-1]] for each in said], 0))
    with at_rest(model):  # as it was drawn: with dropout it would be the probability of another model's words
        states = model.states(source, shown, padding=padding(lengths))  # nobody asks what lies behind a target's end
    places = (torch.arange(shown.shape[1], device=device) < sizes[:, None]).flatten()
    wanted = torch.tensor([token for each in said for token in each], device=device)
    weights = worth.to(states).repeat_interleave(sizes)
    return token_loss(model, states.flatten(0, 1)[places], wanted, weights=weights)


def _grams(tokens: Sequence[int]) -> Counter[tuple[int, ...]]:
    spans = ((at, at + n) for n in range(1, LONGEST + 1) for at in range(len(tokens) - n + 1))
    return Counter(tuple(tokens[begin:end]) for begin, end in spans)
