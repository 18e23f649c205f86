"""Statistics and badges of heads whose weights are made up, so that the answer is known."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.look.statistic import Scene, Spots, sampled, statistics

T = 23
ROWS = torch.arange(T)


def below(T: int) -> torch.Tensor:
    return torch.ones(T, T, dtype=torch.bool).tril()


def scene(weights, may=None):
    T = len(weights)
    return Scene(weights.view(1, T, -1), torch.arange(T), below(T) if may is None else may, list(range(T)))


def shifted(by: int) -> torch.Tensor:
    weights = torch.zeros(T, T)
    weights[ROWS, (ROWS + by).clamp(min=0)] = 1.0
    return weights


def local() -> torch.Tensor:
    weights = torch.zeros(T, T)
    for row in range(T):
        weights[row, max(0, row - 2) : row + 1] = 1.0
    return weights / weights.sum(1, keepdim=True)


def first() -> torch.Tensor:
    weights = torch.zeros(T, T)
    weights[:, 0] = 1.0
    return weights


def uniform() -> torch.Tensor:
    weights = torch.ones(T, T).tril()
    return weights / weights.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("weights", "badge", "distance"),
    [
        (shifted(-1), "previous token", (T - 1) / T),
        (shifted(0), "diagonal", 0.0),
        (local(), "local", None),
        (first(), "first token", (T - 1) / 2),
        (uniform(), "uniform", (T - 1) / 4),
    ],
    ids=["previous", "diagonal", "local", "first", "uniform"],
)
def test_badges(weights, badge, distance):
    (found,) = statistics(scene(weights))
    assert found.badges == [badge]
    if distance is not None:
        assert found.distance == pytest.approx(distance)


def test_induction_looks_behind_the_last_time():
    tokens = [5, 7, 2, 3] * 6
    weights = torch.zeros(24, 24)
    rows = torch.arange(24)
    weights[rows, (rows - 3).clamp(min=0)] = 1.0  # behind the same token, four places ago
    (found,) = statistics(Scene(weights[None], rows, below(24), tokens))
    assert found.badges == ["induction"]
    (other,) = statistics(Scene(weights[None], rows, below(24), list(range(24))))
    assert other.badges == []  # nothing comes twice


def test_across_two_sequences_there_is_no_distance_but_a_diagonal():
    rows = torch.arange(11)
    weights = torch.zeros(2, 11, 22)
    weights[0, rows, rows * 2] = 1.0
    weights[1, rows, 21 - rows * 2] = 1.0
    straight, crossing = statistics(Scene(weights, rows, torch.ones(11, 22, dtype=torch.bool), None))
    assert (straight.distance, straight.badges) == (None, ["diagonal"])
    assert crossing.badges == []


@pytest.mark.parametrize("length", range(2, 16))
@pytest.mark.parametrize("causal", [True, False])
def test_even_looks_are_uniform_however_short(length, causal):
    may = below(length) if causal else torch.ones(length, length, dtype=torch.bool)
    (found,) = statistics(scene(may / may.sum(1, keepdim=True), may))
    assert found.badges == ["uniform"]
    drift = torch.ones(length, 7) / 7 + 1e-9 * torch.arange(length)[:, None] * torch.linspace(-1, 1, 7)
    (across,) = statistics(Scene(drift[None], torch.arange(length), torch.ones(length, 7, dtype=torch.bool), None))
    assert across.badges == ["uniform"]


def test_one_token_again_and_again_is_no_induction():
    (found,) = statistics(Scene(torch.eye(9)[None], torch.arange(9), below(9), [5] * 9))
    assert found.badges == ["diagonal"]


def test_weights_that_are_no_numbers_have_no_entropy():
    (found,) = statistics(scene(torch.full((T, T), torch.nan)))
    assert math.isnan(found.entropy)
    assert found.badges == []


def test_rows_that_look_at_nothing_do_not_hide_a_first_token():
    weights = torch.zeros(1, 11, 5)
    weights[0, :4, 0] = 1.0
    (found,) = statistics(Scene(weights, torch.arange(11), torch.ones(11, 5, dtype=torch.bool), None))
    assert found.badges == ["first token"]


def test_entropy_in_nats():
    (one,), (all_,) = (
        statistics(scene(shifted(0))),
        statistics(scene(torch.full((T, T), 1 / T), may=torch.ones(T, T, dtype=torch.bool))),
    )
    assert one.entropy == pytest.approx(0)
    assert all_.entropy == pytest.approx(math.log(T))


def test_weights_that_do_not_sum_to_one_are_measured_as_shares():
    (found,), (scaled,) = statistics(scene(uniform())), statistics(scene(uniform() * 7))
    assert scaled[:2] == pytest.approx(found[:2])
    assert scaled.badges == found.badges == ["uniform"]


def test_weights_below_0_are_looks_too():
    signs = torch.tensor([1.0, -1.0]).repeat(T)[:T]
    (found,), (signed,) = statistics(scene(local())), statistics(scene(local() * signs))
    assert signed == found
    (opposed,) = statistics(scene(torch.tensor([[1.0, -1.0]] * 2), may=torch.ones(2, 2, dtype=torch.bool)))
    assert opposed.entropy == pytest.approx(math.log(2))


def test_rows_that_look_at_nothing_count_for_nothing():
    weights = shifted(-1)
    weights[7:] = 0
    (found,) = statistics(scene(weights))
    assert found.badges == ["previous token"]
    (nothing,) = statistics(scene(torch.zeros(T, T)))
    assert nothing == (0.0, 0.0, [])


@given(st.integers(0, 1000), st.integers(1, 300))
def test_sampled_rows(T, most):
    rows = sampled(T, most).tolist()
    assert rows == sorted(set(rows))
    assert len(rows) == min(T, most)
    assert not T or rows[-1] == T - 1 or most == 1


@given(st.integers(0, 10_000))
def test_any_weights_have_finite_statistics(seed):
    torch.manual_seed(seed)
    weights = torch.rand(3, T, T).pow(torch.randint(1, 40, (3, 1, 1))).tril()
    for each in statistics(Scene(weights, ROWS, below(T), torch.randint(0, 5, (T,)).tolist())):
        assert 0 <= each.entropy <= math.log(T) + 1e-9
        assert 0 <= each.distance <= T


CELLS = torch.cartesian_prod(torch.arange(4), torch.arange(5))
PATCHES = Spots(torch.cat((torch.tensor([[-1, -1]]), CELLS)), {0: "class"})  # a class token and 4 x 5 patches


def over_picture(where, spots=PATCHES):
    """A head that looks evenly at the cells that `where(here, there)` allows; the class token looks at itself."""
    cells = spots.cells
    weights = torch.tensor([[float(where(a, b)) for b in cells.tolist()] for a in cells.tolist()])
    weights[0] = 0
    weights[0, 0] = 1.0
    T = len(cells)
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-9)
    (found,) = statistics(Scene(weights[None], torch.arange(T), torch.ones(T, T, dtype=torch.bool), [*range(T)], spots))
    return found


@pytest.mark.parametrize(
    ("where", "badge"),
    [
        (lambda a, b: a == b, "itself"),
        (lambda a, b: a[0] == b[0], "same row"),
        (lambda a, b: a[1] == b[1], "same column"),
        (lambda a, b: min(b) >= 0 and math.dist(a, b) < 1.5, "local"),
        (lambda a, b: b == [-1, -1], "class token"),
        (lambda a, b: True, "uniform"),
    ],
    ids=["itself", "row", "column", "local", "class", "uniform"],
)
def test_badges_on_a_picture(where, badge):
    assert over_picture(where).badges == [badge]


def test_distance_on_a_picture_is_euclidean_between_what_has_a_place():
    """Against loops, with a class token that takes half of every look and does not count."""
    found = over_picture(lambda a, b: True)
    wanted = [sum(math.dist(a, b) for b in CELLS.tolist()) / 20 for a in CELLS.tolist()]
    assert found.distance == pytest.approx(sum(wanted) / 20)
    assert over_picture(lambda a, b: a == b).distance == 0
    assert over_picture(lambda a, b: b == [-1, -1]).distance is None


def test_the_order_of_patches_does_not_matter():
    """The same head over patches in another order, where neighbours in the order are none on the picture."""
    order = torch.cat((torch.zeros(1, dtype=torch.long), 1 + torch.randperm(20, generator=torch.manual_seed(5))))
    for where in (lambda a, b: a[0] == b[0], lambda a, b: math.dist(a, b) < 1.5 and min(b) >= 0):
        one, other = over_picture(where), over_picture(where, Spots(PATCHES.cells[order], {0: "class"}))
        assert (one.badges, one.entropy) == (other.badges, pytest.approx(other.entropy))
        assert one.distance == pytest.approx(other.distance)


def test_words_that_look_at_patches_have_no_diagonal():
    rows = torch.arange(11)
    weights = torch.zeros(2, 11, 21)
    weights[0, rows, rows * 2 - (rows == 10).long()] = 1.0
    weights[1, :, 0] = 1.0
    scene = Scene(weights, rows, torch.ones(11, 21, dtype=torch.bool), None, PATCHES)
    assert [(each.distance, each.badges) for each in statistics(scene)] == [(None, []), (None, ["class token"])]
