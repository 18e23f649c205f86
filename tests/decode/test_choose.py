"""Choosing tokens: against a slow and plain definition, against `transformers`, and by counting what is drawn."""

from __future__ import annotations

import math

import pytest
import torch
from choices import choices
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor
from transformers import generation as hf

from saccade.decode import choose as room
from saccade.decode.choose import Writers, draw, top
from saccade.decode.writer import Choice, Writer
from saccade.error import SaccadeError

HALVES = torch.tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625]], dtype=torch.float64).log()


def one(logits: Tensor, prompt=(), written=(), **options) -> list[float]:
    """The distribution of a single row."""
    writer = Writer(Choice(**{"temperature": 1.0, **options}), prompt, logits.shape[-1])
    for token in written:
        writer.write(token)
    return Writers([writer]).probabilities(logits)[0].tolist()


def slow(logits: list[float], choice: Choice, prompt: list[int], written: list[int]) -> tuple[list[float], float]:
    """The definition with lists; and how near the sum of top_p came to p, where rounding decides."""
    scores = []
    for token, score in enumerate(logits):
        if token in prompt + written:
            score = score / choice.repetition_penalty if score > 0 else score * choice.repetition_penalty
        score -= choice.frequency_penalty * written.count(token) + choice.presence_penalty * (token in written)
        scores.append(score)
    ranked = sorted(range(len(scores)), key=lambda token: (-scores[token], token))
    if not choice.temperature:
        return [float(token == ranked[0]) for token in range(len(scores))], 1.0
    weights = [math.exp((score - max(scores)) / choice.temperature) for score in scores]
    if choice.top_k:
        ranked = ranked[: choice.top_k]
    margin = 1.0
    if choice.top_p < 1:
        total, reached, count = sum(weights[token] for token in ranked), 0.0, 0
        while count < len(ranked) and (not count or reached < choice.top_p):
            reached += weights[ranked[count]] / total
            margin = min(margin, abs(reached - choice.top_p))
            count += 1
        ranked = ranked[:count]
    kept = [token for token in ranked if weights[token] >= choice.min_p]
    total = sum(weights[token] for token in kept)
    return [weights[token] / total if token in kept else 0.0 for token in range(len(scores))], margin


@examples(200)
@given(
    choices,
    st.lists(
        st.sampled_from([-2.0, -0.75, 0.0, 0.5, 1.25, 3.0]) | st.integers(-6000, 6000).map(lambda n: n / 1000),
        min_size=7,
        max_size=7,
    ),
    st.lists(st.integers(0, 6), max_size=4),
    st.lists(st.integers(0, 6), max_size=6),
)
def test_probabilities_are_the_definition_with_ties_too(choice, logits, prompt, written):
    expected, margin = slow(logits, choice, prompt, written)
    assume(margin > 1e-9)
    writer = Writer(choice, prompt, 7)
    for token in written:
        writer.write(token)
    found = Writers([writer]).probabilities(torch.tensor([logits], dtype=torch.float64))
    assert found.dtype is torch.float64
    assert found[0].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("top_k", [0, 1, 7, 2000])
