"""Optimisers: torch's own (fused), and Muon for the matrices inside the blocks (Jordan et al. 2024).

Weight decay falls on matrices alone, never on biases, norms and other vectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade.recipe import TrainConfig

Named = list[tuple[str, nn.Parameter]]
TABLE = re.compile(r"\.position\.(?!distance\.)")  # tables with a row for each place or head, which multiply nothing


class Optimiser:
    """One or two of torch's optimisers over the named parameters of a model, with a state that is plain tensors."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        self.names = {parameter: name for name, parameter in model.named_parameters() if parameter.requires_grad}
        self.parts = OPTIMISERS[config.optimiser]([(name, each) for each, name in self.names.items()], config)
        self.highest = [[float(group["lr"]) for group in part.param_groups] for part in self.parts]

    def step(self, share: float) -> None:
        """Takes a step at this share of the highest rates."""
        for part, rates in zip(self.parts, self.highest, strict=True):
            for group, rate in zip(part.param_groups, rates, strict=True):
                group["lr"] = rate * share
            part.step()

    def state(self) -> dict[str, Tensor]:
        """Every tensor of the state, as `parameter:what`."""
        found: dict[str, Tensor] = {}
        for part in self.parts:
            for parameter, values in part.state.items():
                name = self.names[cast(nn.Parameter, parameter)]
                found |= {f"{name}:{key}": each for key, each in values.items() if isinstance(each, Tensor)}
        return found

    def restore(self, state: dict[str, Tensor]) -> None:
        """Puts back what `state` gave."""
        by_name = {name: parameter for parameter, name in self.names.items()}
        homes = {each: part for part in self.parts for group in part.param_groups for each in group["params"]}
        for name, tensor in state.items():
            parameter, _, key = name.rpartition(":")
            owner = by_name[parameter]
            homes[owner].state[owner][key] = tensor.to(owner.device)  # `step` too: that is where fused ones keep it


class Muon(torch.optim.Optimizer):
    """W <- W - 0.2 rate sqrt(max(rows, columns)) O, where O is the orthogonal matrix nearest to the momentum.

    The factor makes a step as long as AdamW's usually are (Liu et al. 2025).

    Matrices of one shape are made orthogonal together, in float32: torch's own Muon takes them one by one in bfloat16,
    which is slow on processors without it.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, momentum: float, decay: float) -> None:
        super().__init__(parameters, {"lr": rate, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step with Nesterov's momentum."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = {}
            for each in group["params"]:
                if each.grad is not None:
                    shapes.setdefault(each.shape, []).append(each)
            for shape, same in shapes.items():
                self._step_together(group, shape, same)

    def _step_together(self, group: dict[str, Any], shape: torch.Size, same: list[nn.Parameter]) -> None:
        gradients = [each.grad for each in same if each.grad is not None]
        moments = [self.state[each].setdefault("momentum", torch.zeros_like(each)) for each in same]
        torch._foreach_lerp_(moments, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, moments, group["momentum"])
        own: list[Tensor] = list(same)
        directions = orthogonal(torch.stack(tuple(ahead)))
        rate = group["lr"] * 0.2 * max(shape) ** 0.5
        if group["decay"]:
            torch._foreach_mul_(own, 1 - group["lr"] * group["decay"])
        torch._foreach_add_(own, list(directions.unbind()), alpha=-rate)


def orthogonal(x: Tensor, iterations: int = 5) -> Tensor:
    """(N,R,C): each matrix with its singular values near 1, by the quintic Newton-Schulz iteration."""
    a, b, c = 3.4445, -4.7750, 2.0315  # steepest at 0; the values end between 0.7 and 1.2
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(iterations):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT


def adamw(named: Named, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Adam with decoupled decay (Loshchilov & Hutter 2019)."""
    return [torch.optim.AdamW(_groups(named, config), lr=config.rate, betas=config.betas, fused=True)]


def adam(named: Named, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Kingma & Ba 2015."""
    return [torch.optim.Adam(_groups(named, config), lr=config.rate, betas=config.betas, eps=1e-9, fused=True)]


def sgd(named: Named, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Gradient descent with momentum."""
    return [torch.optim.SGD(_groups(named, config), lr=config.rate, momentum=config.momentum, fused=True)]


def muon(named: Named, config: TrainConfig) -> list[torch.optim.Optimizer]:
    """Muon for the products inside the blocks, AdamW for tables (positions' too), heads and vectors."""
    inside = {name: each for name, each in named if each.dim() == 2 and ".blocks." in name and not TABLE.search(name)}
    matrices = [Muon(inside.values(), config.matrix_rate, config.momentum, config.decay)] if inside else []
    return [*matrices, *adamw([(name, each) for name, each in named if name not in inside], config)]


def _groups(named: Named, config: TrainConfig) -> list[dict[str, Any]]:
    matrices = [each for _, each in named if each.dim() >= 2]
    vectors = [each for _, each in named if each.dim() < 2]
    groups = [{"params": matrices, "weight_decay": config.decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


OPTIMISERS: dict[str, Callable[[Named, TrainConfig], list[torch.optim.Optimizer]]] = {
    "adamw": adamw,
    "adam": adam,
    "sgd": sgd,
    "muon": muon,
}
