"""What a translator is told of itself while it learns."""

from __future__ import annotations

import pytest

from saccade.data.field import Text
from saccade.learn.tally import of_answers
from saccade.recipe import DecodeConfig
from saccade.task.batch import Result, unanswered
from saccade.task.translate import Translate

ROWS = [("a dog bites", "Ein Hund beißt einen Mann"), ("two cats", "Zwei Katzen sehen den Hund")]


@pytest.mark.parametrize("lower", [True, False])
def test_who_writes_no_capitals_is_not_asked_for_them(lower, monkeypatch):
    task = Translate(Text.train([each for row in ROWS for each in row], "words", lower=lower), "de")
    small = [Result(row[1].lower(), 0.0) for row in ROWS]
    monkeypatch.setattr(task, "predict", lambda *given: small)
    found, samples = task.quick(None, ROWS, DecodeConfig())
    assert found["exact_match"] == lower
    if lower:
        assert found["bleu_tokenised_lower"] == pytest.approx(100)
    else:
        assert found["bleu_13a"] < 50
    assert samples == [(row[0], each.text) for row, each in zip(ROWS, small, strict=True)]
    judged, beside = task.judge(None, ROWS, DecodeConfig())
    assert judged["exact_match"] == lower
    assert judged["bleu_13a"] < 50  # what its signature says, whoever writes
    assert beside.get("lower", False) == lower
    counted = of_answers(task, [each.text for each in small], ROWS, [])
    assert {name: pytest.approx(each.value) for name, each in counted.whole.items()} == judged


def test_a_cut_answer_is_none_that_was_refused():
    results = [Result("", 0.0, "cut: no end within 3 tokens"), Result("", 0.0, "empty: nothing"), Result("a", -1.0)]
    assert unanswered(results) == {"unfit": 1, "cut": 1}
