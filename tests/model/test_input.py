"""`Input`: its parts, and several as one."""

from __future__ import annotations

import pytest
import torch

from saccade import Input, SaccadeError
from saccade.model.input import as_input, stack


def words(*rows: list[int]) -> Input:
    return Input({"tokens": torch.tensor(rows)})


def test_it_says_what_it_holds():
    made = Input({"tokens": torch.zeros(3, 5, dtype=torch.long)}, [5, 2, 4])
    assert (made.rows, made.device.type, made.side) == (3, "cpu", "right")
    assert made.padding(5)[:, 0, 0].sum(-1).tolist() == [5, 2, 4]
    assert words([1, 2]).padding is None
    assert as_input(made) is made
    assert as_input(torch.tensor([[1, 2]])).values["tokens"].tolist() == [[1, 2]]


@pytest.mark.parametrize("given", [torch.tensor([5, 2]), [5, 2], (torch.tensor([5, 2]),)], ids=str)
def test_lengths_of_one_axis(given):
    made = Input({"tokens": torch.zeros(2, 5, dtype=torch.long)}, given)
    assert [each.tolist() for each in made.lengths] == [[5, 2]]
    assert Input(made.values, None).lengths == ()


def test_the_same_rows_again():
    lengths, places = (torch.tensor([2, 3]), torch.ones(2, 3, dtype=torch.long)), torch.arange(12).view(2, 3, 2)
    made = Input({"a": torch.arange(18).view(2, 3, 3), "b": torch.arange(2)}, lengths, places)
    double = made.twice()
    assert double.rows == 4
    for before, after in (
        (made.values["a"], double.values["a"]),
        (places, double.places),
        (lengths[1], double.lengths[1]),
    ):
        assert torch.equal(after, torch.cat((before, before)))
    alike = Input({"a": torch.zeros(2, 7, 3)}, places=torch.arange(7))
    assert alike.twice().places is alike.places
    assert made.to("meta").device.type == "meta"


def test_places_on_two_axes_have_rows():
    pixels = torch.zeros(4, 3, 8, 8)
    assert Input({"pixels": pixels}, places=torch.zeros(4, 2)).places.shape == (1, 4, 2)
    assert Input({"pixels": pixels}, places=torch.zeros(4, 9, 2)).places.shape == (4, 9, 2)
    assert Input({"tokens": torch.zeros(4, 2)}, places=torch.zeros(4, 2)).places.shape == (4, 2), "two tokens a row"


def test_several_as_one():
    made = stack([words([1, 2, 3]), words([4]), Input({"tokens": torch.tensor([[5, 6], [7, 0]])}, [2, 1])])
    assert made.values["tokens"].tolist() == [[1, 2, 3], [4, 0, 0], [5, 6, 0], [7, 0, 0]]
    assert made.lengths[0].tolist() == [3, 1, 2, 1]
    full = stack([words([1, 2]), words([3, 4])])
    assert (full.values["tokens"].tolist(), full.lengths) == ([[1, 2], [3, 4]], ())
    one = words([1])
    assert stack([one]) is one


def test_dense_values_lie_beside_ragged_ones():
    rows = [
        Input({"pixels": torch.full((1, 3, 2, 2), float(n)), "tokens": torch.full((1, n), n), "n": torch.tensor([n])})
        for n in (2, 4)
    ]
    made = stack(rows)
    assert made.values["pixels"].shape == (2, 3, 2, 2)
    assert made.values["tokens"].tolist() == [[2, 2, 0, 0], [4, 4, 4, 4]]
    assert made.lengths[0].tolist() == [2, 4]
    assert stack([Input({"n": torch.tensor([n])}) for n in (3, 5)]).values["n"].tolist() == [3, 5]


def test_two_ragged_axes():
    """Scenes of tracks, each of some steps."""
    two = Input({"xy": torch.ones(1, 2, 3, 2)}, (torch.tensor([2]), torch.tensor([[3, 1]])))
    three = Input({"xy": torch.ones(1, 3, 1, 2)}, (torch.tensor([3]), torch.tensor([[1, 1, 1]])))
    made = stack([two, three])
    assert made.values["xy"].shape == (2, 3, 3, 2)
    assert made.lengths[0].tolist() == [2, 3]
    assert made.lengths[1].tolist() == [[3, 1, 0], [1, 1, 1]]
    assert made.values["xy"][0, 2].sum() == 0
    assert made.values["xy"][1, :, 1:].sum() == 0


def test_places_of_several():
    grid = torch.tensor([[0, 0], [0, 1], [1, 0]])
    alike = stack([Input({"x": torch.zeros(1, 3, 5)}, places=grid)] * 2)
    assert alike.places.shape == (1, 3, 2)
    own = stack([Input({"x": torch.zeros(1, n, 5)}, places=grid[:n]) for n in (2, 3)])
    assert own.places.tolist() == [[[0, 0], [0, 1], [0, 0]], grid.tolist()]
    counted = stack(
        [Input({"x": torch.zeros(1, 2, 5)}, places=torch.tensor([7, 9])), Input({"x": torch.zeros(1, 3, 5)})]
    )
    assert counted.places.tolist() == [[7, 9, 0], [0, 1, 2]]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Input({}), "one named tensor at least"),
        (lambda: Input({"tokens": [1, 2]}), r"tokens is a tensor \(batch, ...\); got list"),
        (lambda: Input({"n": torch.tensor(3)}), "n is a tensor .* got a number of int64"),
        (lambda: Input({"a": torch.zeros(2, 3), "b": torch.zeros(3)}), "as many rows; got .'a': 2, 'b': 3"),
        (lambda: Input({"a": torch.zeros(2, 3)}, [1, 2, 3]), "3 entries for a batch of 2"),
        (lambda: Input({"a": torch.zeros(2, 3)}, torch.zeros(2)), "whole numbers"),
        (lambda: Input({"a": torch.zeros(2, 3)}, places=torch.zeros(2, 3, 3)), "places are"),
        (lambda: Input({"a": torch.zeros(2, 3)}, [1, 2], side="up").padding, "side is 'right' or 'left'"),
        (lambda: stack([]), "no inputs"),
        (lambda: stack([words([1]), Input({"other": torch.zeros(1, 2)})]), "one input has .* another"),
        (lambda: stack([words([1]), Input({"tokens": torch.zeros(1, 2)}, [1], side="left")]), "on the right"),
        (
            lambda: stack(
                [Input({"a": torch.zeros(1, 3, 4)}, places=each) for each in (torch.zeros(3), torch.zeros(3, 2))]
            ),
            "some inputs have places on one axis",
        ),
    ],
)
def test_what_is_no_input_is_told(make, why):
    with pytest.raises(SaccadeError, match=why) as problem:
        make()
    assert "\n" not in str(problem.value)
