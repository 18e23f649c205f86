"""GloVe: vectors whose products are the logarithms of how often words occur together (Pennington et al. 2014).

    J = sum over i, j of f(x_ij) (w_i . c_j + b_i + d_j - log x_ij)^2 / 2,    f(x) = min(1, (x / enough)^0.75)

Pairs are learned from in blocks with AdaGrad (Duchi et al. 2011). It differs from the paper's program in that a block's
squared gradients are added before it moves, not after, so that a word that fills a block cannot leap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.words.setting import Settings
from saccade.words.word2vec import Progress
from saccade.words.word_corpus import WordCorpus

BLOCK = 4096  # pairs
POWER = 0.75


class Pairs(NamedTuple):
    """Which words occur together, and how often: a pair d words apart counts 1/d, in both directions."""

    first: np.ndarray
    second: np.ndarray
    counts: np.ndarray


def learn(corpus: WordCorpus, settings: Settings, progress: Progress) -> np.ndarray:
    """The vectors (V,C) of a corpus's words, w + c; the same for the same seed."""
    pairs = together(corpus, settings.window)
    random = np.random.default_rng(settings.seed)
    tables = [_first_vectors(len(corpus.names), settings.width, random) for _ in range(2)]
    squares = [torch.ones_like(each) for each in tables]
    blocks = -(-len(pairs.counts) // BLOCK)
    for epoch in range(settings.passes):
        permutation = random.permutation(len(pairs.counts))
        for number in range(blocks):
            block = Pairs(*(each[permutation[number * BLOCK :][:BLOCK]] for each in pairs))
            step(tables, squares, block, settings.enough, settings.pace)
            progress((epoch + number / blocks) / settings.passes)
    return (tables[0] + tables[1])[:, :-1].numpy()


def together(corpus: WordCorpus, window: int) -> Pairs:
    """Counts the pairs of all windows: distance by distance, by sorting."""
    size = len(corpus.names)
    keys, counts = [], []
    for distance in range(1, window + 1):
        near = corpus.texts[distance:] == corpus.texts[:-distance]
        one, other = corpus.tokens[:-distance][near], corpus.tokens[distance:][near]
        both = np.concatenate([one * size + other, other * size + one])
        key, count = np.unique(both, return_counts=True)
        keys.append(key)
        counts.append(count / distance)
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    return Pairs(key // size, key % size, np.bincount(place, np.concatenate(counts)))


def step(tables: list[Tensor], squares: list[Tensor], pairs: Pairs, enough: float, rate: float) -> float:
    """Moves both tables (V, C+1), whose last column is the bias, by a block of pairs; gives J of it before that."""
    sides = [torch.from_numpy(each) for each in (pairs.first, pairs.second)]
    rows = [table.index_select(0, side) for table, side in zip(tables, sides, strict=True)]
    loss, gradients = slope(rows, torch.from_numpy(pairs.counts).float(), enough)
    for table, square, side, gradient in zip(tables, squares, sides, gradients, strict=True):
        square.index_add_(0, side, gradient.square())
        table.index_add_(0, side, gradient / square.index_select(0, side).sqrt_(), alpha=-rate)
    return loss


def slope(rows: list[Tensor], counts: Tensor, enough: float) -> tuple[float, list[Tensor]]:
    """J of pairs of rows (N, C+1), and its gradients."""
    one, other = rows
    miss = (one[:, :-1] * other[:, :-1]).sum(1) + one[:, -1] + other[:, -1] - counts.log()
    pull = (counts / enough).clamp_(max=1).pow_(POWER) * miss
    gradients = [torch.cat([each[:, :-1], each.new_ones(len(each), 1)], 1) * pull[:, None] for each in (other, one)]
    return float((pull * miss).sum() / 2), gradients


def _first_vectors(size: int, width: int, random: np.random.Generator) -> Tensor:
    """Small random vectors, each with its bias behind it: (V, C+1)."""
    return torch.from_numpy((random.random((size, width + 1), dtype=np.float32) - 0.5) / (width + 1))
