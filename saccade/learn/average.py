"""Averages of weights, which often score better than the last weights: the mean of the last n checkpoints, or an
exponential average (Polyak & Juditsky 1992)."""

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
        """What a checkpoint must hold beside them, as JSON."""

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        """Goes on from what `state` and `numbers` gave; what is damaged is left out, and `say` names it."""


class no_average:
    """No average."""

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        pass

    def update(self) -> None:
        pass

    def keep(self, step: int) -> None:
        pass

    def weights(self) -> dict[str, Tensor]:
        return {}

    def state(self) -> dict[str, Tensor]:
        return {}

    def numbers(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        pass


class ema:
    """a <- decay a + (1 - decay) w after each step; the decay grows from 0, so that the first weights are forgotten."""

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        self.own = dict(model.named_parameters())
        self.decay, self.count = number, 0
        self.average = {name: each.detach().clone() for name, each in self.own.items()}

    @torch.no_grad()
    def update(self) -> None:
        self.count += 1
        decay = min(self.decay, self.count / (self.count + 10))
        torch._foreach_lerp_(list(self.average.values()), list(self.own.values()), 1 - decay)

    def keep(self, step: int) -> None:
        """Nothing to do: `update` follows every step."""

    def weights(self) -> dict[str, Tensor]:
        return self.average

    def state(self) -> dict[str, Tensor]:
        """The count; the average itself is in the checkpoint already."""
        return {"ema:count": torch.tensor(self.count)}

    def numbers(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        """The average, which comes as `average:name`, and the count."""
        self.count = int(state["ema:count"])
        for name, each in self.average.items():
            each.copy_(state[f"average:{name}"])


class last:
    """The mean of the last n checkpoints' weights, which are kept in `averages/`, apart from the pruned ones.

    A checkpoint names their files, with hashes. SPARE older files stay: if the last checkpoint is damaged, the run goes
    on from the one before it, which needs them.
    """

    SPARE = 2

    def __init__(self, model: nn.Module, folder: Path, number: float) -> None:
        self.own = dict(model.named_parameters())
        self.folder, self.number = folder / "averages", int(number)
        self.kept: dict[str, str] = {}  # file -> hash, in the order of the steps

    def update(self) -> None:
        """Nothing to do: only checkpoints are averaged."""

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
        """Nothing: the weights are in files of their own."""
        return {}

    def numbers(self) -> dict[str, Any]:
        """Which files, and their hashes."""
        return {"averaged": dict(self.kept)}

    def restore(self, state: dict[str, Tensor], numbers: dict[str, Any], say: Callable[[str], None]) -> None:
        """Takes the files that the checkpoint names; a damaged or missing one is left out of the mean, and reported."""
        self.kept = {}
        for name, expected in sorted(numbers.pop("averaged", {}).items(), key=lambda item: _step(Path(item[0]))):
            try:
                disk.sound(self.folder / name, expected)
                self.kept[name] = expected
            except disk.DamagedError as problem:
                say(f"{problem}; it is left out of the mean")
        for each in self._files():
            if _step(each) > numbers["step"]:  # written by a process that was killed before its checkpoint was whole
                each.unlink()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.safetensors"), key=_step)


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def make_average(text: str, model: nn.Module, folder: Path) -> Average:
    """The average that `none`, `last(n)` or `ema(decay)` names; the recipe has checked the text."""
    name, _, number = text.rstrip(")").partition("(")
    return AVERAGES[name](model, folder, float(number or 0))


AVERAGES: dict[str, type[no_average] | type[ema] | type[last]] = {"none": no_average, "ema": ema, "last": last}
