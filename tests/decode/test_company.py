"""Rows in company: what a row writes is its own, whatever stands beside it, joins, leaves or is not allowed."""

from __future__ import annotations

import pytest
import torch
from choices import choices
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.decode import choose as room
from saccade.decode.choose import Writers
from saccade.decode.writer import Choice, Writer
from saccade.error import SaccadeError

HALVES = torch.tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625]], dtype=torch.float64).log()


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


@examples(40)
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


@examples(25)
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
