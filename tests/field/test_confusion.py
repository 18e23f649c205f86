"""Confusion, precision, recall, F1 and macro F1 against their definitions, example by example."""

from __future__ import annotations

import random

import numpy as np
import pytest

from saccade.field.confusion import class_intervals, confusion, macro_f1
from saccade.field.label import Label
from saccade.field.result import Result
from saccade.field.tally import intervals

NAMES = ["a", "b", "c", "never"]


def drawn(seed: int, count: int = 61) -> tuple[list[str | None], list[str]]:
    """Answers, some of them missing and some that no class has, and wanted labels."""
    draw = random.Random(seed)
    return draw.choices(["a", "b", "c", "other", None], k=count), draw.choices(["a", "b", "b", "c"], k=count)


def by_definition(said, wanted, label):
    right = sum(s == w == label for s, w in zip(said, wanted, strict=True))
    named, there = said.count(label), wanted.count(label)
    precision, recall = right / named if named else 0.0, right / there if there else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "support": there}


@pytest.mark.parametrize("seed", range(5))
def test_every_class_is_scored_by_its_definition(seed):
    said, wanted = drawn(seed)
    found = confusion(said, wanted, NAMES)
    assert found.labels == [*NAMES, "other"]
    for label, scores in found.classes().items():
        assert scores == pytest.approx(by_definition(said, wanted, label))
    for n, label in enumerate(found.labels):
        for m, other in enumerate(found.labels):
            pairs = sum((s, w) == (other, label) for s, w in zip(said, wanted, strict=True))
            assert found.counts[n, m] == pairs
        assert found.unanswered[n] == sum(s is None and w == label for s, w in zip(said, wanted, strict=True))
    assert found.counts.sum() + found.unanswered.sum() == len(wanted)


@pytest.mark.parametrize("seed", range(5))
def test_macro_f1_is_the_mean_over_the_classes_that_occur(seed):
    said, wanted = drawn(seed)
    classes = {*wanted, *(each for each in said if each is not None)}
    expected = np.mean([by_definition(said, wanted, each)["f1"] for each in classes])
    tally = macro_f1(said, wanted, NAMES)
    assert tally.value == pytest.approx(expected)
    chosen = np.arange(len(said)) < 23  # the score of a part is that of the part alone
    some = [each for each, use in zip(said, chosen, strict=True) if use], wanted[:23]
    assert tally.of(chosen).value == pytest.approx(macro_f1(*some, NAMES).value)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_a_class_is_that_of_examples_drawn_again(seed):
    """Each score computed from scratch on every draw; a draw without anything to divide by is left out."""
    said, wanted = drawn(seed, 17)
    found = class_intervals(said, wanted, NAMES, draws=29, seed=5)
    draw, scores = np.random.default_rng(5), {}
    for _ in range(29):
        times = draw.multinomial(17, np.full(17, 1 / 17))
        again = [[each for each, n in zip(texts, times, strict=True) for _ in range(n)] for texts in (said, wanted)]
        for label in [*NAMES, "other"]:
            named, there = again[0].count(label), again[1].count(label)
            for name, whole in (("precision", named), ("recall", there), ("f1", named + there)):
                scores.setdefault((label, name), []).extend([by_definition(*again, label)[name]] if whole else [])
    expected = {key: np.percentile(each, [2.5, 97.5]).tolist() for key, each in scores.items() if each}
    assert {(label, name) for label, each in found.items() for name in each} == set(expected)
    for (label, name), limits in expected.items():
        assert found[label][name] == pytest.approx(limits), (label, name)
    assert "recall" not in found["other"], "nobody wants it"


def test_one_example_has_no_interval():
    assert class_intervals(["a"], ["a"], NAMES) == {}


def test_a_label_says_all_probabilities_the_likeliest_first():
    import torch

    (found,) = Label(["x", "y", "z"]).results(torch.tensor([[0.1, 2.0, 1.0]]))
    assert list(found.probabilities) == ["y", "z", "x"]
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.probabilities["y"] == pytest.approx(np.exp(found.score))
    assert found.described()["probabilities"] == found.probabilities


def test_a_label_is_judged_by_what_was_said_for_what():
    field = Label(["no", "yes"])
    results = [Result(each or None, each, 0.0, None if each else "empty") for each in ("no", "yes", "", "yes")]
    raws = ["no", " no", "yes", "yes "]
    tallies = field.tallies(results, raws)
    assert tallies["accuracy"].value == 0.5
    assert tallies["macro_f1"].value == pytest.approx((2 / 3 * 0.75 + 0.5) / 2 + (2 / 3 - 2 / 3 * 0.75) / 2)
    beside = field.beside(results, raws)
    assert beside["confusion"] == {"labels": ["no", "yes"], "counts": [[1, 1], [0, 1]], "unanswered": [0, 1]}
    within = beside["classes"]["yes"].pop("interval")
    assert beside["classes"]["yes"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2}
    assert within == {key: [0.0, 1.0] for key in ("precision", "recall", "f1")}
    assert set(intervals(tallies)) == {"accuracy", "macro_f1"}
    assert field.baseline([("t", each) for each in raws], lambda: _Column([0, 0, 1]), None)["macro_f1"] == 1 / 3


class _Column:
    """The numbers of training labels."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = np.array(numbers)

    def array(self, name: str) -> np.ndarray:
        return self.numbers
