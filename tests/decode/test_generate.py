"""`generate`: batches are as if alone, models stay as they were, and what is refused."""

from __future__ import annotations

import pytest
import torch
from texts import texts
from torch import Tensor, nn

import saccade
from saccade import ModelConfig, SaccadeError
from saccade.decode.generate import generate
from saccade.decode.sequence import Sequence
from saccade.decode.step import ModelStepper
from saccade.look.watch import Watch

V = 23
SMALL = {"vocab": V, "width": 15, "heads": 3, "hidden": 17, "decoder": 2, "tie": False, "head": "vocabulary"}
CONFIGS = {
    "gpt2": SMALL | {"position": "learned(29)", "offset": 2},
    "llama": SMALL | {"width": 24, "heads": 6, "kv_heads": 2, "norm": "rms", "feed": "swiglu", "position": "rotary"},
    "strange": SMALL | {"position": "relative(3)", "pattern": "lg", "masks": {"l": "window(3)", "g": "everyone"}},
    "t5": SMALL | {"encoder": 2, "norm": "rms", "position": "t5(8, 16)", "share_position": True},
    "transformer": SMALL | {"encoder": 2, "order": "post", "position": "sinusoid", "dropout": 0.3},
}
PROMPTS = [[5, 3, 7, 1, 2], [4], [9, 9, 6], [1, 2, 3], [11, 12, 13, 14, 15, 16, 17], [8, 0], [6]]
SOURCES = [[3, 1], [5, 5, 9, 13, 2, 2], [7], [19, 4, 4], [1, 2, 3, 4, 5], [22, 21, 20], [0, 0]]


def model(name: str, **changes) -> saccade.Model:
    torch.manual_seed(0)
    made = saccade.build(ModelConfig(**(CONFIGS[name] | changes))).double().eval()
    for weight in made.parameters():
        if weight.dim() > 1:  # norms stay, so that what is written varies
            nn.init.normal_(weight, std=0.6)
    return made


def alone(ours: saccade.Model, prompt: list[int], source: list[int] | None, steps: int, end: int) -> Sequence:
    """Greedy by the whole model, one prompt, no cache, no padding."""
    tokens, total = list(prompt), 0.0
    before = () if source is None else (torch.tensor([source]),)
    for _ in range(steps):
        with torch.no_grad():
            logprob, token = ours(*before, torch.tensor([tokens]))[0, -1].log_softmax(-1).max(-1)
        total += float(logprob)
        if int(token) == end:
            return Sequence(tokens[len(prompt) :], total, True)
        tokens.append(int(token))
    return Sequence(tokens[len(prompt) :], total, False)


def common_end(ours: saccade.Model, sources: list[list[int]] | None) -> int:
    """A token that some sequences write soon, some late and some never."""
    every = [each.tokens for each in generate(ours, PROMPTS, sources=sources, max_tokens=11)]
    counts = {token: sum(token in each for each in every) for row in every for token in row}
    return min(counts, key=lambda token: abs(counts[token] - len(PROMPTS) / 2))


@pytest.mark.parametrize("name", CONFIGS)
def test_greedy_in_a_batch_is_alone(name):
    ours = model(name)
    sources = SOURCES if ours.encoder is not None else None
    end = common_end(ours, sources)
    found = generate(ours, PROMPTS, sources=sources, max_tokens=11, end=end)
    for number, (each, prompt) in enumerate(zip(found, PROMPTS, strict=True)):
        expected = alone(ours, prompt, None if sources is None else sources[number], 11, end)
        assert (each.tokens, each.finished) == (expected.tokens, expected.finished)
        assert each.logprob == pytest.approx(expected.logprob, abs=1e-9)
    assert {each.finished for each in found} == {True, False}


@pytest.mark.parametrize("name", CONFIGS)
def test_beams_in_a_batch_are_alone(name):
    ours = model(name)
    sources = SOURCES if ours.encoder is not None else None
    options = {"max_tokens": 9, "end": common_end(ours, sources), "beam": 3, "n": 2}
    together = generate(ours, PROMPTS, sources=sources, **options)
    for number, prompt in enumerate(PROMPTS):
        (one,) = generate(ours, [prompt], sources=None if sources is None else [sources[number]], **options)
        assert [each.tokens for each in together[number]] == [each.tokens for each in one]
        assert [each.logprob for each in together[number]] == pytest.approx([each.logprob for each in one], abs=1e-9)


class Counted(ModelStepper):
    """Keeps how many rows each step had."""

    def step(self, tokens, state):
        self.rows = [*getattr(self, "rows", []), len(tokens)]
        return super().step(tokens, state)


