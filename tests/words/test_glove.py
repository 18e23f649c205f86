"""GloVe: its counts beside a loop's, its gradients beside autograd's, and a loss that falls."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

from saccade.words.glove import Pairs, _first_vectors, slope, step, together
from saccade.words.word_corpus import read

TEXTS = ["a b c a b", "c", "b b a d", "d c b a a"]


def test_counts_are_those_of_a_loop():
    corpus = read(TEXTS, least=1)
    expected: Counter[tuple[str, str]] = Counter()
    for text in TEXTS:
        row = text.split()
        for i, one in enumerate(row):
            for j, other in enumerate(row):
                if 0 < abs(i - j) <= 3:
                    expected[one, other] += 1 / abs(i - j)
    pairs = together(corpus, 3)
    found = {
        (corpus.names[i], corpus.names[j]): x for i, j, x in zip(pairs.first, pairs.second, pairs.counts, strict=True)
    }
    assert found == pytest.approx(dict(expected))


def test_gradients_are_autograds():
    draw = torch.Generator().manual_seed(0)
    rows = [torch.randn(13, 6, generator=draw, requires_grad=True) for _ in range(2)]
    counts = torch.rand(13, generator=draw) * 20 + 0.1
    one, other = rows
    weight = (counts / 10).clamp(max=1) ** 0.75
    miss = (one[:, :5] * other[:, :5]).sum(1) + one[:, 5] + other[:, 5] - counts.log()
    expected = (weight * miss**2 / 2).sum()
    expected.backward()
    loss, gradients = slope([each.detach() for each in rows], counts, 10.0)
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    for ours, row in zip(gradients, rows, strict=True):
        torch.testing.assert_close(ours, row.grad)


def test_the_loss_falls_to_almost_nothing():
    pairs = together(read(TEXTS, least=1), 3)
    random = np.random.default_rng(0)
    tables = [_first_vectors(4, 7, random) for _ in range(2)]
    squares = [torch.ones_like(each) for each in tables]
    losses = [step(tables, squares, pairs, 2.0, 0.3) for _ in range(200)]
    assert losses[-1] < 0.01 * losses[0]
    assert sum(later > earlier for earlier, later in pairwise(losses)) == 0


def test_a_step_sums_what_a_word_gets_from_several_pairs():
    tables = [torch.full((3, 3), 0.5) for _ in range(2)]
    squares = [torch.ones(3, 3) for _ in range(2)]
    pairs = Pairs(np.array([0, 0]), np.array([1, 1]), np.array([1.0, 1.0]))
    step(tables, squares, pairs, 1.0, 0.1)
    miss = 0.5 * 0.5 * 2 + 0.5 + 0.5
    moved = 2 * 0.1 * miss / np.sqrt(1 + 2 * miss**2)
    assert tables[0][0, 2].item() == pytest.approx(0.5 - moved)
    assert tables[0][1:].eq(0.5).all()
