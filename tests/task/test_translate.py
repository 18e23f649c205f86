"""What a translator is told of itself while it learns."""

from __future__ import annotations

import pytest
import tasks
import torch

import saccade
from saccade import ModelConfig
from saccade.data.rows import Picked
from saccade.field.result import Result, unanswered
from saccade.field.text.text import Text
from saccade.learn.tally import of_answers
from saccade.recipe import DecodeConfig

ROWS = [("a dog bites", "Ein Hund beißt einen Mann"), ("two cats", "Zwei Katzen sehen den Hund")]


@pytest.mark.parametrize("lower", [True, False])
def test_who_writes_no_capitals_is_not_asked_for_them(lower, monkeypatch):
    task = tasks.translate(Text.train([each for row in ROWS for each in row], "words", lower=lower), language="de")
    small = [Result(row[1].lower(), row[1].lower(), 0.0) for row in ROWS]
    monkeypatch.setattr(task, "predict", lambda *given: small)
    found, samples = task.quick(None, ROWS, DecodeConfig())
    assert found["exact_match"] == lower
    if lower:
        assert found["bleu_tokenised_lower"] == pytest.approx(100)
    else:
        assert found["bleu_13a"] < 50
    assert samples == [(row[0], each.text) for row, each in zip(ROWS, small, strict=True)]
    judged, beside, _ = task.judge(None, ROWS, DecodeConfig())
    assert judged["exact_match"] == lower
    assert judged["bleu_13a"] < 50  # what its signature says, whoever writes
    assert beside.get("lower", False) == lower
    counted = of_answers(task, small, ROWS, [])
    assert {name: pytest.approx(each.value) for name, each in counted.whole.items()} == judged


def test_a_cut_answer_is_none_that_was_refused():
    results = [
        Result("", "", 0.0, "cut: no end within 3 tokens"),
        Result(None, "", 0.0, "empty: nothing"),
        Result("a", "a", -1.0),
        Result("b", "b", -1.0, "'eye': not known"),
    ]
    assert unanswered(results) == {"unfit": 1, "cut": 1}


def test_padding_takes_no_experts_room():
    """While training, what the padding's vector is does not matter to the loss, behind a source or a target."""
    torch.manual_seed(0)
    text = Text.train([each for row in ROWS for each in row], "words")
    task = tasks.translate(text)
    config = ModelConfig(width=12, heads=3, encoder=1, decoder=1, experts=3, chosen=1, capacity=0.5, tie=False)
    model = saccade.build(task.configure(config)).train()
    rows = [torch.randint(4, text.vocab, (size,)).numpy() for size in (1, 6)]
    batch = task.batch(Picked({"source": {"tokens": rows}, "target": {"tokens": rows}}))
    for made in (batch, batch.twice()):  # an end more in the source, a begin in the target
        assert made.x["source"].lengths[0].tolist()[-2:] == made.given.lengths[0].tolist()[-2:] == [2, 7]
    before = task.terms(model, batch)["text"].sum
    for vector in torch.randn(7, 12):  # each draws the padding to another expert
        with torch.no_grad():
            model.table[text.pad] = vector
        assert task.terms(model, batch)["text"].sum == before
