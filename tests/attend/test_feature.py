"""Features estimate the exponential they say they do, and the better the more of them there are."""

from __future__ import annotations

import copy
import math

import pytest
import torch

import saccade
from saccade.attend.feature import KINDS, _drawn, directions, feature, redraw

SEEDS = 200


def points(n: int = 7, width: int = 6, length: float = 1.0, seed: int = 0) -> torch.Tensor:
    x = torch.randn(1, 1, n, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=-1, keepdim=True) * length


def estimates(kind: str, n: int, q: torch.Tensor, k: torch.Tensor, seeds: int = SEEDS, **options) -> torch.Tensor:
    return torch.stack([feature(kind, n, seed, scale=1.0, **options)(q, k)[0, 0] for seed in range(seeds)])


@pytest.mark.parametrize(("kind", "unit"), [("fourier", False), ("fourier", True), ("favor", False), ("favor", True)])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_random_features_estimate_the_exponential_without_bias(kind, unit, orthogonal):
    q, k = points(seed=1), points(seed=2)
    found = estimates(kind, 24, q, k, unit=unit, orthogonal=orthogonal)
    error = (found.mean(0) - (q @ k.mT)[0, 0].exp()).abs()
    assert (error < 4.5 * found.std(0) / math.sqrt(SEEDS)).all()


@pytest.mark.parametrize("kind", ["fourier", "favor"])
def test_the_error_falls_with_the_root_of_the_features(kind):
    q, k = points(seed=1), points(seed=2)
    sizes = [16, 64, 256, 1024]
    exact = (q @ k.mT)[0, 0].exp()
    errors = [
        float((estimates(kind, n, q, k, 60, unit=False, orthogonal=False) - exact).square().mean().sqrt())
        for n in sizes
    ]
    x, y = (torch.tensor(values).log() for values in (sizes, errors))
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())
    assert -0.6 < slope < -0.4


def test_positive_features_win_where_weights_are_small_and_waves_where_they_are_large():
    """Choromanski et al. 2021: the variance of favor goes to zero with the weight, that of fourier does not."""
    x = points(1, length=1.5)
    for y, better, worse in ((-x, "favor", "fourier"), (x, "fourier", "favor")):
        exact = math.exp(float((x @ y.mT).squeeze()))
        found = {
            kind: float((estimates(kind, 64, x, y, unit=False, orthogonal=False) - exact).square().mean())
            for kind in (better, worse)
        }
        assert found[better] * 4 < found[worse]


def test_orthogonal_directions_estimate_better():
    q, k = points(seed=1), points(seed=2)
    exact = (q @ k.mT)[0, 0].exp()
    loose, tight = (
        float((estimates("favor", 6, q, k, 600, orthogonal=each) - exact).square().mean()) for each in (False, True)
    )
    assert tight < loose


def test_directions_are_orthogonal_in_blocks_and_as_long_as_drawn():
    w = directions(11, 5, seed=3, orthogonal=True)
    assert w.shape == (11, 5)
    for block in w.split(5):
        gram = block @ block.T
        torch.testing.assert_close(gram, torch.diag(gram.diagonal()), atol=1e-12, rtol=0)
    torch.testing.assert_close(w.norm(dim=1), directions(11, 5, seed=3).norm(dim=1))
    assert torch.equal(w, directions(11, 5, seed=3, orthogonal=True))
    assert not torch.equal(w, directions(11, 5, seed=3, draw=1, orthogonal=True))
    assert not torch.equal(w, directions(11, 5, seed=4, orthogonal=True))


@pytest.mark.parametrize("kind", ["feature(fourier, 10, seed=0)", "feature(favor, 10, seed=0)", "feature(elu)"])
def test_rows_that_are_free_differ_by_a_factor_alone(kind):
    score = saccade.Attention(12, 2, score=kind).double().score
    q = points(9, 6, length=3.0)
    ratio = score.queries(q, free=True) / score.queries(q)
    torch.testing.assert_close(ratio, ratio[..., :1].expand_as(ratio))


