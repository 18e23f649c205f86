"""What breaks in one request of a scheduler is told to who asked, and is nobody else's."""

from __future__ import annotations

import pytest
import torch
from writers import MODELS, V, model

from saccade import SaccadeError
from saccade.decode.generate import generate
from saccade.decode.scheduler import Scheduler
from saccade.decode.step import ModelStepper


class Fails:
    """A constraint that breaks at its third token."""

    def start(self):
        return 0

    def allowed(self, state):
        if state == 2:
            raise SaccadeError("broken")
        return torch.ones(V, dtype=torch.bool)

    def advance(self, state, token):
        return state + 1


def test_a_problem_is_nobody_elses():
    ours = MODELS["gpt2"]
    scheduler = Scheduler(ours, rows=3)
    good = [scheduler.submit([each], max_tokens=9) for each in (1, 2)]
    bad = scheduler.submit([3], max_tokens=9, constraint=Fails())
    scheduler.run()
    assert (bad.reason, str(bad.problem), len(bad.tokens)) == ("failed", "broken", 2)
    for request in good:
        assert request.tokens == generate(ours, [request.writer.prompt], max_tokens=9)[0].tokens
    with pytest.raises(SaccadeError, match="broken"):
        generate(ours, [[3]], max_tokens=9, constraint=Fails())


class Broken(ModelStepper):
    """The row that has read the token 7 gives NaN."""

    def step(self, tokens, state):
        logits = super().step(tokens, state)
        return logits.masked_fill((tokens == 7).unsqueeze(-1), torch.nan)


def test_a_broken_row_is_nobody_elses():
    ours = MODELS["alibi"]
    scheduler = Scheduler(Broken(ours))
    made = [scheduler.submit([each], max_tokens=12) for each in range(12)]
    scheduler.run()
    failed = [each for each in made if each.reason == "failed"]
    assert 0 < len(failed) < 12
    for request in made:
        expected = generate(ours, [request.writer.prompt], max_tokens=12)[0].tokens
        read = 7 in expected[:-1]  # the last token is read by nobody
        assert (request in failed) == read
        assert request.tokens == (expected[: expected.index(7) + 1] if read else expected)


class Only:
    """A constraint that takes one token alone, always."""

    def __init__(self, token):
        self.mask = torch.arange(V) == token

    def start(self):
        return 0

    def allowed(self, state):
        return self.mask

    def advance(self, state, token):
        return state


class Infinite(ModelStepper):
    """No token 5 is ever possible; the row that has read the token 7 is sure of the token 3 beyond all numbers."""

    def step(self, tokens, state):
        logits = super().step(tokens, state)
        logits[..., 5] = -torch.inf
        logits[..., 3] = torch.where(tokens == 7, torch.inf, logits[..., 3])
        return logits


@pytest.mark.parametrize("token", [5, 7])
def test_a_row_that_has_nothing_to_choose_is_nobody_elses(token):
    """Of what it may write nothing is possible (5), or one token's score is infinite (7)."""
    scheduler = Scheduler(Infinite(MODELS["alibi"]))
    bad = scheduler.submit([2], max_tokens=9, constraint=Only(token))
    good = scheduler.submit([1], max_tokens=9, constraint=Only(2))
    scheduler.run()
    assert (bad.reason, good.reason, good.tokens) == ("failed", "length", [2] * 9)
    assert bad.tokens == [token]  # what was read first is not a step
    assert "the search cannot go on" in str(bad.problem)


@pytest.mark.parametrize("kind", ["gpt2", "alibi"])
def test_broken_keys_stay_behind_when_a_row_takes_their_place(kind):
    """What a row read that gives NaN lies in the cache, and another row moves there, which is shorter."""
    ours = model(kind)
    with torch.no_grad():
        ours.embed.tokens.weight[7] = torch.nan
        ours.head.weight[7] = 0.0  # others do not write it
    scheduler = Scheduler(ours)
    made = [scheduler.submit(each, max_tokens=17) for each in ([1] * 10, [7] * 20, [2] * 5)]
    scheduler.run()
    assert [each.reason for each in made] == ["length", "failed", "length"]
    for request in (made[0], made[2]):
        assert request.tokens == generate(ours, [request.writer.prompt], max_tokens=17)[0].tokens


def test_nobody_goes_on_from_a_row_that_failed():
    ours = MODELS["alibi"]
    scheduler = Scheduler(ours, prefixes=1000)
    bad = scheduler.submit([1, 2, 3, 4] * 5, max_tokens=9, constraint=Fails())
    scheduler.run()
    assert bad.reason == "failed"
    later = scheduler.submit([*bad.writer.prompt, *bad.tokens, 5], max_tokens=9)
    scheduler.run()
    assert later.tokens == generate(ours, [later.writer.prompt], max_tokens=9)[0].tokens


@pytest.mark.parametrize("prompt", [[7, 1], [1, 2]])
def test_a_broken_beam_is_nobody_elses(prompt):
    """Where it reads what gives NaN, or writes it on its way."""
    ours = model("alibi")
    with torch.no_grad():
        ours.embed.tokens.weight[7] = torch.nan
    scheduler = Scheduler(ours)
    beam = scheduler.submit_beam(prompt, max_tokens=30, beam=40)  # as wide as the vocabulary: 7 is among them
    good = scheduler.submit([3], max_tokens=2)
    scheduler.run()
    assert (beam.reason, good.reason) == ("failed", "length")
    with pytest.raises(SaccadeError, match="NaN"):
        beam.sequence()
    assert scheduler.submit([3], max_tokens=2) is not None
    scheduler.run()
