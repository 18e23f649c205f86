"""What is written of pictures obeys the laws for texts: cached = uncached, batched = alone, whoever comes when;
greedily, by a beam, drawn or constrained.
"""

from __future__ import annotations

import pytest
import torch
from captions import CAPTIONERS, captioner
from torch import nn

from saccade.decode.constraint import only
from saccade.decode.generate import generate, stream
from saccade.decode.scheduler import Scheduler
from saccade.decode.sequence import Sequence
from saccade.field.text.text import Text
from saccade.model.input import Input

BEGIN, END, MOST = 1, 2, 11
WAYS = {
    "greedy": {},
    "beam": {"beam": 3},
    "diverse": {"beam": 4, "groups": 2, "diversity": 0.5},
    "drawn": {"temperature": 0.9, "top_k": 9, "seed": 5},
    "constrained": {"constraint": only([5, 6, 7, END], 29)},
}


@pytest.fixture(scope="module", params=CAPTIONERS)
def model(request):
    made = captioner(request.param)
    for weight in made.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.5)
    return made


def pictures(count: int) -> list[Input]:
    drawn = torch.randn(count, 3, 8, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return [Input({"pixels": each}) for each in drawn.split(1)]


def write(model, sources, **options) -> list[Sequence]:
    return generate(model, sources=sources, begin=BEGIN, end=END, max_tokens=MOST, **options)


def likelihood(model, picture: Input, tokens: list[int]) -> float:
    """The log-probability of tokens after <begin>, from one pass over all of them."""
    with torch.no_grad():
        states = model.states(picture, Input({"tokens": torch.tensor([[BEGIN, *tokens[:-1]]])}))
        scores = model.answer(states.last)[0].log_softmax(-1)
    return float(scores.gather(1, torch.tensor(tokens)[:, None]).sum())


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_cached_is_uncached(model, way):
    for picture, found in zip(pictures(3), write(model, pictures(3), **WAYS[way]), strict=True):
        tokens = [*found.tokens, END] if found.finished else found.tokens
        assert found.logprob == pytest.approx(likelihood(model, picture, tokens), abs=1e-9)


def test_the_likeliest_token_is_written_at_each_place(model):
    for picture, found in zip(pictures(3), write(model, pictures(3)), strict=True):
        with torch.no_grad():
            states = model.states(picture, Input({"tokens": torch.tensor([[BEGIN, *found.tokens]])}))
            likeliest = model.answer(states.last)[0].argmax(-1).tolist()
        wanted = [*found.tokens, END] if found.finished else found.tokens
        assert likeliest[: len(wanted)] == wanted


@pytest.mark.parametrize("way", WAYS)
def test_batched_is_alone(model, way):
    together = write(model, pictures(4), **WAYS[way])
    for picture, found in zip(pictures(4), together, strict=True):
        (alone,) = write(model, [picture], **WAYS[way])
        assert (alone.tokens, alone.finished) == (found.tokens, found.finished)
        assert alone.logprob == pytest.approx(found.logprob, abs=1e-9)
    assert len({round(each.logprob, 9) for each in together}) > 1, "what is written depends on the picture"


def test_whoever_comes_when_writes_the_same(model):
    """Continuous batching: greedy, drawn and beam searches join one after another."""
    ways = [WAYS["greedy"], WAYS["beam"], WAYS["drawn"], WAYS["greedy"]]
    scheduler, asked = Scheduler(model, rows=5), []
    for picture, way in zip(pictures(4), ways, strict=True):
        submit = scheduler.submit_beam if "beam" in way else scheduler.submit
        asked.append(submit([BEGIN], source=picture, end=END, max_tokens=MOST, **way))
        scheduler.step()
        scheduler.step()
    scheduler.run()
    for picture, way, request in zip(pictures(4), ways, asked, strict=True):
        (alone,) = write(model, [picture], **way)
        assert request.sequence().tokens == alone.tokens


def test_a_constraint_holds(model):
    for found in write(model, pictures(3), **WAYS["constrained"]):
        assert {*found.tokens} <= {5, 6, 7}


def test_streamed_is_whole(model):
    text = Text.train(["a boot on the left"], "characters", vocab=29)
    for picture in pictures(2):
        pieces = "".join(stream(model, [BEGIN], source=picture, text=text, end=END, max_tokens=MOST))
        (found,) = write(model, [picture], text=text)
        assert pieces == (text.decode(found.tokens) if found.text is None else found.text)