def test_large_vectors_do_not_overflow():
    q, k, v = (torch.randn(1, 2, 300, 64) * 4 for _ in range(3))
    for score in ("feature(favor, 256, seed=0)", "feature(fourier, 256, seed=0)", "feature(elu)"):
        found = saccade.attention(q, k, v, score=score, normaliser="sum", mask="causal", kernel="linear")
        assert found.isfinite().all()


def test_fourier_stands_on_the_sphere():
    q, k = points(length=5.0, seed=1), points(length=0.2, seed=2)
    score = feature("fourier", 20, 0)
    torch.testing.assert_close(score(q, k), score(q / 5, k * 5))


def test_redrawing_follows_the_step_and_the_seed():
    layer = saccade.Attention(12, 2, score="feature(favor, 10, seed=0, redraw=100)", normaliser="sum").double()
    q, k = points(seed=1), points(seed=2)
    first = layer.score(q, k)
    redraw(layer, 99)
    assert torch.equal(layer.score(q, k), first)
    redraw(layer, 100)
    second = layer.score(q, k)
    assert not torch.equal(second, first)
    assert torch.equal(copy.deepcopy(layer).score(q, k), second)
    redraw(layer, 7)
    assert torch.equal(layer.score(q, k), first)


def test_a_redraw_is_noticed_by_who_watched():
    layer = saccade.Attention(12, 2, score="feature(favor, 10, seed=0, redraw=100)", normaliser="sum").double()
    with saccade.watch(layer) as seen:
        layer(torch.randn(1, 5, 12, dtype=torch.float64))
    redraw(layer, 100)
    with pytest.raises(saccade.SaccadeError, match="have changed since"):
        seen.weights("attention")


def test_models_on_meta_draw_the_same():
    config = {"vocab": 9, "width": 12, "heads": 2, "decoder": 1, "score": "feature(favor, 10, seed=0)"}
    q, k = points(seed=1), points(seed=2)
    scores = [
        saccade.build(saccade.ModelConfig(**config, normaliser="sum"), device=device).decoder.blocks[0].attention.score
        for device in ("meta", "cpu")
    ]
    assert not list(scores[0].parameters())
    assert torch.equal(scores[0](q, k), scores[1](q, k))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("feature(gauss, 8, seed=0)", "no kind is called 'gauss'"),
        ("feature(favor, 8)", "needs a seed"),
        ("feature(favor, 0, seed=0)", "whole number of features from 1"),
        ("feature(favor)", "whole number of features from 1"),
        ("feature(fourier, 7, seed=0)", "7 is odd"),
        ("feature(elu, 8)", "draws nothing"),
        ("feature(favor, 8, seed=0, scale=-1)", "scale is a number above 0"),
        ("feature(favor, 8, seed=0, redraw=-1)", "redraw is a whole number"),
        ("feature(favor, 8, sed=0)", "it is written feature"),
    ],
)
def test_what_is_wrong_is_told(text, told):
    with pytest.raises(saccade.SaccadeError, match=told):
        saccade.attention(*(torch.randn(1, 1, 3, 4) for _ in range(3)), score=text, normaliser="sum")


@pytest.mark.parametrize(("kind", "kernel"), [(kind, kernel) for kind in KINDS for kernel in ("plain", "linear")])
def test_who_decodes_first_trains_afterwards(kind, kernel):
    """The directions are drawn once and kept; drawn in inference mode first, they must still serve training."""
    drawn = "" if kind == "elu" else ", 10, seed=20261116"
    layer = saccade.Attention(12, 2, score=f"feature({kind}{drawn})", normaliser="sum", mask="causal", kernel=kernel)
    x = torch.randn(1, 5, 12)
    _drawn.clear()
    with torch.inference_mode():
        layer(x)
    layer(x).sum().backward()
    assert all(each.grad is not None for each in layer.parameters())
