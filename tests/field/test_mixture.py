"""Mixtures of Gaussians: likelihoods against torch.distributions, and what stands beside the metric."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import distributions

import saccade
from saccade.config import ModelConfig
from saccade.data import mixtures
from saccade.field.gaussians import Gaussians, Sample, as_json, fitted, gaussians_of
from saccade.field.mixture import Mixture, MixtureConfig
from saccade.field.result import Result
from saccade.model.hidden import States

RAWS = [mixtures.example(number)[1] for number in range(5)]


def field(raws=RAWS, **keys):
    config = MixtureConfig(**keys)
    return Mixture.load(config, {Mixture.stored("y"): Mixture.made(config, iter(raws))}, "y")


def peer(told):
    weights, means, spreads = (torch.as_tensor(each, dtype=torch.float64) for each in told)
    parts = distributions.Independent(distributions.Normal(means, spreads), 1)
    return distributions.MixtureSameFamily(distributions.Categorical(weights), parts)


def test_likelihood_is_that_of_torch():
    for points, told in RAWS:
        wanted = peer(told).log_prob(torch.from_numpy(points).double()).mean()
        assert told.loglikelihood(points) == pytest.approx(float(wanted), rel=1e-12)


def test_a_share_of_nothing_and_points_far_away():
    told = Gaussians(np.array([1.0, 0.0]), np.array([[0.0], [5.0]]), np.array([[1.0], [1.0]]))
    assert told.loglikelihood(np.array([[0.0]])) == pytest.approx(-math.log(2 * math.pi) / 2)
    assert told.loglikelihood(np.array([[1e3]])) == pytest.approx(-5e5, rel=1e-3)


def test_loss_is_minus_the_likelihood_in_the_points_own_units():
    """Of sets of several sizes together, and as the sum of what each has alone."""
    made = field()
    model = saccade.Model(
        made_config := ModelConfig(
            width=12,
            heads=2,
            encoder=1,
            embed="points(2, 2)",
            pool="seeds(4)",
            head=made.head,
            mixer="induced(3)",
        )
    ).double()
    assert made_config.seeds == 4
    y = made.collate(made.encode(RAWS))
    states = States(torch.randn(5, 9, 12, dtype=torch.float64))
    results = made.results(model.say(states).detach())
    wanted = [
        -peer(gaussians_of(each.value, 2)).log_prob(torch.from_numpy(raw.points).double()).mean()
        for each, raw in zip(results, RAWS, strict=True)
    ]
    losses = made.losses(model, states, y)
    assert torch.allclose(losses[:, 0], torch.stack(wanted), rtol=1e-4)
    term = made.loss(model, states, y, learning=True)["surprise"]
    assert float(term.sum.detach()) == pytest.approx(float(losses[:, 0].detach().sum()))
    assert made.counts(y) == {"surprise": 5}
    term.sum.backward()
    assert all(torch.isfinite(each.grad).all() for each in model.head.parameters())


def test_padding_adds_nothing():
    made = field()
    model = saccade.Model(
        ModelConfig(width=12, heads=2, encoder=1, embed="points(2)", pool="mean", head=made.head)
    ).double()
    together = States(torch.randn(5, 9, 12, dtype=torch.float64))
    losses = made.losses(model, together, made.collate(made.encode(RAWS)))
    for row, raw in enumerate(RAWS):
        alone = made.losses(model, States(together.encoder[row : row + 1]), made.collate(made.encode([raw])))
        assert torch.allclose(alone[0], losses[row], atol=1e-10)


def test_what_stands_beside_the_metric():
    """The true mixtures' figure, and one Gaussian fitted to each set; a result that is the truth has its score."""
    made = field()
    true = float(np.mean([told.loglikelihood(points) for points, told in RAWS]))
    assert made.beside([], RAWS)["true"]["loglikelihood"] == pytest.approx(true)
    assert made.beside([], [*RAWS[:4], RAWS[4].points]) == {}
    results = [Result(each.drawn_from.as_table(), "", 0.0) for each in RAWS]
    assert made.tallies(results, RAWS)["loglikelihood"].value == pytest.approx(true)
    baseline = made.baseline([(None, each) for each in RAWS], lambda: None, None)
    assert baseline["loglikelihood"] < true - 0.5
    one = fitted(RAWS[0].points)
    better = [one._replace(means=one.means + 0.1), one._replace(spreads=one.spreads * 1.1)]
    assert all(each.loglikelihood(RAWS[0].points) < one.loglikelihood(RAWS[0].points) for each in better)
    unanswered = made.tallies([Result(None, "", 0.0, "empty")], RAWS[:1])["loglikelihood"].value
    assert np.isfinite(unanswered)


def test_samples_are_drawn_from_what_they_say():
    points, sample = mixtures.example(7)
    assert np.array_equal(points, sample.points)
    assert np.array_equal(points, mixtures.example(7)[0])
    assert 100 <= len(points) <= 300
    away = np.linalg.norm(points[:, None] - sample.drawn_from.means, axis=2).min(1)
    assert away.max() < 6 * mixtures.SPREAD
    assert sample.drawn_from.weights.sum() == pytest.approx(1)


def test_a_cell_may_know_the_truth(tmp_path):
    found = Mixture.cell(as_json(RAWS[0]), tmp_path)
    assert np.array_equal(found.points, RAWS[0].points)
    assert np.allclose(found.drawn_from.means, RAWS[0].drawn_from.means)
    alone = Mixture.cell(json.dumps(RAWS[0].points.tolist()), tmp_path)
    assert alone.drawn_from is None
    assert Mixture.identity(found) == Mixture.identity(Sample(RAWS[0].points[::-1]))


@pytest.mark.parametrize(
    "table",
    [
        {"weights": [1.0], "means": [[0.0, 0.0]]},
        {"weights": [1.0], "means": [[0.0, 0.0]], "spreads": [[1.0]]},
        {"weights": [1.0], "means": [[0.0, 0.0]], "spreads": [[1.0, 0.0]]},
        {"weights": [-1.0], "means": [[0.0, 0.0]], "spreads": [[1.0, 1.0]]},
    ],
)
def test_what_is_no_mixture(table):
    with pytest.raises(saccade.SaccadeError, match="a mixture"):
        gaussians_of(table, 2)
