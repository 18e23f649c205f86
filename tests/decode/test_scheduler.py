"""Continuous batching: who comes when, with whom and with which draft changes nothing of what a request writes."""

from __future__ import annotations

import pytest
import torch
from examples import examples, proofs
from hypothesis import given
from hypothesis import strategies as st
from writers import CONFIGS, MODELS, V, model

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.decode.constraint import matching, only
from saccade.decode.draft import Lookup, ModelDraft
from saccade.decode.generate import generate, stream
from saccade.decode.quantise import quantise
from saccade.decode.scheduler import Scheduler
from saccade.decode.step import ModelStepper
from saccade.field.text.text import Text

TOKENS = st.lists(st.integers(0, V - 1), min_size=1, max_size=9)
REQUESTS = st.fixed_dictionaries(
    {
        "prompt": TOKENS,
        "source": TOKENS,
        "max_tokens": st.integers(1, 12),
        "min_tokens": st.integers(0, 1),
        "end": st.sampled_from([None, 3, 11]),
        "temperature": st.sampled_from([0.0, 0.0, 0.8]),
        "top_k": st.sampled_from([0, 7]),
        "repetition_penalty": st.sampled_from([1.0, 1.3]),
        "seed": st.integers(0, 99),
        "beam": st.sampled_from([1, 1, 1, 3]),
        "top": st.sampled_from([0, 2]),
        "wait": st.integers(0, 4),
    }
)
BEAM = ("prompt", "source", "max_tokens", "min_tokens", "end", "beam")


def submit(scheduler: Scheduler, options: dict):
    options = {key: value for key, value in options.items() if key not in ("wait", "source")} | (
        {"source": options["source"]} if scheduler.stepper.model.encoder is not None else {}
    )
    if options["beam"] > 1:
        return scheduler.submit_beam(**{key: value for key, value in options.items() if key in BEAM})
    del options["beam"]
    return scheduler.submit(options.pop("prompt"), **options)


def alone(ours: saccade.Model, options: dict):
    scheduler = Scheduler(ours)
    request = submit(scheduler, options)
    scheduler.run()
    return request.sequence(), request.reason


def close(found, expected) -> None:
    (a, why), (b, because) = found, expected
    assert (a.tokens, a.finished, why) == (b.tokens, b.finished, because)
    assert a.logprob == pytest.approx(b.logprob, abs=1e-9)
    assert a.logprobs == pytest.approx(b.logprobs, abs=1e-9)
    assert [[token for token, _ in step] for step in a.top] == [[token for token, _ in step] for step in b.top]


@pytest.mark.parametrize("draft", proofs([None, "lookup", "model"], but=["lookup"]))
@pytest.mark.parametrize("name", CONFIGS)
@examples(12)
@given(asked=st.lists(REQUESTS, min_size=1, max_size=6), rows=st.integers(1, 5))
def test_company_changes_nothing(name, draft, asked, rows):
    ours = MODELS[name]
    guess = {None: None, "lookup": Lookup(3), "model": ModelDraft(ModelStepper(ours), 2)}[draft]
    scheduler = Scheduler(ours, rows=rows, draft=guess, prefixes=0 if draft else 100)
    made, steps = [], 0
    for options in asked:
        made.append(submit(scheduler, options))
        for _ in range(options["wait"]):
            scheduler.step()
    while scheduler.busy:
        scheduler.step()
        steps += 1
        assert steps < 200
    for request, options in zip(made, asked, strict=True):
        close((request.sequence(), request.reason), alone(ours, options))


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_company_changes_nothing_in_float32_and_int8(kind):
    """On a model that writes many different tokens and is never nearly undecided, as the choice would then be noise."""
    prompts = [[each % V, (7 * each + 3) % V, 5] + [1] * (each % 5) for each in range(24)]
    ours = model("gpt2", seed=3, std=0.7).float()
    ours = quantise(ours) if kind == "int8" else ours
    every = [generate(ours, [prompt], max_tokens=24, top=2)[0] for prompt in prompts]
    sure = [each for each in every if min(step[0][1] - step[1][1] for step in each.top) > 1e-3]
    assert len(sure) > 10
    assert len({token for each in sure for token in each.tokens}) >= 20
    scheduler = Scheduler(ours, rows=7)
    made = []
    for number, prompt in enumerate(prompts):
        made.append(scheduler.submit(prompt, max_tokens=24))
        for _ in range(number % 3):
            scheduler.step()
    scheduler.run()
    for one, request in zip(every, made, strict=True):
        if one in sure:
            assert request.tokens == one.tokens