@pytest.mark.parametrize("top_p", [1.0, 0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("min_p", [0.0, 0.02, 0.6])
@pytest.mark.parametrize("sharp", [0.5, 3.0])
def test_probabilities_agree_with_transformers(top_k, top_p, min_p, sharp):
    """1,499 tokens: more than top_p looks at before it sorts all, and flat enough to need it."""
    generator = torch.Generator().manual_seed(11)
    logits = sharp * torch.randn(3, 1499, generator=generator, dtype=torch.float64)
    prompts = torch.randint(1499, (3, 13), generator=generator)
    processors = [hf.RepetitionPenaltyLogitsProcessor(1.3), hf.TemperatureLogitsWarper(0.7)]
    processors += [hf.TopKLogitsWarper(top_k)] if top_k else []
    processors += [hf.TopPLogitsWarper(top_p), hf.MinPLogitsWarper(min_p)]
    expected = hf.LogitsProcessorList(processors)(prompts, logits.clone()).softmax(-1)
    choice = Choice(temperature=0.7, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=1.3)
    found = Writers(Writer(choice, row, 1499) for row in prompts.tolist()).probabilities(logits)
    assert ((found > 0) == (expected > 0)).all()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15)


def test_each_option_by_hand():
    assert one(HALVES) == pytest.approx([0.5, 0.25, 0.125, 0.0625, 0.0625])
    assert one(HALVES, temperature=0.5) == pytest.approx([each / 86 for each in (64, 16, 4, 1, 1)])
    assert one(HALVES, temperature=0) == [1, 0, 0, 0, 0]
    assert one(HALVES, top_k=2) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    assert one(HALVES, top_k=5) == one(HALVES, top_k=99) == one(HALVES)
    assert one(HALVES, top_p=0.7) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    assert one(HALVES, top_p=0.76) == pytest.approx([4 / 7, 2 / 7, 1 / 7, 0, 0])
    assert one(HALVES, min_p=0.3) == pytest.approx([2 / 3, 1 / 3, 0, 0, 0])
    assert one(HALVES, top_k=2, top_p=0.6) == [1, 0, 0, 0, 0]  # 2/3 of what top_k left; of all it would be 1/2


def test_penalties_by_hand():
    logits = torch.tensor([[2.0, -1.0, 3.0, 0.5, 0.0]], dtype=torch.float64)
    options = {"prompt": [0, 1], "written": [2, 2, 1]}

    def expected(*scores):
        return pytest.approx(torch.tensor(scores, dtype=torch.float64).softmax(0).tolist())

    assert one(logits, **options, repetition_penalty=2.0) == expected(1.0, -2.0, 1.5, 0.5, 0.0)
    assert one(logits, **options, presence_penalty=0.5) == expected(2.0, -1.5, 2.5, 0.5, 0.0)
    assert one(logits, **options, frequency_penalty=0.5) == expected(2.0, -1.5, 2.0, 0.5, 0.0)
    assert one(logits, **options, repetition_penalty=2.0, presence_penalty=-1, frequency_penalty=0.25) == expected(
        1.0, -1.25, 2.0, 0.5, 0.0
    )
    assert one(logits, **options, temperature=0, repetition_penalty=2.0) == [0, 0, 1, 0, 0]
    assert one(logits, **options, temperature=0, frequency_penalty=1.0) == [1, 0, 0, 0, 0]


def test_of_equally_likely_tokens_the_first_is_the_likelier():
    flat = torch.zeros(1, 6)
    assert one(flat, top_k=2) == [0.5, 0.5, 0, 0, 0, 0]
    assert one(flat, top_p=0.5) == pytest.approx([1 / 3] * 3 + [0] * 3)
    assert one(flat, top_p=0) == one(flat, top_k=1) == one(flat, temperature=0) == [1, 0, 0, 0, 0, 0]
    assert one(flat, min_p=1) == pytest.approx([1 / 6] * 6)
    level = torch.tensor([[0.0, 1.0, 0.0, 1.0, 0.0]])
    assert one(level, top_k=3)[1:] == [one(level, top_k=3)[1], 0, one(level, top_k=3)[1], 0]
    assert one(level, top_k=3)[0] > 0


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-5, 100])
def test_temperatures_at_the_edge(temperature):
    found = one(torch.tensor([[3.0, -7.0, 3.5, -torch.inf]]), temperature=temperature)
    assert found[3] == 0
    assert sum(found) == pytest.approx(1)
    assert found[2] == pytest.approx(1 if temperature < 1 else 0.345, abs=1e-2)


def test_a_vocabulary_of_one_token():
    writers = Writers([Writer(Choice(temperature=1, top_k=3, top_p=0.5, min_p=0.5, repetition_penalty=2), [0], 1)])
    tokens, logprobs = writers.choose(torch.tensor([[-4.0]]))
    assert (tokens.tolist(), logprobs.tolist()) == ([0], [0.0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.6},
        {"temperature": 2, "top_k": 5},
        {"top_p": 0.8},
        {"temperature": 1.5, "min_p": 0.2},
        {"temperature": 1.3, "top_k": 9, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.4},
    ],
)
@pytest.mark.parametrize("way", ["many seeds", "one seed"])
def test_what_is_drawn_has_the_distribution(options, way):
    """Chi-square: the frequencies of 3,000 draws against the probabilities, over rows and along one row."""
    V, draws = 11, 3000
    logits = 1.5 * torch.randn(1, V, generator=torch.Generator().manual_seed(5))
    choice = [Choice(**{"temperature": 1.0, **options}, seed=seed) for seed in range(draws)]
    first = Writer(choice[0], [1, 2], V)
    probabilities = Writers([first]).probabilities(logits)
    if way == "many seeds":
        writers = Writers(Writer(each, [1, 2], V) for each in choice)
        tokens, _ = writers.choose(logits.expand(draws, V))
    else:
        uniforms = torch.tensor([first.uniform(t) for t in range(draws)], dtype=torch.float64)
        tokens = draw(probabilities.expand(draws, V), uniforms)
    expected = draws * probabilities[0]
    counts = tokens.bincount(minlength=V)
    assert counts[expected == 0].sum() == 0
    counts, expected = counts[expected > 0], expected[expected > 0]
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = torch.tensor((len(expected) - 1) / 2, dtype=torch.float64)
    assert torch.special.gammaincc(freedom, statistic / 2) > 1e-3
    spoiled = expected.roll(1)
    assert torch.special.gammaincc(freedom, ((counts - spoiled) ** 2 / spoiled).sum() / 2) < 1e-9


