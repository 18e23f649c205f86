"""The same recipe from several seeds: how much a score owes to chance.

Each seed has a run of its own inside one folder, `seed-0`, `seed-1` and so on, so that a command that was stopped goes
on; what was measured of each stands in `seeds.json` beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saccade import disk
from saccade.error import SaccadeError
from saccade.learn.run_name import usual_folder
from saccade.learn.train import train
from saccade.learn.validate import evaluate
from saccade.recipe import Recipe
from saccade.recipes import read as recipes
from saccade.store.run import Run

MEASURED = "seeds.json"


class Chance(NamedTuple):
    """A metric over the seeds; deviation: with n - 1 below."""

    mean: float
    deviation: float
    values: list[float]


class Seeds(NamedTuple):
    """folder: of all runs; split and examples: what they were measured on; runs: their names."""

    folder: Path
    split: str
    examples: int
    runs: list[str]
    metrics: dict[str, Chance]
    baseline: dict[str, Any]


def train_seeds(
    recipe: str | Path | Recipe,
    count: int,
    *,
    run: str | Path | None = None,
    files: Sequence[str | Path] = (),
    options: Iterable[str] = (),
    say: Callable[[str], None] = lambda _: None,
    **more: Any,
) -> Seeds:
    """Trains a recipe with its seed and those after it, `count` in all, and measures each run on the last split there
    is. run: the folder of all; `runs/NAME-seeds` by default. more: as `train` takes it.
    """
    if count < 2:
        raise SaccadeError(f"several seeds are two at least; got {count}: for one, leave out --seeds")
    if not isinstance(recipe, Recipe) and (Path(recipe) / disk.MANIFEST).is_file():
        raise SaccadeError(f"{recipe} is a run, which has one seed: for several, give its recipe")
    options = list(options)
    usual = usual_folder(recipe, files)
    folder = usual.with_name(f"{usual.name}-seeds") if run is None else Path(run)
    if (folder / disk.MANIFEST).is_file():
        raise SaccadeError(f"{folder} is a run: give another --run for the folder of several")
    first = recipes.recipe(recipe, options).seed
    found = []
    for seed in range(first, first + count):
        name = f"seed-{seed}"
        done = train(recipe, files=files, run=folder / name, options=[*options, f"seed={seed}"], **more)
        found.append(_measured(folder, name, done))
        told = ", ".join(f"{each} {value:.4f}" for each, value in found[-1]["metrics"].items())
        say(f"{folder / name}: {found[-1]['split']}, {told}")
    return _spread(folder, found)


def _measured(folder: Path, name: str, run: Run) -> dict[str, Any]:
    """What `evaluate` says of a run; what it said before, where that was of the same weights."""
    path = folder / MEASURED
    known: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    state = {"step": run.step, "manifest": disk.digest(folder / name / disk.MANIFEST)}
    if known.get(name, {}).get("of") != state:
        found = evaluate(run)
        kept = {key: found.get(key) for key in ("split", "examples", "metrics", "baseline")}
        disk.write(path, json.dumps({**known, name: {"of": state, **kept}}, indent=1).encode())
        known = json.loads(path.read_text())
    measured: dict[str, Any] = {"name": name, **known[name]}
    return measured


def _spread(folder: Path, found: Sequence[dict[str, Any]]) -> Seeds:
    values = {name: [float(each["metrics"][name]) for each in found] for name in found[0]["metrics"]}
    metrics = {name: Chance(float(np.mean(each)), float(np.std(each, ddof=1)), each) for name, each in values.items()}
    last = found[-1]
    names = [each["name"] for each in found]
    return Seeds(folder, last["split"], last["examples"], names, metrics, last["baseline"] or {})