def test_a_draft_saves_steps():
    """A draft that is the model itself is always right: k + 1 tokens a step. A repetitive text is looked up."""
    ours = model("gpt2")
    counted = []

    class Counted(ModelStepper):
        def step(self, tokens, state):
            counted.append(tokens.shape[1])
            return super().step(tokens, state)

    scheduler = Scheduler(Counted(ours), draft=ModelDraft(ModelStepper(ours), 3))
    request = scheduler.submit([5, 3], max_tokens=13, temperature=0.9, seed=4)
    scheduler.run()
    assert counted == [4, 4, 4]
    assert request.tokens == generate(ours, [[5, 3]], max_tokens=13, temperature=0.9, seed=4)[0].tokens
    counted.clear()
    with torch.no_grad():
        ours.head.weight.zero_()[7, 0] = 1.0  # the same token again and again
        ours.decoder.norm.bias[0] = 9.0
    looked = generate(Counted(ours), [[7, 7]], max_tokens=21, draft="lookup")
    assert looked[0].tokens == [7] * 21
    assert counted == [5] * 4


def test_prefixes_are_read_once():
    ours, fed = MODELS["mistral"], []

    class Counted(ModelStepper):
        def start(self, prompts, sources=None):
            fed.append(sum(map(len, prompts)))
            return super().start(prompts, sources)

        def step(self, tokens, state):
            fed.append(tokens.numel())
            return super().step(tokens, state)

        def parts(self, tokens, state):
            fed.append(tokens.numel())
            return super().parts(tokens, state)

    history = [int(each) for each in torch.arange(30) * 7 % V]
    scheduler = Scheduler(Counted(ours), prefixes=90)
    first = scheduler.submit(history, max_tokens=5)
    scheduler.run()
    fed.clear()
    prompt = history + first.tokens + [1, 2]
    second = scheduler.submit(prompt, max_tokens=1)
    scheduler.run()
    assert fed == [3]  # all but the last token of the first was held, and two are new
    assert second.tokens == generate(ours, [prompt], max_tokens=1)[0].tokens
    fed.clear()
    live = scheduler.submit([9] * 20 + [4], max_tokens=9)
    scheduler.step()
    fed.clear()
    twin = scheduler.submit([9] * 20 + [8, 8], max_tokens=9)
    scheduler.step()
    assert fed == [1, 2]  # the running row wrote one, and of the twin two are new
    scheduler.run()
    for request in (live, twin):
        assert request.tokens == generate(ours, [request.writer.prompt], max_tokens=9)[0].tokens


def test_cancelled():
    ours = MODELS["gpt2"]
    scheduler = Scheduler(ours, rows=2)
    first, second, third = (scheduler.submit([each], max_tokens=9) for each in (1, 2, 3))
    search = scheduler.submit_beam([1], max_tokens=9, beam=2)
    scheduler.step()
    scheduler.cancel(first)
    scheduler.cancel(third)
    scheduler.cancel(search)
    scheduler.run()
    assert (first.reason, len(first.tokens)) == ("cancelled", 1)
    assert (third.reason, third.tokens, search.reason) == ("cancelled", [], "cancelled")
    assert second.tokens == generate(ours, [[2]], max_tokens=9)[0].tokens
    scheduler.cancel(second)
    assert second.reason == "length"


TEXTS = ["to be or not to be", "that is the question", "whether it is nobler", "tis naïve 🙂 öäü"]


def reading() -> tuple[Text, saccade.Model]:
    text = Text.train(TEXTS, "bpe", vocab=300)
    torch.manual_seed(0)
    config = ModelConfig(**(CONFIGS["alibi"] | {"vocab": text.vocab}))
    return text, saccade.build(config).double().eval()


