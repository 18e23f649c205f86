"""What a translator is told of itself while it learns."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade import ModelConfig
from saccade.data.field import Text
from saccade.learn.tally import of_answers
from saccade.recipe import DecodeConfig
from saccade.task.batch import Batch, Result, unanswered
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


def test_padding_takes_no_experts_room():
    """While training, what the padding's vector is does not matter to the loss, behind a source or a target."""
    torch.manual_seed(0)
    task = Translate(Text.train([each for row in ROWS for each in row], "words"), "de")
    config = ModelConfig(width=12, heads=3, encoder=1, decoder=1, experts=3, chosen=1, capacity=0.5, tie=False)
    model = saccade.build(task.configure(config)).train()
    real = torch.tensor([[True, True, *[False] * 5], [True] * 7])
    words = torch.where(real, torch.randint(4, task.text.vocab, (2, 7)), task.pad)
    places = real.flatten().nonzero().squeeze(1)
    batch = Batch(words, real.sum(1), words, words[real], places)
    assert batch.sizes.tolist() == batch.twice().sizes[2:].tolist() == [2, 7]
    before = task.loss(model, batch)
    for vector in torch.randn(7, 12):  # each draws the padding to another expert
        with torch.no_grad():
            model.embed.tokens.weight[task.pad] = vector
        assert task.loss(model, batch) == before
