"""Learning from whole translations: the expected score of what the model writes itself (REINFORCE, Williams 1992).

    -E[score(y)]  with the gradient  -E[(score(y) - b) d log p(y)],  y ~ p(y | x)

Several translations of each source are drawn; b is the mean score of the others, so that the estimate is unbiased
(Kool et al. 2019). The score of a sentence is GLEU, and the loss is mixed with the likelihood (Wu et al. 2016).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from saccade.decode.generate import generate
from saccade.decode.sequence import Sequence as Written
from saccade.error import SaccadeError
from saccade.field.field import Term, WrittenTarget
from saccade.field.loss import token_loss
from saccade.field.text.text_field import padded
from saccade.model.dropout import evaluating
from saccade.model.input import Input
from saccade.model.model import Model
from saccade.task.batch import Batch
from saccade.task.inputs import Inputs, Task
from saccade.task.pair import Pair

LONGEST = 4  # tokens of the longest n-gram of GLEU


def gleu(written: Sequence[int], reference: Sequence[int]) -> float:
    """min(precision, recall) over all n-grams of 1 to 4 tokens: 1 where they agree, 0 where nothing does."""
    mine, theirs = _grams(written), _grams(reference)
    most = max(sum(mine.values()), sum(theirs.values()))  # the larger of both denominators gives the minimum
    return sum((mine & theirs).values()) / most if most else 1.0


class reward:
    """A `share` of the loss is minus the expected GLEU, estimated from `samples` translations drawn for each source."""

    judged = "sampled_gleu"

    def __init__(self, share: float, samples: int = 4, *, task: Task) -> None:
        self.task, self.y, self.share, self.samples = task, cast(WrittenTarget, task.target), share, samples

    @staticmethod
    def fits(pair: Pair, share: Any = 1.0, samples: Any = 4) -> None:
        """Refuses numbers out of range, and a pair that is not the translation of one text."""
        if not all(isinstance(each, int | float) for each in (share, samples)) or not 0 < share <= 1 or samples < 2:
            raise SaccadeError(f"reward: a share above 0 and up to 1, and 2 samples or more; got {share}, {samples}")
        if not pair.writes or [part.kind.kind for part in pair.x.values()] != ["text"]:
            raise SaccadeError(f"train.objective = 'reward' scores translations of a text, and the task is {pair.verb}")
        if any(getattr(part.config, "unmerge", 0) for part in pair.parts.values()):
            raise SaccadeError(
                "a reward compares tokens with the reference's, which unmerge spells otherwise: leave one out"
            )

    def change(self, x: Mapping[str, Input], y: Input, draw: np.random.Generator) -> tuple[Mapping[str, Input], Input]:
        """The examples as they are."""
        return x, y

    def terms(self, model: Model, batch: Batch, found: dict[str, Term]) -> dict[str, Term]:
        """The terms of the likelihood, weighted by 1 - share, and that of the reward, weighted by share."""
        (x,) = batch.x.values()
        wanted = batch.y.values["wanted"]
        references = [[token for token in row if token >= 0][:-1] for row in wanted.tolist()]  # without their ends
        sampling = self._sampling(model, wanted.shape[1])
        lost = regret(model, _sources(x), references, sampling)
        kept = {name: term._replace(weight=(1 - self.share) * term.weight) for name, term in found.items()}
        return {**kept, "reward": Term(lost, self.share, reported=False)}

    def measure(self, model: Model, rows: Sequence[Sequence[Any]]) -> dict[str, float]:
        """The mean GLEU of drawn translations, with the same seed each time: the quantity that the reward raises."""
        read = Inputs(self.task, model, [self.task.inputs(row) for row in rows])
        references = self.y.text.encode([row[-1] for row in rows])
        if not read.fit:
            return {self.judged: math.nan}
        sampling = self._sampling(model, max(len(references[number]) for number in read.fit) + 1)
        sources = [_sources(next(iter(read.collated([number]).values())))[0] for number in read.fit]
        scores = draw(model, sources, [references[number] for number in read.fit], sampling, seed=0)[1]
        return {self.judged: float(scores.mean())}

    def _sampling(self, model: Model, target: int) -> TranslationSampling:
        """Translations at most twice as long as the longest target, and no longer than the model has positions."""
        return TranslationSampling(self.y.begin, self.y.end, self.samples, min(2 * target, model.room or 2 * target))


def _sources(x: Input) -> list[list[int]]:
    """The tokens of each source, with its end."""
    tokens = x.values["tokens"]
    sizes = x.lengths[0].tolist() if x.lengths else [tokens.shape[1]] * x.rows
    return [row[:size] for row, size in zip(tokens.tolist(), sizes, strict=True)]


class TranslationSampling(NamedTuple):
    """How translations are drawn: between which tokens, how many for each source, and of how many tokens at most."""

    begin: int
    end: int
    samples: int
    most: int


def regret(
    model: Model, sources: list[list[int]], references: list[list[int]], sampling: TranslationSampling
) -> Tensor:
    """Summed over the sources: a number whose gradient is that of minus the expected score. Its value means nothing.

    sources come with their ends, references without.
    """
    seed = int(torch.randint(1 << 31, ()))  # torch is seeded by the step, so that a resumed run draws the same
    found, scores = draw(model, sources, references, sampling, seed)
    said = [[*each.tokens, sampling.end] if each.finished else each.tokens for row in found for each in row]
    worth = advantages(scores).flatten() / sampling.samples
    repeated = [source for source in sources for _ in range(sampling.samples)]
    return unlikelihood(model, repeated, said, worth, sampling.begin)


def draw(
    model: Model, sources: list[list[int]], references: list[list[int]], sampling: TranslationSampling, seed: int
) -> tuple[list[list[Written]], Tensor]:
    """Translations of each source, drawn from the model's distribution, and their scores (N,samples)."""
    begin, end, samples, most = sampling
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
    device = model.device
    source, lengths = (each.to(device) for each in padded(sources, 0))
    shown, sizes = (each.to(device) for each in padded([[begin, *each[:-1]] for each in said], 0))
    with evaluating(model):  # they were drawn without dropout, so their probability is that without dropout too
        # The targets need no lengths: what lies behind their ends is left out below.
        states = model.states(Input({"tokens": source}, lengths), Input({"tokens": shown})).last
    places = (torch.arange(shown.shape[1], device=device) < sizes[:, None]).flatten()
    wanted = torch.tensor([token for each in said for token in each], device=device)
    weights = worth.to(states).repeat_interleave(sizes)
    return token_loss(model, states.flatten(0, 1)[places], wanted, weights=weights)


def _grams(tokens: Sequence[int]) -> Counter[tuple[int, ...]]:
    spans = ((at, at + n) for n in range(1, LONGEST + 1) for at in range(len(tokens) - n + 1))
    return Counter(tuple(tokens[begin:end]) for begin, end in spans)
