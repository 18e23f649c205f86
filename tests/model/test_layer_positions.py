"""Tables of positions before every layer but the first, and the registers of an encoder as the queries of a set."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from saccade.config import ModelConfig, read
from saccade.error import SaccadeError
from saccade.model.input import Input
from saccade.model.model import Model

KEYS = {
    "width": 20,
    "heads": 5,
    "encoder": 3,
    "embed": "patches(2, 3)",
    "class_tokens": 1,
    "registers": 4,
    "position": "learned((3, 5), before=5)",
}
HEADS = {"head": "elements(7, 0.0, deep=True)", "named_heads": {"spans": "spans(2)"}}


def model(**keys) -> Model:
    torch.manual_seed(0)
    made = Model(read(ModelConfig, {**KEYS, **keys})).double()
    for each in made.parameters():
        torch.nn.init.normal_(each, std=0.3)
    return made.eval()


def picture(height: int = 6, width: int = 10) -> Input:
    return Input({"pixels": torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1)).double()})


@pytest.mark.parametrize("grid", [(3, 5), (2, 7)])
def test_each_layer_gets_its_table(grid):
    """Layer by layer by hand; the rows of class tokens and registers are never resized."""
    made = model(layer_positions=True)
    x, weight = picture(2 * grid[0], 2 * grid[1]), made.encoder.positions.weight
    assert weight.shape == (2, 1, 5 + 15, 20)
    read = made.embed.read(x)
    states = read.vectors
    for number, block in enumerate(made.encoder.blocks):
        if number:
            cells = weight[number - 1, 0, 5:].view(1, 3, 5, 20).permute(0, 3, 1, 2)
            cells = F.interpolate(cells, size=grid, mode="bicubic", align_corners=False)
            states = states + torch.cat((weight[number - 1, 0, :5], cells.flatten(2)[0].T))
        states = block(states, places=read.places, grid=grid)
    torch.testing.assert_close(made.states(x).last, made.encoder.norm(states), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"position": "sinusoid"}, r"layer_positions are tables of a picture's cells, as the position learned"),
        ({"position": None}, r"layer_positions are tables of a picture's cells"),
        ({"position": "learned(20)"}, r"layer_positions are tables of a picture's cells"),
        ({"registers": 2}, "a row for each of the 3 class tokens and registers: write before=3"),
    ],
)
def test_what_has_no_such_tables_is_told(keys, told):
    with pytest.raises(SaccadeError, match=told):
        model(layer_positions=True, **keys)


def test_one_layer_has_none():
    assert model(layer_positions=True, encoder=1).encoder.positions is None


def test_heads_of_queries_read_the_registers_of_an_encoder():
    made, x = model(**HEADS), picture()
    states = made.states(x)
    assert torch.equal(torch.stack(states.layers), states.encoder[None, :, 1:5])
    assert made.say(states).shape == (1, 2, 4, 7)
    assert made.say(states, "spans").shape == (1, 2, 4, 4)
    hidden = states.encoder[:, 1:5]
    for part in (made.head.inner, made.head.further):
        hidden = torch.relu(part(hidden))
    assert torch.equal(made.say(states)[0], made.head.out(hidden))


def test_registers_are_a_set():
    """In another order they give the same answers in that order: attention does not know it."""
    made, x = model(layer_positions=True, **HEADS), picture()
    before = made.states(x)
    order = torch.tensor([0, 3, 1, 4, 2])  # the class token stays
    with torch.no_grad():
        for each in (made.embed.extras, made.embed.position.weight, *made.encoder.positions.weight[:, 0]):
            each[:5] = each[:5][order]
    after = made.states(x)
    torch.testing.assert_close(made.say(after), made.say(before)[:, :, order[1:] - 1])
    torch.testing.assert_close(after.encoder[:, 5:], before.encoder[:, 5:])


def test_gradients_reach_every_weight():
    made = model(layer_positions=True, **HEADS).train()
    states = made.states(picture())
    (made.say(states).square().sum() + made.say(states, "spans").sum()).backward()
    assert [name for name, each in made.named_parameters() if each.grad is None or not each.grad.abs().sum()] == []
