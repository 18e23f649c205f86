"""Averages of weights, which often serve better than the last: of the last n checkpoints, or exponential (Polyak &
Juditsky 1992)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from saccade import disk


class Average(Protocol):
    """Follows a model while it learns."""

    def update(self) -> None:
        """After each step."""

    def keep(self, step: int) -> None:
        """At each checkpoint, before it is written."""

    def weights(self) -> dict[str, Tensor]:
        """The average, or nothing where there is none yet."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold to go on."""

    def restore(self, state: dict[str, Tensor], step: int) -> None:
        """Goes on from what `state` gave at `step`."""


class none:
    """No average."""

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        pass

    def update(self) -> None:
        """Nothing."""

    def keep(self, step: int) -> None:
        """Nothing."""

    def weights(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Tensor], step: int) -> None:
        """Nothing."""


class ema:
    """a <- decay a + (1 - decay) w after each step; the decay grows from 0, so that the first weights are forgotten."""

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        self.own = dict(model.named_parameters())
        self.decay, self.count = number, 0
        self.average = {name: each.detach().clone() for name, each in self.own.items()}

    @torch.no_grad()
    def update(self) -> None:
        """One step further."""
        self.count += 1
        decay = min(self.decay, self.count / (self.count + 10))
        torch._foreach_lerp_(list(self.average.values()), list(self.own.values()), 1 - decay)

    def keep(self, step: int) -> None:
        """It follows every step already."""

    def weights(self) -> dict[str, Tensor]:
        """The average so far."""
        return self.average

    def state(self) -> dict[str, Tensor]:
        """The count; the average itself is in the checkpoint."""
        return {"ema:count": torch.tensor(self.count)}

    def restore(self, state: dict[str, Tensor], step: int) -> None:
        """The average, which comes as `average:name`, and the count."""
        self.count = int(state["ema:count"])
        for name, each in self.average.items():
            each.copy_(state[f"average:{name}"])


class last:
    """The mean of the last n checkpoints' weights, which are kept in `averages/`, apart from the pruned ones."""

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        self.own = dict(model.named_parameters())
        self.folder, self.number = folder / "averages", int(number)

    def update(self) -> None:
        """Only checkpoints count."""

    def keep(self, step: int) -> None:
        """Adds this step's weights and drops the oldest."""
        disk.write_tensors(self.folder / f"step-{step}.safetensors", {k: v.detach() for k, v in self.own.items()})
        for each in self._files()[: -self.number]:
            each.unlink()

    def weights(self) -> dict[str, Tensor]:
        """The mean of what is kept, summed in float64."""
        files = self._files()
        if not files:
            return {}
        total = {name: each.double() for name, each in disk.load_tensors(files[0]).items()}
        for file in files[1:]:
            for name, each in disk.load_tensors(file).items():
                total[name] += each
        return {name: (each / len(files)).to(self.own[name].dtype) for name, each in total.items()}

    def state(self) -> dict[str, Tensor]:
        """All of it is in the folder."""
        return {}

    def restore(self, state: dict[str, Tensor], step: int) -> None:
        """Forgets what a killed run kept after `step`."""
        for each in self._files():
            if _step(each) > step:
                each.unlink()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.safetensors"), key=_step)


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def make_average(text: str, model: nn.Module, folder: Path) -> Average:
    """From `none`, `last(n)` or `ema(decay)`, as the recipe has checked it."""
    name, _, number = text.rstrip(")").partition("(")
    return AVERAGES[name](model, folder, float(number or 0))


AVERAGES: dict[str, type[none] | type[ema] | type[last]] = {"none": none, "ema": ema, "last": last}
