"""How often a translator of dates looks where it should: against one that looks where it is told to."""

from types import SimpleNamespace

import numpy as np
import pytest
from architectures import ARCHITECTURES

import saccade
from saccade.data import dates
from saccade.field.tally import intervals, mean
from saccade.learn.alignment import DIGITS, aligned
from saccade.learn.validate import evaluate
from saccade.recipes.read import from_values

COUNT = 40
EXAMPLES = {each.source: each for each in dates.examples(COUNT, split="test", seed=0)}


class Looker:
    """A run that makes of a date what `says` tells, and each of whose letters looks at the place that `looks` tells."""

    recipe = None

    def __init__(self, looks, says=lambda each: each.target, limit=None):
        self.looks, self.says, self.limit, self.asked = looks, says, limit, []

    def look(self, source):
        self.asked.append(source)
        each = EXAMPLES[source]
        values = np.full((len(each.target), len(source) + 1), 0.1)  # behind the letters stands the end
        for span, digits in zip(each.parts, DIGITS, strict=True):
            for place in digits:
                values[place, self.looks(each, span, place)] = 0.9
        layers = [SimpleNamespace(name="cross", kind="cross"), SimpleNamespace(name="own", kind="self")]
        maps = {"cross": SimpleNamespace(values=values)}
        return SimpleNamespace(output=self.says(each), layers=layers, map=lambda name: maps[name])


def first(each, span, place):
    return span[0]


def last(each, span, place):
    return span[1] - 1


def before(each, span, place):
    return span[0] - 1


def behind(each, span, place):
    return span[1] if span[1] < len(each.source) else span[0] - 1


def end(each, span, place):
    return len(each.source)


@pytest.mark.parametrize(("looks", "share"), [(first, 1.0), (last, 1.0), (before, 0.0), (behind, 0.0), (end, 0.0)])
def test_a_digit_counts_that_looks_into_its_own_part(looks, share):
    assert aligned(Looker(looks), COUNT).value == share


def test_one_digit_of_eight_that_looks_elsewhere_costs_an_eighth():
    found = aligned(Looker(lambda each, span, place: span[0] - (place == 1)), COUNT)
    assert found.value == 7 / 8
    assert intervals({"aligned": found})["aligned"] == [7 / 8, 7 / 8], "each date loses the same"


def test_dates_that_came_out_wrong_are_left_out():
    def late(each):
        return each.target >= "2000"

    run = Looker(lambda each, span, place: span[0] - late(each), lambda each: "" if late(each) else each.target)
    assert aligned(run, COUNT).value == 1.0
    assert np.isnan(aligned(Looker(first, lambda each: ""), COUNT).value)


def test_dates_that_are_too_long_for_the_run_are_left_out():
    run = Looker(first, limit=16)
    assert aligned(run, COUNT).value == 1.0
    assert {len(each) <= 16 for each in EXAMPLES} == {True, False}
    assert run.asked == [each for each in EXAMPLES if len(each) <= 16]


@pytest.mark.parametrize("name", ["transformer", "additive", "feeding", "gnmt", "convs2s", "fixed", "bytenet"])
def test_evaluate_tells_it_of_every_model_that_attends(name, tmp_path, monkeypatch):
    monkeypatch.setattr("saccade.learn.alignment.aligned", lambda run, count, split: mean(np.eye(4)[count % 3]))
    values = {
        "task": "translate",
        "data": {"name": "dates", "tokenizer": "characters", "vocab": 200, "examples": 40, "held": 4},
        "model": {"width": 8, "heads": 2, "encoder": 2, "decoder": 2, **ARCHITECTURES.get(name, {})},
        "train": {"steps": 1, "batch": 400},
        "decode": {"max_tokens": 12},
    }
    run = saccade.train(from_values(values), run=tmp_path / "run")
    found = evaluate(run)
    assert found["metrics"].get("aligned") == (None if name in ("fixed", "bytenet") else 0.25)
    assert found["interval"].get("aligned") == (None if name in ("fixed", "bytenet") else [0.0, 0.75])
