"""Averages of weights, which often serve better than the last: of the last n checkpoints, or exponential (Polyak &
Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

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
        """The tensors that a checkpoint must hold to go on."""

    def numbers(self) -> dict[str, Any]:
        """What it must hold beside them, as JSON can."""

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        """Goes on from what `state` and `numbers` gave; what cannot be gone on with is said."""


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

    def numbers(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
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

    def numbers(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        """The average, which comes as `average:name`, and the count."""
        self.count = int(state["ema:count"])
        for name, each in self.average.items():
            each.copy_(state[f"average:{name}"])


class last:
    """The mean of the last n checkpoints' weights, which are kept in `averages/`, apart from the pruned ones.

    A checkpoint says which they are, and their hashes. Some older ones stay, for a checkpoint before the last.
    """

    SPARE = 2

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        self.own = dict(model.named_parameters())
        self.folder, self.number = folder / "averages", int(number)
        self.kept: dict[str, str] = {}  # file -> hash, in the order of the steps

    def update(self) -> None:
        """Only checkpoints count."""

    def keep(self, step: int) -> None:
        """Adds this step's weights and drops the oldest."""
        file = self.folder / f"step-{step}.safetensors"
        disk.write_tensors(file, {k: v.detach() for k, v in self.own.items()})
        self.kept[file.name] = disk.digest(file)
        self.kept = dict(list(self.kept.items())[-self.number :])
        for each in self._files()[: -self.number - self.SPARE]:
            each.unlink(missing_ok=True)

    def weights(self) -> dict[str, Tensor]:
        """The mean of what is kept, summed in float64."""
        total: dict[str, Tensor] = {}
        for name, expected in self.kept.items():
            found = disk.load_tensors(disk.sound(self.folder / name, expected))
            total = {key: total[key] + each if total else each.double() for key, each in found.items()}
        return {name: (each / len(self.kept)).to(self.own[name].dtype) for name, each in total.items()}

    def state(self) -> dict[str, Tensor]:
        """All of it is in the folder."""
        return {}

    def numbers(self) -> dict[str, Any]:
        """Which files, and their hashes."""
        return {"averaged": dict(self.kept)}

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        """What the checkpoint names; of that, what is damaged or gone is left out of the mean, and said."""
        self.kept = {}
        for name, expected in sorted(numbers.pop("averaged", {}).items(), key=lambda item: _step(Path(item[0]))):
            try:
                disk.sound(self.folder / name, expected)
                self.kept[name] = expected
            except disk.DamagedError as problem:
                say(f"{problem}; it is left out of the mean")
        for each in self._files():
            if _step(each) > numbers["step"]:  # of a process that was killed before its checkpoint was whole
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
