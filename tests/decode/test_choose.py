"""Choosing tokens: against a slow and plain definition, against `transformers`, and by counting what is drawn."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given, settings
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


choices = st.builds(
    Choice,
    temperature=st.sampled_from([0.0, 0.25, 0.7, 1.0, 3]),
    top_k=st.sampled_from([0, 0, 1, 2, 5, 100]),
    top_p=st.sampled_from([1.0, 1, 0.0, 0.33, 0.91]),
    min_p=st.sampled_from([0.0, 0.0, 0.03, 0.21, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 0.8, 1.7]),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.9, -1.1]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 0.4, -0.3]),
    seed=st.integers(-(2**63), 2**63 - 1),
)


# What the distribution is


@settings(deadline=None, max_examples=200)
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


# How tokens are drawn from it


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


@settings(deadline=None)
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


# Rows and their neighbours


class Table:
    """Logits that depend on all that a row has seen."""

    def __init__(self, vocab: int, dtype: torch.dtype) -> None:
        self.rows = 2 * torch.randn(97, vocab, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        self.rows = self.rows.to(dtype)

    def __call__(self, writers: list[Writer]) -> Tensor:
        places = []
        for writer in writers:
            place = 0
            for token in writer.prompt + writer.written:
                place = (31 * place + token + 7) % 97
            places.append(place)
        return self.rows[places]


def alone(table: Table, choice: Choice, prompt: list[int], steps: int) -> list[int]:
    writer = Writer(choice, prompt, 13)
    for _ in range(steps):
        tokens, _ = Writers([writer]).choose(table([writer]))
        writer.write(int(tokens))
    return writer.written


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(choices, st.lists(st.integers(0, 12), min_size=1, max_size=3)), min_size=1, max_size=6),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    st.sampled_from([1, 2**17]),
    st.randoms(use_true_random=False),
)
def test_a_row_writes_the_same_whatever_its_neighbours(requests, dtype, cached, random):
    """Rows join, leave and change places at random; groups of one row and of many."""
    table, going = Table(13, dtype), Writers()
    waiting = [Writer(choice, prompt, 13) for choice, prompt in requests]
    everybody, before = list(waiting), room.CACHED
    room.CACHED = cached
    try:
        for _ in range(9):
            if waiting and random.random() < 0.5:
                going.add(waiting.pop())
            kept = [each for each in range(len(going.rows)) if random.random() < 0.9]
            random.shuffle(kept)
            if random.random() < 0.4:
                going.keep(kept)
            tokens, _ = going.choose(table(going.rows))
            for writer, token in zip(going.rows, tokens.tolist(), strict=True):
                writer.write(token)
    finally:
        room.CACHED = before
    for writer, (choice, prompt) in zip(everybody, requests, strict=True):
        assert writer.written == alone(table, choice, prompt, len(writer.written))


@settings(deadline=None, max_examples=25)
@given(choices, st.integers(0, 9))
def test_a_row_that_was_rewound_writes_the_same_again(choice, length):
    table, writer = Table(13, torch.float32), Writer(choice, [5, 2, 5], 13)
    writers = Writers([writer])

    def write(until: int) -> list[int]:
        while len(writer.written) < until:
            writer.write(int(writers.choose(table([writer]))[0]))
        return list(writer.written)

    first = write(9)
    writer.rewind(length)
    assert writer.written == first[:length]
    assert write(9) == first
    for wrong in (-1, 10):
        with pytest.raises(SaccadeError, match=f"9 tokens are written: they cannot be rewound to {wrong}"):
            writer.rewind(wrong)


def test_a_long_row_outgrows_its_tally():
    writer = Writer(Choice(frequency_penalty=1.0), [0], 997)
    for token in range(500):
        writer.write(token)
    assert int(Writers([writer]).choose(torch.zeros(1, 997))[0]) == 500


def test_rows_join_leave_and_change_places():
    writers = Writers(Writer(Choice(frequency_penalty=2), [], 3) for _ in range(3))
    for writer, token in zip(writers.rows, (0, 1, 2), strict=True):
        writer.write(token)
    first, second, third = writers.rows
    logits = torch.tensor([[1.0, 1.1, 1.2]])
    assert writers.choose(logits.expand(3, 3))[0].tolist() == [2, 2, 1]
    writers.keep([2, 0])
    assert writers.rows == [third, first]
    assert writers.choose(logits.expand(2, 3))[0].tolist() == [1, 2]
    writers.add(second)
    second.write(2)
    assert writers.choose(logits.expand(3, 3))[0].tolist() == [1, 2, 0]
    writers.keep([])
    assert [each.tolist() for each in writers.choose(torch.zeros(0, 3))] == [[], []]
    assert writers.probabilities(torch.zeros(0, 3)).shape == (0, 3)


def test_rows_refuse_what_cannot_be():
    writers = Writers(Writer(Choice(), [], 3) for _ in range(2))
    for wrong in ([0, 0], [2], [-1]):
        with pytest.raises(SaccadeError, match="of 2 rows each may be kept once"):
            writers.keep(wrong)
    with pytest.raises(SaccadeError, match="has a row already"):
        writers.add(writers.rows[0])
    with pytest.raises(SaccadeError, match="a writer of 5 tokens cannot join writers of 3"):
        writers.add(Writer(Choice(), [], 5))
    with pytest.raises(SaccadeError, match=r"the prompt has the token 3: tokens are 0 \.\.\. 2"):
        Writer(Choice(), [1, 3], 3)
    for shape in ((2, 5), (3, 3), (2, 1, 3)):
        with pytest.raises(SaccadeError, match=r"logits \(2, 3\); got"):
            writers.choose(torch.zeros(shape))


# The likeliest token, and what is told of it


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**31), st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_greedy_is_argmax_and_the_log_probability_the_models_own(N, seed, dtype):
    logits = (3 * torch.randn(N, 17, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)
    tokens, logprobs = Writers(Writer(Choice(), [1], 17) for _ in range(N)).choose(logits)
    assert tokens.tolist() == logits.argmax(-1).tolist()
    assert logprobs.dtype is (torch.float64 if dtype is torch.float64 else torch.float32)
    expected = logits.double().log_softmax(-1).amax(-1)
    torch.testing.assert_close(logprobs.double(), expected, rtol=1e-5, atol=1e-5)


@settings(deadline=None)
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


# What is not allowed


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_row_keeps_to_what_is_allowed_and_its_neighbour_does_not_notice(temperature):
    choice = Choice(temperature=temperature, top_k=2)
    writers, logits = Writers(Writer(choice, [], 5) for _ in range(3)), HALVES.expand(3, 5)
    mask = torch.tensor([False, False, True, False, True])
    found = writers.probabilities(logits, allowed=[mask, None, mask], forbidden=[(), [0], {2}]).tolist()
    if temperature:
        assert found[0] == pytest.approx([0, 0, 2 / 3, 0, 1 / 3])
        assert found[1] == pytest.approx([0, 2 / 3, 1 / 3, 0, 0])
    else:
        assert found[:2] == [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0]]
    assert found[2] == [0, 0, 0, 0, 1]
    tokens, logprobs = writers.choose(logits, allowed=[mask, None, mask], forbidden=[(), [0], {2}])
    assert all(found[row][token] > 0 for row, token in enumerate(tokens.tolist()))
    assert logprobs.tolist() == pytest.approx([HALVES[0, token].item() for token in tokens.tolist()])
    free = writers.probabilities(logits, allowed=[None] * 3, forbidden=[()] * 3)
    assert (free == writers.probabilities(logits)).all()


@pytest.mark.parametrize("options", [{}, {"temperature": 1}, {"repetition_penalty": 2.0}])
def test_nothing_left_and_broken_numbers_are_refused(options):
    writers = Writers([Writer(Choice(), [1], 3), Writer(Choice(**options), [1], 3)])
    logits = torch.tensor([[1.0, 2.0, 3.0]]).repeat(2, 1)
    nothing, broken = "the model gives no token a probability", "the model gives NaN for the next token"
    for ask in (writers.choose, writers.probabilities):
        with pytest.raises(SaccadeError, match=nothing):
            ask(logits, allowed=[None, torch.zeros(3, dtype=torch.bool)])
        with pytest.raises(SaccadeError, match=nothing):
            ask(logits, allowed=[None, torch.arange(3) < 2], forbidden=[(), (0, 1)])
        with pytest.raises(SaccadeError, match=nothing):
            ask(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, -torch.inf]]), forbidden=[(), (0, 1)])
        for value in (torch.nan, torch.inf):
            spoiled = logits.clone()
            spoiled[1, 2] = value
            with pytest.raises(SaccadeError, match=broken):
                ask(spoiled)
        spoiled[1, 2] = torch.nan
        with pytest.raises(SaccadeError, match=broken):
            ask(spoiled, forbidden=[(), [2]])


def test_constraints_that_cannot_be_are_refused():
    writers = Writers(Writer(Choice(), [], 3) for _ in range(2))
    logits = torch.zeros(2, 3)
    with pytest.raises(SaccadeError, match="allowed has 1 entries for 2 rows"):
        writers.choose(logits, allowed=[None])
    with pytest.raises(SaccadeError, match="forbidden has 3 entries for 2 rows"):
        writers.choose(logits, forbidden=[(), (), ()])
    for wrong in (torch.ones(4, dtype=torch.bool), torch.ones(3), torch.ones(1, 3, dtype=torch.bool)):
        with pytest.raises(SaccadeError, match=r"allowed is a bool tensor \(3,\); got"):
            writers.choose(logits, allowed=[None, wrong])
    for wrong in (3, -1):
        with pytest.raises(SaccadeError, match=f"the token {wrong} cannot be forbidden"):
            writers.choose(logits, forbidden=[(), [wrong]])


@settings(max_examples=60, deadline=None)
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
