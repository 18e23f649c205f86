"""Schedules, Muon and the state of optimisers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from saccade.config import ModelConfig
from saccade.learn.optimiser import Optimiser, orthogonal
from saccade.learn.schedule import share
from saccade.model.model import Model
from saccade.recipe import TrainConfig


def config(**values):
    return TrainConfig(**{"steps": 100, "warmup": 10, **values})


def test_schedules():
    for name in ("constant", "linear", "cosine", "inverse_sqrt"):
        made = config(schedule=name)
        assert [share(made, step) for step in (1, 5, 10)] == [0.1, 0.5, 1.0]
    assert share(config(schedule="linear", final=0.2), 100) == pytest.approx(0.2)
    assert share(config(schedule="linear"), 55) == pytest.approx(0.5)
    assert share(config(schedule="cosine"), 55) == pytest.approx(0.5)
    assert share(config(schedule="cosine"), 100) == pytest.approx(0.0)
    assert share(config(schedule="inverse_sqrt"), 40) == pytest.approx(0.5)
    assert share(config(schedule="constant"), 1000) == 1.0


@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 11, 4), (1, 6, 6)])
def test_orthogonal_keeps_directions_and_levels_lengths(shape):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64)
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    values = u.mT @ orthogonal(x) @ v.mT
    diagonal = values.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(values, torch.diag_embed(diagonal), atol=1e-9, rtol=0)
    assert diagonal.min() > 0.3
    assert diagonal.max() < 1.3


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.stack = nn.ModuleDict({"blocks": nn.ModuleList([nn.Linear(4, 4)])})


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "muon"])
def test_a_restored_optimiser_takes_the_same_step(name):
    def stepped(optimiser, model, seed):
        torch.manual_seed(seed)
        for each in model.parameters():
            each.grad = torch.randn_like(each)
        optimiser.step(0.5)

    torch.manual_seed(0)
    a, b = Small(), Small()
    made = config(optimiser=name)
    first, second = Optimiser(a, made), Optimiser(b, made)
    stepped(first, a, 1)
    b.load_state_dict(a.state_dict())
    second.restore({key: each.clone() for key, each in first.state().items()})
    stepped(first, a, 2)
    stepped(second, b, 2)
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
    assert all(each.isfinite().all() for each in a.parameters())


def test_everything_restored_is_where_the_weights_are():
    """Fused optimisers keep their count of steps beside the weights, not on the processor."""
    model = Small()
    optimiser = Optimiser(model, config(optimiser="adamw"))
    for each in model.parameters():
        each.grad = torch.ones_like(each)
    optimiser.step(1.0)
    elsewhere = Optimiser(Small().to("meta"), config(optimiser="adamw"))
    elsewhere.restore(optimiser.state())
    assert {each.device.type for each in elsewhere.state().values()} == {"meta"}
    assert any(key.endswith(":step") for key in elsewhere.state())


def test_muon_without_a_matrix_is_adamw():
    model = nn.Embedding(5, 4)
    optimiser = Optimiser(model, config(optimiser="muon"))
    model.weight.grad = torch.ones_like(model.weight)
    optimiser.step(1.0)
    assert model.weight.isfinite().all()


def test_decay_spares_vectors():
    model = Small()
    before = [each.detach().clone() for each in model.parameters()]
    optimiser = Optimiser(model, config(decay=0.5, rate=0.1))
    for each in model.parameters():
        each.grad = torch.zeros_like(each)
    optimiser.step(1.0)
    after = list(model.parameters())
    torch.testing.assert_close(after[0].detach(), before[0] * 0.95)
    assert torch.equal(after[2], before[2])


def test_muon_turns_products_and_no_tables():
    for position, tables in (("t5", {"weight"}), ("relative(3)", {"key", "value"}), ("xl", {"content", "place"})):
        values = {"vocab": 31, "width": 12, "heads": 3, "decoder": 2, "position": position}
        made = Optimiser(Model(ModelConfig(**values)), config(optimiser="muon"))
        turned = {made.names[each] for group in made.parts[0].param_groups for each in group["params"]}
        inside = {name for name, each in Model(ModelConfig(**values)).named_parameters() if ".position." in name}
        assert {name.rpartition(".")[2] for name in inside - turned} == tables
        assert {name for name in turned if ".position." in name} == {name for name in inside if ".distance." in name}
        assert {"query", "up"} <= {name.split(".")[-2] for name in turned}
