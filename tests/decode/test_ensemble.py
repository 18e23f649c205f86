"""Several models write together: their probabilities are averaged, in every search."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.decode.ensemble import Ensemble
from saccade.decode.generate import generate
from saccade.decode.scheduler import Scheduler

V = 19
SMALL = {"vocab": V, "width": 12, "heads": 3, "hidden": 17, "decoder": 1, "encoder": 1, "head": "vocabulary"}


def model(seed: int, **changes) -> saccade.Model:
    torch.manual_seed(seed)
    made = saccade.build(ModelConfig(**(SMALL | {"position": "sinusoid"} | changes))).double().eval()
    for weight in made.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.7)
    return made


MODELS = [model(1), model(2, position="rotary", width=18), model(3, decoder=2, position="alibi")]
SOURCES = [[3, 1, 7], [5], [2, 2, 8, 9]]


def averaged(source: list[int], written: list[int]) -> torch.Tensor:
    """log mean_m p_m(next), by whole models."""
    with torch.no_grad():
        each = [ours(torch.tensor([source]), torch.tensor([[1, *written]]))[0, -1].softmax(-1) for ours in MODELS]
    return torch.stack(each).mean(0).log()


def test_the_mean_of_probabilities_is_followed():
    for source, found in zip(SOURCES, generate(MODELS, sources=SOURCES, begin=1, max_tokens=9), strict=True):
        for place, token in enumerate(found.tokens):
            logprobs = averaged(source, found.tokens[:place])
            assert token == int(logprobs.argmax())
            assert found.logprobs[place] == pytest.approx(float(logprobs[token]), abs=1e-9)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_model_with_itself_is_itself(beam):
    one = generate(MODELS[0], sources=SOURCES, begin=1, max_tokens=9, beam=beam, end=4)
    same = generate((MODELS[0], MODELS[0]), sources=SOURCES, begin=1, max_tokens=9, beam=beam, end=4)
    assert [each.tokens for each in one] == [each.tokens for each in same]
    assert [each.logprob for each in one] == pytest.approx([each.logprob for each in same], abs=1e-9)


def test_beam_scores_are_sums_of_what_the_models_say():
    for source, found in zip(SOURCES, generate(MODELS, sources=SOURCES, begin=1, max_tokens=6, beam=4), strict=True):
        steps = [float(averaged(source, found.tokens[:place])[token]) for place, token in enumerate(found.tokens)]
        assert found.logprob == pytest.approx(sum(steps), abs=1e-9)


def test_in_a_running_batch():
    scheduler = Scheduler(Ensemble(MODELS), rows=2)
    made = [scheduler.submit([1], source=source, max_tokens=3 + 2 * n) for n, source in enumerate(SOURCES)]
    scheduler.run()
    for number, (request, source) in enumerate(zip(made, SOURCES, strict=True)):
        alone = generate(MODELS, sources=[source], begin=1, max_tokens=3 + 2 * number)[0]
        assert request.tokens == alone.tokens


def test_refused():
    with pytest.raises(SaccadeError, match=r"share one vocabulary; these have \[18, 19\]"):
        Ensemble([MODELS[0], model(1, vocab=18)])
    with pytest.raises(SaccadeError, match="one model at least"):
        generate([], [[1]], max_tokens=3)