def test_finished_rows_leave_the_batch():
    stepper = Counted(model("gpt2"))
    found = generate(stepper, PROMPTS, max_tokens=11, end=common_end(stepper.model, None))
    steps = [len(each.tokens) for each in found]
    assert sum(stepper.rows) < len(stepper.rows) * len(PROMPTS)
    assert all(rows >= sum(length > number for length in steps) for number, rows in enumerate(stepper.rows, 1))


def test_ends_are_left_out_and_min_tokens_kept():
    ours = model("gpt2")
    first = generate(ours, PROMPTS, max_tokens=1)
    end = first[0].tokens[0]
    assert generate(ours, PROMPTS, max_tokens=1, end=end)[0].tokens == []
    for beam in (1, 3):
        found = generate(ours, PROMPTS, max_tokens=7, min_tokens=5, end=end, beam=beam)
        assert all(len(each.tokens) >= 5 and end not in each.tokens for each in found)
        found = generate(ours, PROMPTS, max_tokens=5, min_tokens=5, end=end, beam=beam)
        assert all(len(each.tokens) == 5 and not each.finished for each in found)


def test_the_model_stays_as_it_was():
    ours = model("transformer").train()
    ours.decoder.blocks[1].eval()
    before = [module.training for module in ours.modules()]
    twice = [generate(ours, sources=SOURCES, begin=1, max_tokens=7, beam=2) for _ in range(2)]
    assert twice[0] == twice[1]  # no dropout
    assert [module.training for module in ours.modules()] == before
    with pytest.raises(SaccadeError):
        generate(ours, sources=[[V]], begin=1, max_tokens=7)
    assert [module.training for module in ours.modules()] == before
    ours(torch.tensor([[1, 2]]), torch.tensor([[3, 4]])).sum().backward()


class Copied(ModelStepper):
    """Keeps a copy of the weights that the last layer had at each step."""

    def __init__(self, ours: saccade.Model, seen: Watch) -> None:
        super().__init__(ours)
        self.seen, self.copies = seen, []

    def parts(self, tokens, state):
        found = list(super().parts(tokens, state))
        self.copies.append(self.seen.weights(OWN))
        return iter(found)


OWN = "decoder.blocks.1.attention"


@pytest.mark.parametrize("name", ["gpt2", "t5"])
def test_watching_changes_nothing_and_outlives_reordering(name):
    ours = model(name)
    options = {"sources": SOURCES if ours.encoder is not None else None, "max_tokens": 7, "beam": 3}
    plain = generate(ours, PROMPTS, **options)
    with saccade.watch(ours) as seen:
        stepper = Copied(ours, seen)
        assert generate(stepper, PROMPTS, **options) == plain
    assert len(stepper.copies) == 6
    for call, copy in enumerate(stepper.copies, 1):
        assert torch.equal(seen.weights(OWN, call=call), copy)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", ["llama", "t5"])
def test_a_reordered_state_goes_on_from_other_rows(name, gradient):
    ours, rows = model(name), torch.tensor([2, 0, 0, 1, 2])
    source = torch.tensor([[3, 1, 0], [5, 5, 9], [7, 2, 0]])
    lengths = torch.tensor([2, 3, 2])
    tokens, after = torch.tensor([[5, 3], [4, 4], [9, 6]]), torch.tensor([[1], [2], [3], [4], [5]])

    def stepped(chosen: Tensor | None) -> Tensor:
        given = texts(source, lengths) if chosen is None else texts(source[chosen], lengths[chosen])
        state = ours.start(None if ours.encoder is None else given)
        sizes = torch.tensor([1, 2, 2]) if chosen is None else torch.tensor([1, 2, 2])[chosen]
        ours.decode_step(tokens if chosen is None else tokens[chosen], state, padding=saccade.padding(sizes, "left"))
        if chosen is None:
            state.reorder(rows)
        return ours.decode_step(after, state)

    with torch.set_grad_enabled(gradient):
        torch.testing.assert_close(stepped(None), stepped(rows), rtol=1e-9, atol=1e-9)


def test_beams_of_one_source_share_their_context():
    ours = model("t5")
    state = ours.start(torch.tensor([[3, 1], [5, 9]]))
    context = state.context
    state.reorder(torch.tensor([0, 0, 1, 1]))
    state.reorder(torch.tensor([1, 0, 3, 3]))
    assert state.context is context
    state.reorder(torch.tensor([2, 3]))
    assert torch.equal(state.context, context[1:])
    state.reorder(torch.tensor([0, 1, 0]))
    state.join(state.take(torch.tensor([1])))
    assert torch.equal(state.context, context[[1, 1, 1, 1]])


