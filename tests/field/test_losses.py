"""The losses of examples add up to the loss, for every field that is Y, and each is what the example has alone."""

from __future__ import annotations

import numpy as np
import pytest
import tasks
import torch

import saccade
from saccade.config import ModelConfig
from saccade.data import corpus
from saccade.field.text.text import Text
from saccade.recipe import TrainConfig
from saccade.task.batch import states_of

TEXTS = ["the eye jumps", "to", "what matters and rests", "a while then on the way", "rests the eye"]
VOCABULARY = Text.train(TEXTS, "words", vocab=40)
SMALL = {"width": 12, "heads": 2, "hidden": 16, "position": "rotary"}
CASES = {
    "translate": (lambda: tasks.translate(VOCABULARY, smoothing=0.3), {"encoder": 1, "decoder": 1}, TEXTS[::-1]),
    "write": (lambda: tasks.write(VOCABULARY, window=4, smoothing=0.3), {"decoder": 1}, None),
    "classify": (lambda: tasks.classify(VOCABULARY, ["a", "b"], smoothing=0.3), {"encoder": 1}, list("ababa")),
    "regress": (
        lambda: tasks.regress(VOCABULARY, [1.0, 3.0], [2.0, 5.0]),
        {"encoder": 1},
        [(float(n), n / 3) for n in range(5)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_losses_of_examples_add_up(name, tmp_path):
    make, stacks, outputs = CASES[name]
    task = make()
    torch.manual_seed(0)
    model = saccade.build(task.configure(ModelConfig(**SMALL, **stacks))).eval()
    rows = [(text,) for text in TEXTS] if outputs is None else list(zip(TEXTS, outputs, strict=True))
    made = corpus.build(tmp_path / "c", rows, task.fields, key="k")
    with torch.no_grad():
        for budget in (1000, 1):
            total, count = 0.0, 0.0
            for batch in task.whole(made, TrainConfig(batch=budget, steps=1)):
                states = states_of(model, batch)
                (term,) = task.target.loss(model, states, batch.y, learning=False).values()
                each = task.target.losses(model, states, batch.y).double()
                assert each[:, 0].sum().item() == pytest.approx(float(term.sum), rel=1e-5)
                assert each[:, 1].sum().item() == batch.count
                total, count = total + each[:, 0].sum().item(), count + batch.count
            if budget == 1000:
                together = total, count
    assert (total, count) == pytest.approx(together, rel=1e-5), "alone or in company"
    assert np.isfinite(total)
