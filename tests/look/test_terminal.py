"""Maps in a terminal stand in line, however wide their letters are."""

from __future__ import annotations

import pytest
import torch
from rich.cells import cell_len
from rich.console import Console

from saccade.look.map import Map
from saccade.look.report import drawn
from saccade.look.terminal import shades

NAMES = ["the", "\u4e2d\u6587\u5b57", "\U0001f600", "e\u0301", "x"]


def test_shades_stand_below_their_names():
    lines = shades(torch.ones(5, 5), NAMES, NAMES).plain.splitlines()
    assert {cell_len(line) for line in lines} == {8 + 2 * 5}


@pytest.mark.parametrize("width", [60, 24])
def test_no_line_is_wider_than_the_terminal(width):
    names = [*NAMES, "\u4e2d" * 31]
    found = Map(torch.full((6, 6), 0.25), names, names, list(range(6)), list(range(6)), "")
    console = Console(width=width, file=None, record=True, color_system=None)
    with console.capture() as said:
        console.print(drawn(found, width), soft_wrap=True)
    lines = [line.rstrip("\n") for line in said.get().splitlines()]
    assert max(map(cell_len, lines)) <= max(width, 16 + 2 + 2 * 6)
