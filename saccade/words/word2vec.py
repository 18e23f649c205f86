"""word2vec: vectors that tell a word's neighbours from words drawn by chance (Mikolov et al. 2013, twice).

`skipgram` predicts the middle word from each word of its window (the paper has it the other way round, its program
does not; over all windows the pairs are the same), `cbow` the middle word from the mean of its window.
Instead of one pair after another, a step takes blocks of neighbouring words at once, as matrix products. It differs
from the paper's program in four points: the words of a block share their negative words, weighted so that each pair
expects as many as it asked for; one that is the word itself by chance stays; a step's pairs all see the vectors as they
were before the step; and therefore the rate is lowered where the window, the negative words and the rate together ask
for more than such a step can bear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.error import SaccadeError
from saccade.words.context import Negatives, chances, thinned, windows
from saccade.words.reading import Reading
from saccade.words.setting import Settings

BLOCK = 16  # words of a block at least, and the negative words it shares: small products waste little on the band
STEP = 512  # words of a step at most: enough to hide Python's time
# What a word gets in a step is summed, and old vectors lead astray where that is much. `pull` measures it.
MOST = 1.5  # pull of one occurrence of a word, beyond which the rate is lowered
SUM = 7.0  # pull of the commonest word in a step, beyond which steps are made shorter
AHEAD = 64  # steps whose negative words are drawn together
LOWEST = 1e-4  # of the learning rate
Progress = Callable[[float], None]


class Look(NamedTuple):
    """What a step sees. B blocks of T words; S = T + 2 window, for the words that windows reach on either side."""

    words: Tensor  # (B T + 2 window,) numbers of the words, the blocks one after another
    mask: Tensor  # (B,T,S) 1 where word s is in the window of word t
    negatives: Tensor  # (B,K) numbers of the words drawn by chance


class Gradient(NamedTuple):
    """The gradients of a step's log likelihood."""

    inputs: Tensor  # (B,S,C)
    outputs: Tensor  # (B,T,C)
    negatives: Tensor  # (B,K,C)


def learn(reading: Reading, settings: Settings, progress: Progress) -> np.ndarray:
    """The vectors (V,C) of a reading's words, which are the same for the same seed."""
    random = np.random.default_rng(settings.seed)
    shape = len(reading.names), settings.width
    inputs = torch.from_numpy((random.random(shape, dtype=np.float32) * 2 - 1) / settings.width)
    outputs = torch.zeros_like(inputs)
    keep, negatives = chances(reading.counts, settings.sample), Negatives(reading.counts)
    slope, rate = GRADIENTS[settings.kind], settings.pace * min(1.0, MOST / pull(settings))
    for epoch in range(settings.passes):
        for done, look in looks(reading, keep, negatives, settings, random):
            share = (epoch + done) / settings.passes
            step(inputs, outputs, look, slope, settings.negative, max(min(rate, LOWEST), rate * (1 - share)))
            progress(share)
    return inputs.numpy()


def pull(settings: Settings) -> float:
    """How far an occurrence of a word is moved, in whole gradients: rate x pairs of a window x words of a pair."""
    return settings.pace * (settings.window + 1) * (settings.negative + 1)


def looks(
    reading: Reading, keep: np.ndarray, negatives: Negatives, settings: Settings, random: np.random.Generator
) -> Iterator[tuple[float, Look]]:
    """The steps of an epoch, each with the share of the epoch that lies before it."""
    window, block = settings.window, max(BLOCK, 2 * settings.window)
    tokens, texts = thinned(reading, keep, random)
    if not len(tokens):
        raise SaccadeError(f"sample = {settings.sample} leaves no word of the text: raise it")
    common = np.bincount(tokens).max() / len(tokens)
    blocks = max(1, int(min(STEP, SUM / (common * min(pull(settings), MOST)))) // block)
    size = blocks * block
    steps = -(-len(tokens) // size)
    words = torch.from_numpy(np.pad(tokens, (window, steps * size - len(tokens) + window)))
    left, right = (_laid(each, (steps, blocks, block, 1)) for each in windows(texts, window, random))
    for number in range(steps):
        if number % AHEAD == 0:
            drawn = torch.from_numpy(negatives.draw((AHEAD, blocks, block), random))
        mask = banded(left[number], right[number], window)
        yield number / steps, Look(words[number * size :][: size + 2 * window], mask, drawn[number % AHEAD])


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
    look: Look,
    slope: Callable[[Tensor, Tensor, Tensor, Tensor, float], Gradient],
    negative: int,
    rate: float,
) -> None:
    """Moves the vectors along the gradient of what a step sees."""
    blocks, block, reach = look.mask.shape
    width, window = inputs.shape[1], (reach - block) // 2
    middle, drawn = look.words[window : len(look.words) - window], look.negatives.flatten()
    seen = inputs.index_select(0, look.words)
    told = outputs.index_select(0, middle).view(blocks, block, width)
    other = outputs.index_select(0, drawn).view(blocks, -1, width)
    overlapping = seen.as_strided((blocks, reach, width), (block * width, width, 1))
    found = slope(look.mask, overlapping, told, other, negative / other.shape[1])
    inputs.index_add_(0, look.words, _folded(found.inputs, block), alpha=rate)
    outputs.index_add_(0, middle, found.outputs.view(-1, width), alpha=rate)
    outputs.index_add_(0, drawn, found.negatives.view(-1, width), alpha=rate)


def skipgram(mask: Tensor, inputs: Tensor, outputs: Tensor, negatives: Tensor, weight: float) -> Gradient:
    """Of the sum over pairs (t, s): log sigma(o_t . i_s) + weight * sum over k of log sigma(-n_k . i_s)."""
    right = torch.zeros_like(mask)
    scores = torch.bmm(outputs, inputs.mT)  # (B,T,S), of which a band alone is asked for
    _band(right).copy_(torch.sigmoid(-_band(scores)).mul_(_band(mask)))
    pairs = mask.sum(1).mul_(weight)  # (B,S)
    wrong = torch.bmm(inputs, negatives.mT).sigmoid_().mul_(-pairs[:, :, None])  # (B,S,K)
    towards = torch.bmm(right.mT, outputs).baddbmm_(wrong, negatives)
    return Gradient(towards, torch.bmm(right, inputs), torch.bmm(wrong.mT, inputs))


def cbow(mask: Tensor, inputs: Tensor, outputs: Tensor, negatives: Tensor, weight: float) -> Gradient:
    """Of the sum over words t: log sigma(o_t . m_t) + weight * sum over k of log sigma(-n_k . m_t), m_t a mean.

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
    """The diagonals (B,T,2 window + 1) of a matrix (B,T,S) on which windows lie, in its own memory."""
    blocks, block, reach = matrix.shape
    return matrix.as_strided((blocks, block, reach - block + 1), (block * reach, reach + 1, 1))


def _folded(blocks: Tensor, block: int) -> Tensor:
    """The sum (B T + 2 window, C) of blocks (B,S,C) that overlap at their ends."""
    count, reach, width = blocks.shape
    whole = blocks.new_zeros(count + 1, block, width)
    whole[:-1] = blocks[:, :block]
    whole[1:, : reach - block] += blocks[:, block:]
    return whole.view(-1, width)[: count * block + reach - block]


def _laid(values: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """Small numbers, filled up with zeros, in a shape."""
    whole = np.zeros(shape, dtype=np.int8)
    whole.reshape(-1)[: len(values)] = values
    return torch.from_numpy(whole)


GRADIENTS = {"skipgram": skipgram, "cbow": cbow}
