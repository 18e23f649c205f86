"""Rows of tokens as one padded tensor."""

from __future__ import annotations

import numpy as np
import torch

from saccade.field.text.text_field import padded

ROWS = [np.array([3, 5], "<u2"), np.array([], "<u2"), np.array([7, 11, 13], "<u2")]


def test_padded():
    tokens, lengths = padded(ROWS, 2)
    assert tokens.dtype == lengths.dtype == torch.int64
    assert tokens.tolist() == [[3, 5, 2], [2, 2, 2], [7, 11, 13]]
    assert lengths.tolist() == [2, 0, 3]
    assert padded([[65536]], 0)[0].tolist() == [[65536]]
    assert padded([], 0)[0].shape == (0, 0)


def test_the_same_tokens_may_stand_around_each_row():
    tokens, lengths = padded(ROWS, 2, before=[17], behind=[19, 23])
    assert tokens.tolist() == [[17, 3, 5, 19, 23, 2], [17, 19, 23, 2, 2, 2], [17, 7, 11, 13, 19, 23]]
    assert lengths.tolist() == [5, 3, 6]
