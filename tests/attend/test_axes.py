"""Places on two axes, by their definitions, and that what knows one axis alone says so."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import saccade
from saccade import Input, ModelConfig, SaccadeError
from saccade.attend.position import learned, rotary, sinusoid, waves

ROWS, COLUMNS = 3, 5
GRID = torch.tensor([[row, column] for row in range(ROWS) for column in range(COLUMNS)])  # (15,2)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("width", [8, 7, 10])
def test_waves_of_two_axes_by_definition(width):
    """Half of the numbers encode the row, half the column, each as one axis would in that width."""
    found = sinusoid().on_input(torch.zeros(2, 15, width, dtype=torch.float64), GRID[None])
    first = width - width // 2
    for n, (row, column) in enumerate(GRID.tolist()):
        for place, size, part in ((row, first, found[:, n, :first]), (column, width // 2, found[:, n, first:])):
            for number in range(size):
                angle = place * 10000.0 ** (-(number - number % 2) / size)
                wanted = math.cos(angle) if number % 2 else math.sin(angle)
                assert part[0, number].item() == part[1, number].item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_waves_where_one_axis_stands_still(layout):
    still = torch.stack((torch.arange(9), torch.zeros(9, dtype=torch.long)), 1)
    found = sinusoid(layout=layout).on_input(torch.zeros(1, 9, 12, dtype=torch.float64), still[None])
    close(found[0, :, :6], waves(torch.arange(9), 6, 10000.0, torch.float64, layout))
    close(found[0, :, 6:], waves(torch.zeros(9), 6, 10000.0, torch.float64, layout))


def test_a_grid_of_learned_vectors():
    table = learned((ROWS, COLUMNS), input_width=4).double()
    x = random(2, 4, 4)
    places = torch.tensor([[[0, 0], [2, 4], [1, 3], [2, 0]], [[1, 1], [0, 4], [0, 0], [2, 2]]])
    found = table.on_input(x, places)
    for b in range(2):
        for t in range(4):
            row, column = places[b, t].tolist()
            close(found[b, t], x[b, t] + table.weight[row * COLUMNS + column])
    close(table.on_input(x, GRID[None, :4]), table.on_input(x)), "without places, row after row"


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("width", [8, 4])
def test_turned_by_two_axes_by_definition(layout, width):
    """Pair n of the first half turns with the row, of the second with the column."""
    q = random(1, 1, 15, 8)
    found = rotary(layout, width=width).on_heads(q, GRID[None])
    half = width // 4
    for t, places in enumerate(GRID.tolist()):
        wanted = q[0, 0, t].tolist()
        for pair in range(width // 2):
            axis, number = divmod(pair, half)
            angle = places[axis] * 10000.0 ** (-2 * number / (width // 2))
            i, j = (pair, pair + width // 2) if layout == "half" else (2 * pair, 2 * pair + 1)
            a, b = q[0, 0, t, i].item(), q[0, 0, t, j].item()
            wanted[i] = a * math.cos(angle) - b * math.sin(angle)
            wanted[j] = b * math.cos(angle) + a * math.sin(angle)
        close(found[0, 0, t], torch.tensor(wanted, dtype=torch.float64))


def test_products_of_turned_vectors_know_differences_alone():
    turn, q, k = rotary(), random(2, 3, 15, 8), random(2, 3, 15, 8, seed=1)
    moved = GRID + torch.tensor([4, 9])
    a, b = (turn.on_heads(q, at[None]) @ turn.on_heads(k, at[None]).mT for at in (GRID, moved))
    torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_turned_where_one_axis_stands_still():
    """The half of the axis that stands still is left as it is; the other turns as a head of half the width does."""
    still = torch.stack((torch.arange(9), torch.zeros(9, dtype=torch.long)), 1)
    x = random(1, 2, 9, 8)
    found = rotary("interleaved").on_heads(x, still[None])
    close(found[..., :4], rotary("interleaved").on_heads(x[..., :4], torch.arange(9)[None]))
    close(found[..., 4:], x[..., 4:])


@pytest.mark.parametrize("cached", [False, True])
def test_a_layer_takes_places(cached):
    layer, x = saccade.Attention(16, 2, position="rotary").double(), random(2, 15, 16)
    cache = saccade.Cache() if cached else None
    q, k, v = (each(x).unflatten(2, (2, 8)).transpose(1, 2) for each in (layer.query, layer.key, layer.value))
    q, k = (rotary().on_heads(each, GRID[None]) for each in (q, k))
    wanted = layer.out(saccade.attention(q, k, v).transpose(1, 2).flatten(2))
    close(layer(x, places=GRID[None], cache=cache), wanted)
    close(layer(x, places=torch.arange(15)[None]), layer(x))


@pytest.mark.parametrize("position", ["alibi", "t5", "relative(3)", "xl"])
def test_what_counts_distances_takes_no_places(position):
    layer = saccade.Attention(16, 2, position=position)
    with pytest.raises(SaccadeError, match="along one axis and takes no places: write 'rotary' or 'offsets"):
        layer(torch.zeros(1, 15, 16), places=GRID[None])


SMALL = {"vocab": 29, "width": 16, "heads": 2, "encoder": 2, "hidden": 17}


@pytest.mark.parametrize("position", ["rotary", "sinusoid", "learned((3, 5))"])
def test_a_model_takes_places_batched_as_alone(position):
    torch.manual_seed(0)
    model = saccade.build(ModelConfig(**SMALL, position=position)).double().eval()
    ids, turned = torch.randint(29, (2, 15)), torch.randperm(15)
    both = torch.stack((GRID, GRID[turned]))
    x = Input({"tokens": ids}, [15, 9], both)
    said = model(x)
    close(said[:1], model(Input({"tokens": ids[:1]}, places=GRID)))
    close(said[1:, :9], model(Input({"tokens": ids[1:, :9]}, places=GRID[turned][:9])))
    moved = model(Input({"tokens": ids[:1, turned]}, places=GRID[turned]))
    close(moved, said[:1, turned]), "places say where a token stands, not its number"
    assert (model(ids)[:1] - said[:1]).abs().max() > 1e-3 or position.startswith("learned")


@pytest.mark.parametrize("position", ["rotary", "sinusoid", "learned(15)", "learned((3, 5))"])
def test_places_on_one_axis_are_positions(position):
    torch.manual_seed(0)
    model = saccade.build(ModelConfig(**SMALL, position=position)).double().eval()
    ids = torch.randint(29, (2, 15))
    close(model(Input({"tokens": ids}, places=torch.arange(15))), model(ids))
    left = Input({"tokens": ids}, [15, 9], torch.stack((torch.arange(15), (torch.arange(15) - 6).clamp(0))), "left")
    close(model(left)[1, 6:], model(Input({"tokens": ids}, [15, 9], side="left"))[1, 6:])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (
            lambda: learned(15, input_width=4).on_input(torch.zeros(1, 15, 4), GRID[None]),
            r"learned\(15\) is a table of one",
        ),
        (
            lambda: learned((3, 4), input_width=4).on_input(torch.zeros(1, 15, 4), GRID[None]),
            "position 4 lies past the end",
        ),
        (lambda: learned((3, 4, 5), input_width=4), "one axis or two"),
        (lambda: learned((3, 0), input_width=4), "length is a whole number from 1"),
        (lambda: rotary().on_heads(torch.zeros(1, 1, 15, 6), GRID[None]), "a multiple of 4, not 6"),
        (
            lambda: saccade.Attention(16, 2)(torch.zeros(1, 2, 16), torch.zeros(1, 2, 16), places=GRID[None, :2]),
            "start= says",
        ),
        (
            lambda: saccade.build(ModelConfig(**SMALL, position="rotary", memory=3))(
                Input({"tokens": torch.zeros(1, 2, dtype=torch.long)}, places=GRID[:2]),
                memory=saccade.model.stack.Memory(3),
            ),
            "a memory counts the positions",
        ),
    ],
)
def test_places_that_do_not_fit_are_told(call, why):
    with pytest.raises(SaccadeError, match=why):
        call()
