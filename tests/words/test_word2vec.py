"""word2vec: what a step sees, its gradients beside autograd's, and what comes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from saccade import words
from saccade.error import SaccadeError
from saccade.words import word2vec
from saccade.words.neighbours import Negatives, chances, thinned, windows
from saccade.words.setting import Settings
from saccade.words.word_corpus import WordCorpus, read

B, T, WINDOW, K, C = 3, 7, 2, 5, 11
S = T + 2 * WINDOW


def blocks(seed: int = 0) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    left, right = (torch.randint(0, WINDOW + 1, (B, T, 1), generator=draw, dtype=torch.int8) for _ in range(2))
    left[1, 3] = right[1, 3] = 0  # a word that is alone
    tables = [torch.randn(B, n, C, generator=draw).double().requires_grad_() for n in (S, T, K)]
    return word2vec.banded(left, right, WINDOW).double(), *tables


def test_the_mask_is_the_window_without_the_word():
    left, right = torch.tensor([[[2], [0], [1]]]), torch.tensor([[[1], [2], [0]]])
    assert word2vec.banded(left, right, 2)[0].tolist() == [
        [1, 1, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0],
        [0, 0, 0, 1, 0, 0, 0],
    ]


def test_gradients_of_skipgram_are_autograds():
    mask, inputs, outputs, negatives = blocks()
    found = word2vec.skipgram(mask, *(each.detach() for each in (inputs, outputs, negatives)), 0.3)
    log = torch.nn.functional.logsigmoid
    against = log(-inputs @ negatives.mT).sum(2)[:, None]  # (B,1,S)
    (mask * (log(outputs @ inputs.mT) + 0.3 * against)).sum().backward()
    for ours, table in zip(found, (inputs, outputs, negatives), strict=True):
        torch.testing.assert_close(ours, table.grad)


def test_gradients_of_cbow_are_autograds_with_the_means_whole():
    mask, inputs, outputs, negatives = blocks()
    found = word2vec.cbow(mask, *(each.detach() for each in (inputs, outputs, negatives)), 0.3)
    count = mask.sum(2, keepdim=True)
    means = (mask @ inputs / count.clamp(min=1)).detach().requires_grad_()
    log = torch.nn.functional.logsigmoid
    each = log((means * outputs).sum(2)) + 0.3 * log(-means @ negatives.mT).sum(2)
    (each * (count[:, :, 0] > 0)).sum().backward()
    torch.testing.assert_close(found.outputs, outputs.grad)
    torch.testing.assert_close(found.negatives, negatives.grad)
    torch.testing.assert_close(found.inputs, mask.mT @ means.grad)


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_a_step_adds_up_what_overlapping_blocks_say(kind):
    """One step on two blocks moves the vectors as a loop over its pairs does."""
    tokens = np.random.default_rng(0).permutation(np.arange(35) % 17)
    names, counts = [*"abcdefghijklmnopq"], np.bincount(tokens)
    corpus = WordCorpus(names, counts, tokens, np.repeat([0, 1, 3], [20, 1, 14]), 35)
    settings = Settings(kind=kind, window=3, width=C)
    ((_, sample),) = word2vec.steps_of(corpus, np.ones(17), Negatives(counts), settings, np.random.default_rng(1))
    inputs, outputs = (torch.randn(17, C, generator=torch.Generator().manual_seed(n)).double() for n in range(2))
    want_in, want_out = inputs.clone(), outputs.clone()
    blocks, block, _ = sample.mask.shape
    assert blocks > 2
    assert sample.mask[2].any(), "the text fills several blocks"
    for b in range(blocks):
        rows = sample.words[b * block :][: block + 6]
        middle = rows[3 : 3 + block]
        part = [inputs[rows], outputs[middle], outputs[sample.negatives[b]]]
        found = word2vec.GRADIENTS[kind](sample.mask[b : b + 1].double(), *(each[None] for each in part), 5 / block)
        want_in.index_add_(0, rows, found.inputs[0], alpha=0.1)
        want_out.index_add_(0, middle, found.outputs[0], alpha=0.1)
        want_out.index_add_(0, sample.negatives[b], found.negatives[0], alpha=0.1)
    word2vec.step(inputs, outputs, sample._replace(mask=sample.mask.double()), word2vec.GRADIENTS[kind], 5, 0.1)
    torch.testing.assert_close(inputs, want_in)
    torch.testing.assert_close(outputs, want_out)


def test_windows_never_reach_into_another_text():
    texts = np.array([0, 0, 0, 2, 3, 3, 3, 3, 3])
    for seed in range(20):
        left, right = windows(texts, 3, np.random.default_rng(seed))
        for here in range(len(texts)):
            seen = texts[here - left[here] : here + right[here] + 1]
            assert set(seen) == {texts[here]}
            assert max(left[here], right[here]) <= 3
    left, right = windows(np.zeros(30_011), 3, np.random.default_rng(0))
    assert np.bincount(left[3:-3], minlength=4)[1:] / 30_005 == pytest.approx(1 / 3, abs=0.02)


def test_the_pairs_of_a_step_are_those_of_the_text():
    """Every pair that a step's mask shows stands in one text, at most a window apart; widest windows show all."""
    corpus = read([["a", "b", "c"], ["d"], ["e", "a"]] * 40, least=1)
    settings = Settings(window=5, width=C)
    shown = set()
    seen = word2vec.steps_of(corpus, np.ones(5), Negatives(corpus.counts), settings, np.random.default_rng(0))
    for _, sample in seen:
        overlapping = sample.words.unfold(0, sample.mask.shape[2], sample.mask.shape[1])
        for b, t, s in sample.mask.nonzero().tolist():
            shown.add("".join(sorted(corpus.names[int(overlapping[b, each])] for each in (t + 5, s))))
    assert shown == {"ab", "bc", "ac", "ae"}


