"""Charts: which values take the last colour, and how large a picture is."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from saccade.look import colour
from saccade.look.chart import cell_of, heat, tinted
from saccade.look.map import Map
from saccade.look.part import Lettering


def map_of(values: torch.Tensor) -> Map:
    R, C = values.shape
    names = [str(each) for each in range(max(R, C))]
    return Map(values, names[:R], names[:C], list(range(R)), list(range(C)))


def marks(values: torch.Tensor) -> list[str]:
    """The numbers beside the colours."""
    return [each.text for each in heat(map_of(values)).parts if isinstance(each, Lettering)][-3:]


def test_the_first_rows_of_a_causal_map_do_not_darken_the_others():
    even = torch.ones(19, 19).tril() / torch.arange(1, 20)[:, None]
    colours, top, _ = tinted(even)
    assert top == pytest.approx(1 / 10), "the first row that sees more than half of 19"
    assert torch.equal(colours[0, 0], colour.scale_of("sequential")[-1])
    assert marks(even) == ["\u2265 0.1", "0.05", "0"]
    assert marks(-even) == ["0.1", "0", "\u2264 -0.1"]


@pytest.mark.parametrize(
    ("values", "top"),
    [
        (torch.eye(7), 1.0),
        (torch.tensor([[0.2, 0.8]]), 0.8),
        (torch.tensor([[0.0, 0.9], [0.4, 0.6]]), 0.6),
        (torch.tensor([[torch.nan, 0.9, 0.1], [0.4, torch.inf, 0.2]]), 0.9),
        (torch.zeros(3, 2), 1.0),
    ],
)
def test_the_last_colour_is_of_the_largest_value_elsewhere(values, top):
    assert tinted(values)[1] == pytest.approx(top)


def test_more_cells_never_make_a_smaller_picture():
    sides = [count * cell_of(count, count, 600)[0] for count in range(1, 601)]
    assert all(after >= before - 1e-9 for before, after in pairwise(sides))
    assert sides[-1] == pytest.approx(600)
