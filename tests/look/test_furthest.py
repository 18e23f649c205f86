"""Maps made smaller: the weights are made up, so that the answer is known."""

from __future__ import annotations

import torch

from saccade.look.map import TokenGroup, fold


def test_a_smaller_map_keeps_what_is_far_below_0_too():
    weights = torch.tensor([[[0.5, -0.7, 0.1, 0.2, 0.3], [0.0, 0.6, -0.1, -0.4, 0.3], [2.0, -2.0, 0.0, -0.0, -5.0]]])
    rows, columns = ([TokenGroup(str(each), each, [each]) for each in range(count)] for count in (3, 5))
    made = fold(lambda some: weights[:, some], rows, columns, "mean", 2)
    assert made.values.tolist() == torch.tensor([[-0.7, -0.4], [2.0, -5.0]]).tolist()
    assert (made.row_places, made.column_places) == ([0, 2], [0, 3])