def test_negatives_are_drawn_by_frequency_to_three_quarters():
    counts = np.array([1000, 301, 101, 31, 7])
    draws = 100_003
    drawn = np.bincount(Negatives(counts).draw((draws,), np.random.default_rng(0)), minlength=5)
    expected = draws * counts**0.75 / (counts**0.75).sum()
    assert ((drawn - expected) ** 2 / expected).sum() < 18.47  # chi-square of 4 degrees, one in a thousand


def test_common_words_are_thinned_out():
    counts = np.array([60_000, 30_000, 9_000, 1_000])
    keep = chances(counts, 1e-2)
    ratio = 1e-2 / (counts / counts.sum())
    assert keep == pytest.approx(np.minimum(1, np.sqrt(ratio) + ratio))
    assert keep[3] == 1.0
    corpus = WordCorpus(
        list("abcd"), counts, np.repeat(np.arange(4), counts), np.zeros(counts.sum()), int(counts.sum())
    )
    tokens, texts = thinned(corpus, keep, np.random.default_rng(0))
    assert np.bincount(tokens) / counts == pytest.approx(keep, abs=0.02)
    assert len(tokens) == len(texts)
    assert chances(counts, 0).tolist() == [1, 1, 1, 1]


def world(seed: int = 0) -> list[list[str]]:
    """Countries and capitals: each country has words of its own, and so has each role."""
    draw = np.random.default_rng(seed)
    texts = []
    for _ in range(3000):
        land, role = draw.integers(7), draw.integers(2)
        own = [f"l{land}{each}" for each in draw.integers(5, size=3)] + [
            f"r{role}{each}" for each in draw.integers(5, size=3)
        ]
        texts.append([*draw.permutation(own).tolist(), ("land", "town")[role] + str(land)])
    return texts


SLOWER = [("cbow", 10), ("glove", 15)]


@pytest.mark.parametrize(
    ("kind", "epochs"), [("skipgram", 5), *(pytest.param(*each, marks=pytest.mark.proof) for each in SLOWER)]
)
def test_analogies_of_a_made_up_world(kind, epochs):
    settings = {"kind": kind, "width": 17, "window": 7, "epochs": epochs, "rate": 0.05}
    settings |= {} if kind == "glove" else {"sample": 0.0}
    made = words.train(world(), **settings)
    asked = [(f"land{a}", f"town{a}", f"land{b}", f"town{b}") for a in range(7) for b in range(7) if a != b]
    right, known = made.solve(asked)
    assert known == 42
    assert right >= 38
    assert made.analogy("land1", "town1", "land2")[0][0] == "town2"
    again = words.train(world(), **settings)
    assert (made.matrix == again.matrix).all(), "a seed gives the same vectors again"
    assert (made.matrix != words.train(world(), **settings | {"epochs": 1}, seed=1).matrix).any()


def test_progress_never_falls_and_ends():
    told: list[float] = []
    words.train([["a", "b", "c"] * 500], progress=told.append, epochs=2, width=5)
    assert told == sorted(told)
    assert told[0] == 0.0
    assert told[-1] == 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "skipgrams"}, "kind"),
        ({"width": 0}, "width"),
        ({"widht": 7}, "did you mean 'width'"),
        ({"window": 0}, "window"),
        ({"rate": -0.1}, "rate"),
    ],
)
def test_bad_settings_are_told(settings, message):
    with pytest.raises(SaccadeError, match=message):
        words.train([["a", "b"] * 20], **settings)


def test_texts_without_neighbours_are_refused():
    with pytest.raises(SaccadeError, match="no context to learn from"):
        words.train([["a"], ["b"]] * 20)


@pytest.mark.parametrize("settings", [{"rate": 3.0}, {"negative": 29}, {"window": 31}, {"sample": 0.0}])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_no_setting_leads_astray(kind, settings):
    """Steps on old vectors feed on themselves where a word gets too much at once; the pull is held."""
    made = words.train([[word for text in world() for word in text]], kind=kind, width=7, epochs=1, **settings)
    assert np.abs(made.matrix).max() < 30


def test_vectors_that_grow_without_bound_are_told():
    with pytest.raises(SaccadeError, match="went astray"):
        words.train([["a", "b", "c"] * 130], kind="skipgram", width=8, window=1, sample=0, epochs=50, least=1)


def test_a_sample_that_leaves_nothing_is_told():
    with pytest.raises(SaccadeError, match="sample = 1e-30 leaves no word of the text: raise it"):
        words.train(["a b c d e f g"] * 5, least=1, width=3, sample=1e-30)


def test_one_word_is_told_from_no_other():
    with pytest.raises(SaccadeError, match="only 1 word occurs 2 times or more"):
        words.train(["a a a b"], least=2)


@pytest.mark.parametrize("kind", ["skipgram", "cbow", "glove"])
def test_the_type_that_others_set_by_default_does_not_matter(kind):
    texts, options = ["a b c d e f g"] * 7, {"kind": kind, "least": 1, "width": 3, "epochs": 2}
    expected = words.train(texts, **options).matrix
    torch.set_default_dtype(torch.float64)
    try:
        found = words.train(texts, **options).matrix
    finally:
        torch.set_default_dtype(torch.float32)
    assert found.tobytes() == expected.tobytes()