def test_stop_strings_end_a_request_and_text_comes_in_pieces():
    text, ours = reading()
    (prompt,) = text.encode(["to be"])
    whole = generate(ours, [prompt], max_tokens=60, temperature=1.0, seed=1)[0]
    written = text.decode(whole.tokens)
    stop = written[20:24]
    scheduler = Scheduler(ours, text=text)
    request, pieces = scheduler.submit(prompt, max_tokens=60, temperature=1.0, seed=1, stop=[stop]), []
    while scheduler.busy:
        pieces += [each.piece for each in scheduler.step()]
    assert request.reason == "stop"
    assert "".join(pieces) == request.text == written[: written.index(stop)]
    assert request.tokens == whole.tokens[: len(request.tokens)]
    with pytest.raises(SaccadeError, match="give the scheduler its text"):
        Scheduler(ours).submit(prompt, max_tokens=3, stop=["x"])


def test_constraints_rule_beside_free_neighbours():
    text, ours = reading()
    (prompt,) = text.encode(["to be"])
    dated = matching(r"\d{4}-\d\d", text)
    scheduler = Scheduler(ours, text=text)
    free = scheduler.submit(prompt, max_tokens=20)
    made = [
        scheduler.submit(prompt, max_tokens=20, end=text.end, constraint=dated, temperature=2.0, seed=each)
        for each in range(5)
    ]
    few = scheduler.submit(prompt, max_tokens=9, constraint=only([5, 6, 7], text.vocab))
    stuck = scheduler.submit(prompt, max_tokens=20, min_tokens=19, end=text.end, constraint=matching("a?", text))
    scheduler.run()
    for each in made:
        assert each.reason == "end"
        year, month = each.text.split("-")
        assert (len(year), len(month)) == (4, 2)
        assert (year + month).isdecimal()
    assert set(few.tokens) <= {5, 6, 7}
    assert (stuck.reason, stuck.text) == ("stuck", "a")
    assert free.tokens == generate(ours, [prompt], max_tokens=20)[0].tokens


def test_refused():
    scheduler = Scheduler(MODELS["gpt2"])
    for options, why in (
        ({"prompt": []}, "empty"),
        ({"prompt": [V]}, "outside the vocabulary"),
        ({"max_tokens": 60}, "give max_tokens = 59 at most"),
        ({"end": V}, "end is a token"),
        ({"top": -1}, "top is a whole number"),
        ({"top": V + 1}, "more than the 41 tokens"),
        ({"temperature": -1}, "temperature"),
        ({"min_tokens": 7}, "min_tokens = 7 is more than max_tokens = 3"),
    ):
        with pytest.raises(SaccadeError, match=why):
            scheduler.submit(**({"prompt": [1], "max_tokens": 3} | options))
    with pytest.raises(SaccadeError, match="groups do not divide"):
        scheduler.submit_beam([1], max_tokens=3, beam=4, groups=3)
    assert not scheduler.busy


@pytest.mark.parametrize("draft", ["lookup", "model"])
def test_pieces_come_whole_with_a_draft(draft):
    text, ours = reading()
    (prompt,) = text.encode(["to be or"])
    options = {"text": text, "max_tokens": 40, "temperature": 0.7, "seed": 2}
    plain = "".join(stream(ours, prompt, **options))
    assert plain == "".join(stream(ours, prompt, draft=ours if draft == "model" else draft, **options))
    assert len(plain) > 20


def test_a_draft_goes_to_the_last_position():
    ours = MODELS["gpt2"]
    expected = generate(ours, [[5, 3]], max_tokens=58)
    for draft in (ours, "lookup"):
        assert generate(ours, [[5, 3]], max_tokens=58, draft=draft)[0].tokens == expected[0].tokens
    short = model("alibi").train()
    assert generate(ours, [[5, 3]], max_tokens=58, draft=short)[0].tokens == expected[0].tokens
    assert short.training
    with pytest.raises(SaccadeError, match="do not fit into 59 positions"):
        generate(MODELS["alibi"], [[5, 3]], max_tokens=70, draft=ours)


