"""Which metrics of a text are shown: BLEU where references have phrases of four words, or what the recipe names."""

from __future__ import annotations

import pytest
import tasks

from saccade.error import SaccadeError
from saccade.field.result import Result
from saccade.field.text.text import Text
from saccade.recipes.read import from_values

DATES = ["1954-06-03", "2018-05-19", "2036-08-23"]
LONG = ["ein mann geht nach hause", "zwei", "sie sieht ihn dort nicht"]
ALL = ("exact_match", "bleu_13a", "chrf", "bleu_tokenised_lower", "length_ratio")


def target(**keys):
    return tasks.translate(Text.train([*DATES, *LONG], "characters", vocab=60), **keys).target


@pytest.mark.parametrize(
    ("raws", "keys", "shown", "main"),
    [
        (DATES, {}, ("exact_match", "chrf"), "exact_match"),
        (LONG, {}, ALL, "bleu_13a"),
        ([*LONG, *DATES[:2]], {}, ("exact_match", "chrf"), "exact_match"),
        (DATES, {"metrics": ["bleu_13a", "exact_match"]}, ("exact_match", "bleu_13a"), "bleu_13a"),
        (LONG, {"metrics": ["chrf"]}, ("chrf",), "chrf"),
    ],
)
def test_a_text_shows_what_means_something(raws, keys, shown, main):
    field = target(**keys)
    assert field.meaningful(raws) == shown
    assert field.main_of(raws) == main
    results = [Result(each, each, 0.0) for each in raws]
    assert set(field.quick(results, raws)) == {"exact_match", main}
    assert set(field.beside(results, raws)["signatures"]) == set(shown)


def test_a_recipe_names_only_metrics_that_there_are():
    values = {
        "task": "translate",
        "data": {"name": "dates"},
        "model": {"encoder": 1, "decoder": 1, "width": 8, "heads": 2},
    }
    from saccade.task.pair import pair_of

    made = from_values({**values, "y": {"metrics": ["exact_match"]}, "train": {"steps": 1}})
    assert pair_of(made).y.config.metrics == ["exact_match"]
    with pytest.raises(SaccadeError, match=r"y\.metrics"):
        pair_of(from_values({**values, "y": {"metrics": ["blue"]}, "train": {"steps": 1}}))
