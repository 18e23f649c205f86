"""A training that does not fit into memory is refused before anything is allocated, and nothing is left behind."""

from __future__ import annotations

import pytest
from tiny import classify, translate, write

import saccade
from saccade import SaccadeError
from saccade.learn import footprint


@pytest.mark.parametrize("task", [translate, classify, write])
@pytest.mark.parametrize(
    ("model", "why"),
    [
        (
            {"width": 100_000},
            r"parameters and takes .* GB \(16 bytes a parameter: weights, gradients and adamw\), and ",
        ),
        ({"hidden": 10**12}, "parameters and takes"),
    ],
)
def test_a_model_that_does_not_fit(task, model, why, tmp_path):
    with pytest.raises(SaccadeError, match=why):
        saccade.train(task(tmp_path, model=model), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("train", "bytes_each", "held"),
    [
        ({"optimiser": "sgd"}, 12, "weights, gradients and sgd"),
        ({"average": "ema(0.9)"}, 20, "weights, gradients, adamw and a mean of the weights"),
        ({"precision": "float64"}, 32, "weights, gradients and adamw"),
    ],
)
def test_what_training_keeps_is_told(train, bytes_each, held, tmp_path):
    made = translate(tmp_path, model={"width": 100_000}, train=train)
    with pytest.raises(SaccadeError, match=rf"\({bytes_each} bytes a parameter: {held}\)"):
        saccade.train(made, run=tmp_path / "run")


def test_a_batch_that_does_not_fit(tmp_path, monkeypatch):
    made = write(tmp_path, model={"memory": 0}, train={"batch": 10**12})
    with pytest.raises(SaccadeError, match=r"a batch of 1,000,000,000,000 tokens takes .* lower train\.batch"):
        saccade.train(made, run=tmp_path / "run")
    # Of records a batch holds no more than there are.
    assert saccade.train(translate(tmp_path, train={"batch": 10**12, "steps": 1}), run=tmp_path / "all").step == 1
    monkeypatch.setattr(footprint, "available", lambda device: 60_000)
    with pytest.raises(SaccadeError, match=r"a batch of \d+ tokens takes 0.0 GB beside the 0.0 GB of the model"):
        saccade.train(translate(tmp_path, train={"batch": 10**12}), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