def test_a_bad_source_is_told_at_once():
    scheduler = Scheduler(MODELS["transformer"])
    good = scheduler.submit([1], source=[5, 3], max_tokens=4)
    for source, why in (([99], "outside the vocabulary"), ([], "empty"), (None, "from a source")):
        with pytest.raises(SaccadeError, match=why):
            scheduler.submit([1], source=source, max_tokens=4)
        with pytest.raises(SaccadeError, match=why):
            scheduler.submit_beam([1], source=source, max_tokens=4, beam=2)
    with pytest.raises(SaccadeError, match="without sources"):
        Scheduler(MODELS["gpt2"]).submit([1], source=[3], max_tokens=4)
    scheduler.run()
    assert len(good.tokens) == 4


@pytest.mark.parametrize("shared", [17, 100, 331, 333, 335, 336, 399])
def test_prefixes_of_a_window_that_has_moved_on(shared):
    """What a windowed cache has forgotten cannot be gone back to: it is read again, and nothing else changes."""
    ours = MODELS["mistral"]
    history = [int(each) for each in torch.arange(400) * 7 % V]
    scheduler = Scheduler(ours, prefixes=2000)
    scheduler.submit(history, max_tokens=40)
    scheduler.run()
    prompt = [*history[:shared], 40, 2]
    request = scheduler.submit(prompt, max_tokens=6)
    scheduler.run()
    assert request.tokens == generate(ours, [prompt], max_tokens=6)[0].tokens


def test_a_stuck_request_leaves_a_true_prefix():
    text, ours = reading()
    (prompt,) = text.encode(["to be or not to be that is the question"])
    scheduler = Scheduler(ours, text=text, prefixes=500)
    stuck = scheduler.submit(prompt, max_tokens=9, min_tokens=8, constraint=matching("ab", text))
    pieces = []
    while scheduler.busy:
        pieces += [each.piece for each in scheduler.step()]
    assert (stuck.reason, stuck.text, "".join(pieces)) == ("stuck", "ab", "ab")
    after = scheduler.submit([*prompt, *stuck.tokens, 5, 6], max_tokens=9)
    scheduler.run()
    assert after.tokens == generate(ours, [[*prompt, *stuck.tokens, 5, 6]], max_tokens=9)[0].tokens


def test_ends_and_constraints_agree():
    text, ours = reading()
    (prompt,) = text.encode(["to be"])
    found = generate(ours, [prompt], max_tokens=9, constraint=matching("ab?", text), text=text)[0]
    assert found.finished
    assert found.text in ("a", "ab")
    with pytest.raises(SaccadeError, match="leave end out"):
        generate(ours, [prompt], max_tokens=9, end=7, constraint=matching("ab?", text))
    with pytest.raises(SaccadeError, match="another vocabulary"):
        generate(ours, [prompt], max_tokens=9, constraint=only([1], 7))
    with pytest.raises(SaccadeError, match="no option 'topk'"):
        generate(ours, [prompt], max_tokens=9, topk=7)


def test_a_table_that_is_filled_up_writes_only_what_the_text_knows():
    text, _ = reading()
    torch.manual_seed(0)
    ours = saccade.build(ModelConfig(**(CONFIGS["alibi"] | {"vocab": text.vocab + 500}))).double().eval()
    (prompt,) = text.encode(["to be"])
    found = generate(ours, [prompt], max_tokens=30, temperature=2.0, seed=1, text=text)[0]
    assert max(found.tokens) < text.vocab


def test_small_again_after_a_long_one():
    ours = MODELS["alibi"]
    scheduler = Scheduler(ours, prefixes=4000)
    long = scheduler.submit([1] * 900, max_tokens=2)
    made = [scheduler.submit([each, *range(20)], max_tokens=12) for each in range(20)]
    while long.reason is None:
        scheduler.step()
    scheduler.step()
    assert scheduler._state.caches[0].own._keys.shape[2] < 100
    scheduler.run()
    for request in made:
        assert request.tokens == generate(ours, [request.writer.prompt], max_tokens=12)[0].tokens
    assert all(state.caches[0].own._keys.shape[2] == len(tokens) for tokens, state in scheduler.prefixes._kept)
