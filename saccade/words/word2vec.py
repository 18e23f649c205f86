"""word2vec: vectors that tell a word's neighbours from words drawn by chance (Mikolov et al. 2013, twice).

`skipgram` predicts the middle word from each word of its window (the paper has it the other way round, its program
does not; over all windows the pairs are the same), `cbow` the middle word from the mean of its window.
Instead of one pair after another, a step takes blocks of neighbouring words at once, as matrix products. It differs
from the paper's program in four points: the words of a block share their negative words, weighted so that each pair
expects as many as it asked for; a negative word that happens to be the word itself stays; all pairs of a step see the
vectors from before the step; and therefore the rate is lowered where window, negative words and rate together would
make such a step diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.words.neighbours import Negatives, chances, thinned, windows
from saccade.words.setting import Settings
from saccade.words.word_corpus import WordCorpus

BLOCK = 16  # words of a block at least, and the negative words it shares; of a small product most lies in the band
STEP = 512  # words of a step at most: enough to hide Python's time
# All gradients of a word in a step are summed at its old vector: where there are many, the step overshoots. `pull`
# measures how far a word is moved.
MOST = 1.5  # pull of one occurrence of a word, beyond which the rate is lowered
SUM = 7.0  # pull of the commonest word in a step, beyond which steps are made shorter
AHEAD = 64  # steps whose negative words are drawn together
LOWEST = 1e-4  # of the learning rate
Progress = Callable[[float], None]


class StepInput(NamedTuple):
    """What a step sees. B blocks of T words; S = T + 2 window, for the words that windows reach on either side."""

    words: Tensor  # (B T + 2 window,) numbers of the words, the blocks one after another
    mask: Tensor  # (B,T,S) 1 where word s is in the window of word t
    negatives: Tensor  # (B,K) numbers of the words drawn by chance


class Gradient(NamedTuple):
    """The gradients of a step's log likelihood."""

    inputs: Tensor  # (B,S,C)
    outputs: Tensor  # (B,T,C)
    negatives: Tensor  # (B,K,C)


def learn(corpus: WordCorpus, settings: Settings, progress: Progress) -> np.ndarray:
    """The vectors (V,C) of a corpus's words; the same for the same seed."""
    random = np.random.default_rng(settings.seed)
    shape = len(corpus.names), settings.width
    inputs = torch.from_numpy((random.random(shape, dtype=np.float32) * 2 - 1) / settings.width)
    outputs = torch.zeros_like(inputs)
    keep, negatives = chances(corpus.counts, settings.sample), Negatives(corpus.counts)
    slope, rate = GRADIENTS[settings.kind], settings.pace * min(1.0, MOST / pull(settings))
    for epoch in range(settings.passes):
        for done, sample in steps_of(corpus, keep, negatives, settings, random):
            share = (epoch + done) / settings.passes
            step(inputs, outputs, sample, slope, settings.negative, max(min(rate, LOWEST), rate * (1 - share)))
            progress(share)
    return inputs.numpy()


def pull(settings: Settings) -> float:
    """How far an occurrence of a word is moved, in whole gradients: rate x pairs of a window x words of a pair."""
    return settings.pace * (settings.window + 1) * (settings.negative + 1)