@given(st.lists(st.sampled_from([0.0, 0.0, 1.0, 0.3, 1e-300]), min_size=2, max_size=9), st.data())
def test_a_token_without_weight_is_never_drawn(weights, data):
    assume(any(weights))
    edges = st.sampled_from([0.0, 2.0**-53, 0.5, 1 - 2.0**-53])
    uniform = data.draw(edges | st.floats(0, 1, exclude_max=True))
    (token,) = draw(torch.tensor([weights], dtype=torch.float64), torch.tensor([uniform], dtype=torch.float64))
    assert weights[token] > 0


def test_token_t_is_drawn_with_the_uniform_number_t():
    writer = Writer(Choice(temperature=1, seed=7), [3], 16)
    writers = Writers([writer])
    for _ in range(100):
        writer.write(int(writers.choose(torch.zeros(1, 16))[0]))
    assert writer.written == [int(16 * writer.uniform(t)) for t in range(100)]
    assert len(set(writer.written)) > 10


@given(st.integers(1, 5), st.integers(0, 2**31), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_greedy_is_argmax_and_the_log_probability_the_models_own(N, seed, dtype):
    logits = (3 * torch.randn(N, 17, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)
    tokens, logprobs = Writers(Writer(Choice(), [1], 17) for _ in range(N)).choose(logits)
    assert tokens.tolist() == logits.argmax(-1).tolist()
    assert logprobs.dtype is (torch.float64 if dtype is torch.float64 else torch.float32)
    expected = logits.double().log_softmax(-1).amax(-1)
    torch.testing.assert_close(logprobs.double(), expected, rtol=1e-5, atol=1e-5)


@given(st.lists(choices, min_size=1, max_size=4), st.booleans())
def test_log_probabilities_are_of_the_logits_as_they_came(asked, bound):
    logits = torch.randn(len(asked), 13, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    before, writers = logits.clone(), Writers(Writer(choice, [0, 1], 13) for choice in asked)
    tokens, logprobs = writers.choose(logits, forbidden=[[3]] * len(asked) if bound else None)
    assert logprobs.tolist() == logits.log_softmax(-1).gather(1, tokens.unsqueeze(1)).squeeze(1).tolist()
    assert (logits == before).all()
    assert (writers.choose(logits, forbidden=[[3]] * len(asked) if bound else None)[0] == tokens).all()


def test_top_gives_the_likeliest_with_the_models_own_log_probabilities():
    tokens, logprobs = top(torch.cat((HALVES, HALVES.flip(1))), 3)
    assert tokens.tolist() == [[0, 1, 2], [4, 3, 2]]
    assert logprobs.exp().tolist() == [pytest.approx([0.5, 0.25, 0.125])] * 2
    assert top(HALVES.bfloat16(), 5)[1].dtype is torch.float32
    for wrong in (0, 6, True, 2.0):
        with pytest.raises(SaccadeError, match="n is a whole number from 1 to 5"):
            top(HALVES, wrong)
    with pytest.raises(SaccadeError, match="NaN for the next token"):
        top(HALVES * torch.nan, 2)


def test_inside_and_outside_of_inference_mode():
    writers = Writers([Writer(Choice(temperature=1, top_k=3, repetition_penalty=1.5, seed=1), [0], 5)])
    with torch.inference_mode():
        inside = writers.choose(HALVES.float())
        writers.rows[0].write(3)
    writers.rows[0].rewind(0)
    logits = HALVES.float().requires_grad_()
    outside = writers.choose(logits)
    assert [each.tolist() for each in inside] == [each.tolist() for each in outside]
    assert not outside[1].requires_grad
    assert not writers.probabilities(logits).requires_grad


@examples(60)
@given(V=st.sampled_from([2048, 2049, 2500, 5000]), seed=st.integers(0, 99), level=st.sampled_from([None, 3]))
def test_the_largest_of_blocks_is_the_largest(V, seed, level):
    """The first of equal ones, wherever they stand, as torch's own."""
    scores = torch.randn(3, V, generator=torch.Generator().manual_seed(seed))
    scores = scores if level is None else scores.mul(level).round()
    scores[1, V - 1 - seed % 60 :] = scores.max() + seed % 2
    values, tokens = room._max(scores)
    assert torch.equal(values, scores.amax(-1))
    assert tokens.tolist() == [row.index(max(row)) for row in scores.tolist()]
    scores[2, seed] = torch.nan
    assert room._max(scores)[0].isnan().tolist() == [False, False, True]
