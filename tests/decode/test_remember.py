"""Decoding with a memory: every token looks at the M before it, however the text was cut into calls."""

from __future__ import annotations

import pytest
import torch

import saccade
from saccade.config import ModelConfig
from saccade.decode.plan import Plan
from saccade.decode.step import ModelStepper

MEMORY, LENGTH = 5, 23


def model_of(position="xl", memory=MEMORY, mask=None, **more):
    torch.manual_seed(3)
    given = {"vocab": 17, "width": 12, "heads": 3, "decoder": 2, "hidden": 16, "head": "vocabulary", **more}
    return saccade.build(ModelConfig(position=position, memory=memory, mask=mask, **given)).double().eval()


def tokens(rows=2, length=LENGTH):
    return torch.randint(17, (rows, length), generator=torch.Generator().manual_seed(7))


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def windowed(model):
    """The same weights as a model without a memory, all of whose layers look M back: the law."""
    config = model.config.model_copy(update={"memory": 0, "mask": f"window({model.config.memory + 1})"})
    other = saccade.build(config).double().eval()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize("position", ["xl", "rotary", "alibi", None])
@pytest.mark.parametrize("order", ["pre", "post"])
@torch.no_grad()
def test_steps_are_segments_of_one_token_whatever_the_calls(position, order):
    model, x = model_of(position, order=order), tokens()
    memory = model.memory()
    alone = torch.cat([model(each, memory=memory) for each in x.split(1, 1)], 1)
    same(windowed(model)(x), alone)
    for cut in ([LENGTH], [1] * LENGTH, [9, 1, 1, 7, 5]):
        state = model.start()
        same(torch.cat([model.decode_step(each, state) for each in x.split(cut, 1)], 1), alone)
    plan, state = Plan(model), model.start()
    model.advance(x[:, :9], state)
    for place in range(9, LENGTH):
        same(model.answer(plan.step(x[:, place], state).unsqueeze(1))[:, 0], alone[:, place])


@torch.no_grad()
def test_segments_are_steps_where_no_segment_sees_more():
    """At the beginning of a segment, in texts no longer than a segment and M, and under a window of M + 1."""
    model, x = model_of(), tokens()
    steps, memory, found = windowed(model)(x), model.memory(), []
    for segment in x.split(4, 1):
        found.append(model(segment, memory=memory))
    same(found[0], steps[:, :4])
    assert not torch.allclose(found[-1][:, -1], steps[:, -1])  # it saw 2 more, and what they saw
    same(model(x[:, : MEMORY + 1]), steps[:, : MEMORY + 1])
    model = model_of(mask=f"window({MEMORY + 1})")
    for length in (1, 4, 7, LENGTH):
        memory = model.memory()
        same(torch.cat([model(each, memory=memory) for each in x.split(length, 1)], 1), model(x))
    state = model.start()
    same(model.decode_step(x, state), model(x))


def greedy(model, prompt, count):
    """Every token anew from the whole text, by the law."""
    written, law = list(prompt), windowed(model)
    for _ in range(count):
        written.append(int(law(torch.tensor([written]))[0, -1].argmax()))
    return written[len(prompt) :]


@pytest.mark.parametrize("position", ["xl", "rotary"])
@torch.no_grad()
def test_generate_writes_what_the_law_says_together_and_alone(position):
    model = model_of(position)
    prompts = [each.tolist() for each in (tokens(1, 9)[0], tokens(1, 2)[0], tokens(1, 14)[0])]
    together = saccade.generate(model, prompts, max_tokens=8)
    for prompt, found in zip(prompts, together, strict=True):
        (alone,) = saccade.generate(model, [prompt], max_tokens=8)
        assert found.tokens == alone.tokens == greedy(model, prompt, 8)
        assert found.logprob == pytest.approx(alone.logprob, abs=1e-9)
    beams = saccade.generate(model, prompts, max_tokens=5, beam=3)
    for prompt, found in zip(prompts, beams, strict=True):
        (alone,) = saccade.generate(model, [prompt], max_tokens=5, beam=3)
        assert found.tokens == alone.tokens
    (drafted,) = saccade.generate(model, prompts[:1], max_tokens=8, draft="lookup")
    assert drafted.tokens == together[0].tokens


@torch.no_grad()
def test_the_cache_stays_as_long_as_the_memory():
    model, stepper = model_of(), ModelStepper(model_of())
    state, _ = stepper.start([tokens(1, 40)[0].tolist()])
    for _ in range(300):
        stepper.step(torch.tensor([[1]]), state)
    assert state.length == 340
    assert max(cache.own.held for cache in state.caches) < 335
    assert model.decoder.windows == [MEMORY + 1] * 2


@torch.no_grad()
def test_a_watched_step_saw_the_memory_alone():
    model, x = model_of("rotary"), tokens(1)
    with saccade.watch(model) as seen:
        state = model.start()
        model.decode_step(x, state)
    weights = seen.weights(seen.layers[0])[0, 0]
    assert bool((weights[-1, : -MEMORY - 1] == 0).all())
    assert bool((weights[-1, -MEMORY - 1 :] > 0).all())
