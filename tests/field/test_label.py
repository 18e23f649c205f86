"""Labels to numbers and back."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.error import SaccadeError
from saccade.field.label import Label, LabelConfig


def of(names):
    return Label.from_bytes(Label.made(LabelConfig(), names))


def test_labels():
    field = of(["no", "yes", "no", "Ärger", "maybe"])
    assert field.names == ["maybe", "no", "yes", "Ärger"]
    assert field.encode(["yes", "maybe"]) == {"number": [2, 0]}
    assert [each.text for each in field.results(torch.eye(4))] == field.names
    assert Label.from_bytes(field.to_bytes()).names == field.names
    assert field.head == "label(4)"
    with pytest.raises(SaccadeError, match="no label 'yess'; did you mean 'yes'"):
        field.encode(["yess"])
    with pytest.raises(SaccadeError, match="nothing to learn"):
        of(["one", "one"])
    with pytest.raises(SaccadeError, match="no row with an input and a label"):
        of([])
    assert Label.from_bytes(b'["b", "a"]').names == ["b", "a"], "the order of a model from elsewhere"
    with pytest.raises(SaccadeError, match="two classes have the same name"):
        Label(["b", "a", "b"])
    for content in (b"{", b"{}", b"[1, 2]"):
        with pytest.raises(SaccadeError, match="no labels"):
            Label.from_bytes(content)


def test_a_score_is_a_log_probability():
    (found,) = of(["a", "b", "c"]).results(torch.tensor([[0.0, math.log(3), 0.0]]))
    assert (found.value, found.text, found.note) == ("b", "b", None)
    assert found.score == pytest.approx(math.log(3 / 5))


def test_blanks_around_a_name_do_not_count():
    field = of([" no", "yes "])
    assert field.names == ["no", "yes"]
    assert field.encode(["yes", " yes"]) == {"number": [1, 1]}
    results = field.results(torch.eye(2))
    assert field.quick(results, [" no", "no"]) == {"accuracy": 0.5}
