"""Labels of places as Y: those that are not known are neither learned nor measured; the commonest as the baseline."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from saccade import Input, SaccadeError
from saccade.field.labels import LABELS, Labels, LabelsConfig
from saccade.field.result import Result

ROWS = [("a", None, "b"), ("b", "b"), (None, "c")]


def field(**keys):
    config = LabelsConfig(**keys)
    return Labels.load(config, {LABELS: Labels.made(config, ROWS)}, "y")


def says(scores):
    return SimpleNamespace(say=lambda states: scores)


def collated(made, rows=ROWS):
    return made.collate(made.encode(rows))


def test_rows_of_several_lengths():
    made = field()
    y = collated(made)
    assert list(made.names) == ["a", "b", "c"]
    assert y.values["numbers"].tolist() == [[0, -1, 1], [1, 1, -1], [-1, 2, -1]]
    assert made.counts(y) == {"labels": 5}


def test_the_loss_is_of_known_places_alone():
    made = field()
    y = collated(made)
    scores = torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    (term,) = made.loss(says(scores), None, y, learning=True).values()
    logs = scores.log_softmax(-1)
    wanted = -(logs[0, 0, 0] + logs[0, 2, 1] + logs[1, 0, 1] + logs[1, 1, 1] + logs[2, 1, 2])
    torch.testing.assert_close(term.sum, wanted)
    (gradient,) = torch.autograd.grad(term.sum, scores)
    assert not gradient[y.values["numbers"] < 0].any()
    each = made.losses(says(scores), None, y)
    torch.testing.assert_close(each[:, 0].sum(), wanted)
    assert each[:, 1].tolist() == [2, 2, 1]


def test_smoothing_is_for_learning_alone():
    made, scores = field(smoothing=0.3), torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(1))
    y = collated(made)
    learned, measured = (float(made.loss(says(scores), None, y, learning=each)["labels"].sum) for each in (True, False))
    assert learned != pytest.approx(measured)
    assert measured == pytest.approx(float(field().loss(says(scores), None, y, learning=True)["labels"].sum))


def test_a_row_of_another_length_is_refused():
    made = field()
    with pytest.raises(SaccadeError, match="there should be a label, or none, for each of 4 places; got 3"):
        made.loss(says(torch.zeros(3, 4, 3)), None, collated(made), learning=True)


def test_the_likeliest_label_of_every_place():
    made = field()
    scores = torch.tensor([[[0.0, 3.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 9.0]]])
    (found,) = made.results(scores, [2])
    assert found.value == ["b", "a"]
    assert found.text == "b a"
    share = math.exp(3) / (2 + math.exp(3))
    assert found.probabilities[0]["b"] == pytest.approx(share)
    assert found.score == pytest.approx(math.log(share) + math.log(math.exp(4) / (2 + math.exp(4))))


def test_many_places_are_told_by_how_often_each_label_is_there():
    made = field()
    scores = torch.zeros(1, 50, 3)
    scores[0, :30, 1] = scores[0, 30:, 2] = 1.0
    assert made.results(scores, [50])[0].text == "b 30, c 20"


def test_every_known_place_counts_as_an_example():
    made = field()
    results = [Result(["a", "a", "a"], "", 0.0), Result(["b", "c"], "", 0.0), Result(None, "", 0.0, "empty")]
    found = made.tallies(results, ROWS)
    assert found["accuracy"].value == pytest.approx(2 / 5)
    assert len(found["accuracy"].counts) == 5
    beside = made.beside(results, ROWS)
    assert beside["places"] == 5
    assert sum(map(sum, beside["confusion"]["counts"])) + sum(beside["confusion"]["unanswered"]) == 5


def test_the_commonest_label_is_the_baseline():
    made = field()
    column = SimpleNamespace(array=lambda name: np.array([0, -1, 1, 1, 1, -1, 2]))
    found = made.baseline([(None, row) for row in ROWS], lambda: column, column)
    assert found["what"] == "always 'b'"
    assert found["accuracy"] == pytest.approx(3 / 5)


def test_a_cell_of_a_table():
    assert Labels.cell("a ? b", None) == ("a", None, "b")
    assert Labels.cells(("a", None, "b"), None) == ["a ? b"]


def test_a_label_that_nobody_knew():
    with pytest.raises(SaccadeError, match="'d'"):
        field().encode([("a", "d")])


def test_nothing_is_known_of_any_place():
    made = field()
    y = collated(made, [(None, None)])
    assert isinstance(y, Input)
    (term,) = made.loss(says(torch.zeros(1, 2, 3)), None, y, learning=True).values()
    assert float(term.sum) == 0.0