def steps_of(
    corpus: WordCorpus, keep: np.ndarray, negatives: Negatives, settings: Settings, random: np.random.Generator
) -> Iterator[tuple[float, StepInput]]:
    """The steps of an epoch, each with the share of the epoch that lies before it."""
    window, block = settings.window, max(BLOCK, 2 * settings.window)
    tokens, texts = thinned(corpus, keep, random)
    if not len(tokens):
        raise SaccadeError(f"sample = {settings.sample} leaves no word of the text: raise it")
    common = np.bincount(tokens).max() / len(tokens)
    blocks = max(1, int(min(STEP, SUM / (common * min(pull(settings), MOST)))) // block)
    size = blocks * block
    steps = -(-len(tokens) // size)
    words = torch.from_numpy(np.pad(tokens, (window, steps * size - len(tokens) + window)))
    left, right = (_padded(each, (steps, blocks, block, 1)) for each in windows(texts, window, random))
    for number in range(steps):
        if number % AHEAD == 0:
            drawn = torch.from_numpy(negatives.draw((AHEAD, blocks, block), random))
        mask = banded(left[number], right[number], window)
        yield number / steps, StepInput(words[number * size :][: size + 2 * window], mask, drawn[number % AHEAD])


def banded(left: Tensor, right: Tensor, window: int) -> Tensor:
    """The mask (B,T,S) of windows that reach `left` and `right` (B,T,1) words far, the word itself left out."""
    offsets = torch.arange(-window, window + 1, dtype=left.dtype)
    blocks, block, _ = left.shape
    mask = torch.zeros(blocks, block, block + 2 * window, dtype=torch.float32)
    _band(mask).copy_((offsets >= -left) & (offsets <= right) & (offsets != 0))
    return mask


def step(
    inputs: Tensor,
    outputs: Tensor,
    sample: StepInput,
    slope: Callable[[Tensor, Tensor, Tensor, Tensor, float], Gradient],
    negative: int,
    rate: float,
) -> None:
    """Moves the vectors along the gradient of one step."""
    blocks, block, reach = sample.mask.shape
    width, window = inputs.shape[1], (reach - block) // 2
    middle, drawn = sample.words[window : len(sample.words) - window], sample.negatives.flatten()
    context = inputs.index_select(0, sample.words)
    wanted = outputs.index_select(0, middle).view(blocks, block, width)
    other = outputs.index_select(0, drawn).view(blocks, -1, width)
    overlapping = context.as_strided((blocks, reach, width), (block * width, width, 1))  # blocks share their edges
    found = slope(sample.mask, overlapping, wanted, other, negative / other.shape[1])
    inputs.index_add_(0, sample.words, _folded(found.inputs, block), alpha=rate)
    outputs.index_add_(0, middle, found.outputs.view(-1, width), alpha=rate)
    outputs.index_add_(0, drawn, found.negatives.view(-1, width), alpha=rate)


def skipgram(mask: Tensor, inputs: Tensor, outputs: Tensor, negatives: Tensor, weight: float) -> Gradient:
    """Gradients of the sum over pairs (t, s): log sigma(o_t . i_s) + weight * sum over k of log sigma(-n_k . i_s)."""
    right = torch.zeros_like(mask)
    scores = torch.bmm(outputs, inputs.mT)  # (B,T,S), of which only the band is needed
    _band(right).copy_(torch.sigmoid(-_band(scores)).mul_(_band(mask)))
    pairs = mask.sum(1).mul_(weight)  # (B,S)
    wrong = torch.bmm(inputs, negatives.mT).sigmoid_().mul_(-pairs[:, :, None])  # (B,S,K)
    towards = torch.bmm(right.mT, outputs).baddbmm_(wrong, negatives)
    return Gradient(towards, torch.bmm(right, inputs), torch.bmm(wrong.mT, inputs))


def cbow(mask: Tensor, inputs: Tensor, outputs: Tensor, negatives: Tensor, weight: float) -> Gradient:
    """Gradients of the sum over words t: log sigma(o_t . m_t) + weight * sum over k of log sigma(-n_k . m_t), where m_t
    is the mean of the window of t.

    As in the paper's program each word of a window takes the whole gradient of the mean, not its share of it.
    """
    count = mask.sum(2, keepdim=True)
    there = count.clamp(max=1)  # a text of one word has nothing to predict it from
    means = torch.bmm(mask, inputs).div_(count.clamp(min=1))
    right = torch.sigmoid(-(means * outputs).sum(2, keepdim=True)).mul_(there)
    wrong = torch.bmm(means, negatives.mT).sigmoid_().mul_(-weight * there)  # (B,T,K)
    towards = (right * outputs).baddbmm_(wrong, negatives)
    return Gradient(torch.bmm(mask.mT, towards), right * means, torch.bmm(wrong.mT, means))


def _band(matrix: Tensor) -> Tensor:
    """A view (B,T,2 window + 1) of the diagonals of a matrix (B,T,S) on which windows lie."""
    blocks, block, reach = matrix.shape
    return matrix.as_strided((blocks, block, reach - block + 1), (block * reach, reach + 1, 1))


def _folded(blocks: Tensor, block: int) -> Tensor:
    """The sum (B T + 2 window, C) of blocks (B,S,C) that overlap at their ends."""
    count, reach, width = blocks.shape
    total = blocks.new_zeros(count + 1, block, width)
    total[:-1] = blocks[:, :block]
    total[1:, : reach - block] += blocks[:, block:]
    return total.view(-1, width)[: count * block + reach - block]


def _padded(values: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """Small numbers (N,) in a shape that has room for more, with zeros behind them."""
    filled = np.zeros(shape, dtype=np.int8)
    filled.reshape(-1)[: len(values)] = values
    return torch.from_numpy(filled)


GRADIENTS = {"skipgram": skipgram, "cbow": cbow}