@pytest.mark.parametrize("name", ["t5", "transformer"])
def test_a_watched_beam_tells_what_each_row_looked_at(name):
    """Rows of one source ask it as one; what was seen is told apart, as if each had asked alone."""
    ours, rows = model(name), torch.tensor([0, 0, 0, 1, 1, 1])
    source, lengths = torch.tensor([[3, 1, 0], [5, 9, 4]]), torch.tensor([2, 3])
    tokens = torch.tensor([[1], [2], [3], [4], [5], [6]])
    cross, found = "decoder.blocks.1.cross", []
    for shared in (True, False):
        with saccade.watch(ours) as seen, torch.no_grad():
            stepper = ModelStepper(ours)
            some = slice(None) if shared else rows
            sources = [each[:n].tolist() for each, n in zip(source[some], lengths[some], strict=True)]
            state, _ = stepper.start([[1]] * len(sources), sources)
            stepper.reorder(state, rows if shared else torch.arange(6))
            stepper.step(tokens, state)
            found.append(seen.weights(cross))
    assert found[0].shape == (6, 3, 1, 3)
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


def test_nothing_in_nothing_out():
    assert generate(model("gpt2"), [], max_tokens=3) == []


def broken() -> saccade.Model:
    made = model("gpt2")
    made.head.weight.data[3] = torch.nan
    return made


GPT2 = {"model": lambda: model("gpt2"), "prompts": [[1, 2], [3]], "max_tokens": 3}
BOTH = {"model": lambda: model("t5"), "sources": [[1, 2], [3]], "begin": 1, "max_tokens": 3}
WRONG = {
    "an empty prompt": (GPT2 | {"prompts": [[1], []]}, "prompt 1 is empty"),
    "a long prompt": (GPT2 | {"prompts": [[1] * 28]}, "prompt 0 has 28 tokens, the position table 27: shorten it"),
    "too many tokens": (GPT2 | {"max_tokens": 27}, "do not fit into 27 positions: give max_tokens = 26 at most"),
    "an unknown token": (GPT2 | {"prompts": [[1], [2, V]]}, "prompt 1 has the token 23, outside the vocabulary"),
    "a negative token": (GPT2 | {"prompts": [[-1]]}, "token -1"),
    "one list": (GPT2 | {"prompts": [1, 2]}, "prompts are lists of tokens"),
    "no beam": (GPT2 | {"beam": 0}, "beam is a whole number from 1; got 0"),
    "n above the beam": (GPT2 | {"beam": 2, "n": 3}, "a beam of 2 cannot give the n = 3 best"),
    "n": (GPT2 | {"n": 0}, "n is a whole number from 1"),
    "no tokens": (GPT2 | {"max_tokens": 0}, "max_tokens is a whole number from 1"),
    "min above max": (GPT2 | {"min_tokens": 4}, "min_tokens = 4 is more than max_tokens = 3"),
    "an end outside": (GPT2 | {"end": V}, r"end is a token of the vocabulary, 0 \.\.\. 22; got 23"),
    "a negative penalty": (GPT2 | {"beam": 2, "length_penalty": -1.0}, "length_penalty is a number from 0"),
    "a negative reward": (GPT2 | {"beam": 2, "length_reward": -0.1}, "length_reward is a number from 0"),
    "sources for a decoder": (GPT2 | {"sources": [[1], [2]]}, "no encoder"),
    "no prompts": (GPT2 | {"prompts": None}, "goes on from prompts"),
    "no sources": (BOTH | {"sources": None, "begin": None, "prompts": [[1]]}, "writes from a source"),
    "no begin": (BOTH | {"begin": None}, r"the token that begins \(begin=\)"),
    "begin and prompts": (BOTH | {"prompts": [[1], [2]]}, "begin stands in place of prompts"),
    "too few sources": (BOTH | {"prompts": [[1], [2], [3]], "begin": None}, "3 prompts and 2 sources"),
    "an empty source": (BOTH | {"sources": [[1], []]}, "source 1 is empty"),
    "no head": (GPT2 | {"model": lambda: model("gpt2", head=None)}, "needs head = 'vocabulary'"),
    "an encoder": (GPT2 | {"model": lambda: model("t5", decoder=0)}, "no decoder"),
    "no model": (GPT2 | {"model": dict}, "dict is neither"),
    "broken weights": (GPT2 | {"model": broken}, "NaN for the next token"),
    "broken weights in a beam": (GPT2 | {"model": broken, "beam": 2}, "NaN for the next token"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_is_told_in_one_sentence(what):
    options, why = WRONG[what]
    options = dict(options)
    with pytest.raises(SaccadeError, match=why) as problem:
        generate(options.pop("model")(), options.pop("prompts", None), **options)
    assert "\n" not in str(problem.value)
